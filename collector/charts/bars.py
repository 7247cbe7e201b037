"""Horizontal bars with whiskers, sorted: one value with its interval per row.

Rows that cannot be told from zero are one line with their count, since to rank them would claim
what the noise does not allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..analytics.rows import SHARE, Row
from .axes import FOOT, bottom_axis
from .columns import Columns
from .frame import DEFAULT, Face, Note, Picture, finish, nothing, subtitle_of
from .labels import named, unit_words
from .marks import lying_whisker, mark, rectangle, stroke
from .noise import noise_of, widening
from .number import extent, number, numbers_of, reading
from .remarks import remarks
from .scale import Linear
from .svg import Element

ROW: Final = 26  # user units
_THICK: Final = 14  # user units
_MOST_EMPTY: Final = 4  # rows without a number, or reasons of more of them
AT_ONCE: Final = "noise of all rows at once"
_FEWEST_FOLDED: Final = 2  # folding a single row would save nothing


def bars(rows: Sequence[Row], title: str, face: Face = DEFAULT, ranked: bool = True) -> str:
    """Return an SVG of *rows*, greatest first if *ranked*, in their order if not.

    A row without a number shows its reason instead of a bar.
    """
    return finish(bars_picture(rows, title, face, ranked), face)


def bars_picture(rows: Sequence[Row], title: str, face: Face, ranked: bool = True) -> Picture:
    """Return the bars of *rows*, which share a unit."""
    if not rows:
        return nothing(title, rows, face)
    labels, common = named(rows)
    factor = widening(rows) if ranked and rows[0].unit == SHARE else 1.0
    lines = _lines(list(zip(rows, labels, strict=True)), face.most_rows, ranked, factor)
    shown = [line.row for line in lines if line.row]
    unit = rows[0].unit
    columns = Columns.of(shown, [line.label for line in lines], face, unit)
    ticks, scale = columns.scale(*extent(shown, 0.0))
    foot = ROW * len(lines) + 6
    noise = noise_of(rows) if unit == SHARE and ranked else None
    body = list(_noise_band(factor * noise, scale, foot)) if noise else []
    body += bottom_axis(ticks, scale, unit, 0, foot)
    for i, line in enumerate(lines):
        body += _drawn(line, 3 + ROW * i + ROW / 2, scale, columns)
    return Picture(
        title,
        subtitle_of(rows, common, unit_words(unit), AT_ONCE if factor > 1 and noise else ""),
        _described(lines, len(rows)),
        tuple(body),
        foot + FOOT,
        tuple(_notes(noise, shown)),
    )


@dataclass(frozen=True)
class _Line:
    """One line of the chart: a row with its label, or words about several rows."""

    row: Row | None
    label: str = ""
    words: str = ""
    brief: str = ""


def _lines(rows: Sequence[tuple[Row, str]], most: int, ranked: bool, factor: float) -> list[_Line]:
    numbered = [_Line(row, label) for row, label in rows if numbers_of(row)]
    sure = [line for line in numbered if _is_sure(line, factor)]
    folded = [line.row for line in numbered if line.row and not _is_sure(line, factor)]
    if not ranked or not sure or len(folded) < _FEWEST_FOLDED:
        sure, folded = numbered, []
    if ranked:
        sure = sorted(sure, key=lambda line: (-_value(line), line.label))
    lines = sure[:most]
    if len(sure) > most:
        lines.append(_Line(None, words=f"and {len(sure) - most:,} more, smaller"))
    if folded:
        highest = max((row.ci_high or 0.0) + _added(row, factor) for row in folded)
        upper = number(highest, SHARE, highest / 3)
        words = f"{len(folded):,} more, not distinguishable from 0 (each up to about {upper})"
        lines.append(_Line(None, "", words, f"{len(folded):,} more within the noise"))
    return lines + list(_without_numbers(rows, most))


def _is_sure(line: _Line, factor: float) -> bool:
    """Return whether a row can be told from zero, or need not be."""
    if line.row is None or line.row.unit != SHARE:
        return True
    return (line.row.ci_low or 0.0) - _added(line.row, factor) > 0


def _added(row: Row, factor: float) -> float:
    """Return what either arm of an interval gains if it is *factor* times as long."""
    found = numbers_of(row)
    return (factor - 1) * found.half_width if found else 0.0


def _value(line: _Line) -> float:
    return (line.row.value if line.row else None) or 0.0


def _without_numbers(rows: Sequence[tuple[Row, str]], most: int) -> Iterator[_Line]:
    """Yield the rows without a number, as one line a reason where they are many."""
    empty = [_Line(row, label) for row, label in rows if numbers_of(row) is None]
    if len(empty) <= min(most, _MOST_EMPTY):
        yield from empty
        return
    reasons = Counter(reading(line.row) for line in empty if line.row)
    for reason, count in reasons.most_common(_MOST_EMPTY):
        yield _Line(None, words=f"{count:,} without a number: {reason}")


def _noise_band(half_width: float, scale: Linear, foot: float) -> Iterator[Element]:
    left, right = scale.within(-half_width), scale.within(half_width)
    yield rectangle(left, 0, right - left, foot, "noise")


def _drawn(line: _Line, y: float, scale: Linear, columns: Columns) -> Iterator[Element]:
    row = line.row
    if row is None:
        yield columns.words(line.words, y, line.brief)
        return
    yield columns.name(line.label, y)
    found = numbers_of(row)
    if found is None:
        yield mark(row, line.label, columns.words(reading(row), y))
        return
    zero, end = scale.within(0.0), scale.at(found.value)
    thick = rectangle(min(zero, end), y - _THICK / 2, abs(end - zero), _THICK, "bar")
    tip = stroke(end, y - _THICK / 2, end, y + _THICK / 2, "end")
    halo, whisker = lying_whisker(row, scale, y)
    yield mark(row, line.label, thick, halo, tip, whisker)
    yield from columns.numbers(row, y)


def _notes(noise: float | None, shown: Sequence[Row]) -> Iterator[Note]:
    if noise:
        yield Note("what noise alone could show", "noise")
    yield from remarks(shown)
    if any(row.value is not None and row.unit == SHARE and row.value < 0 for row in shown):
        yield Note("estimates are unbiased, so one of a share near 0 may lie below it")


def _described(lines: Sequence[_Line], count: int) -> str:
    numbered = [line for line in lines if line.row and numbers_of(line.row)]
    if not numbered:
        return f"Bar chart of {count} rows, none with a number."
    first = "; ".join(f"{line.label}: {reading(line.row)}" for line in numbered[:3] if line.row)
    return f"Bar chart of {count} rows. First: {first}."
