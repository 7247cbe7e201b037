"""Horizontal bars with whiskers, sorted: one value with its interval per row.

Rows that cannot be told from zero are one line with their count, since to rank them would claim
what the noise does not allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from ..analytics.rows import SHARE, Row
from .axes import FOOT, bottom_axis
from .columns import Columns
from .frame import DEFAULT, Face, Note, Picture, finish, nothing, subtitle_of
from .labels import label_of, unit_words
from .marks import lying_whisker, mark, rectangle, stroke
from .noise import noise_of
from .number import number, numbers_of, reading
from .scale import Linear, span
from .svg import Element

ROW: Final = 26  # user units
_THICK: Final = 14  # user units
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
    lines = _lines(rows, face.most_rows, ranked)
    shown = [line.row for line in lines if line.row]
    unit = rows[0].unit
    columns = Columns.of(shown, [label_of(row) for row in shown], face, unit)
    found = [numbers for row in shown if (numbers := numbers_of(row))]
    ends = [0.0, *(end for numbers in found for end in (numbers.low, numbers.high))]
    ticks, scale = columns.scale(*span(ends))
    foot = ROW * len(lines) + 6
    noise = noise_of(rows) if unit == SHARE else None
    body = list(_noise_band(noise, scale, foot)) if noise else []
    body += bottom_axis(ticks, scale, unit, 0, foot)
    for i, line in enumerate(lines):
        body += _drawn(line, 3 + ROW * i + ROW / 2, scale, columns)
    return Picture(
        title,
        subtitle_of(rows, unit_words(unit)),
        _described(rows),
        tuple(body),
        foot + FOOT,
        tuple(_notes(noise, shown)),
    )


@dataclass(frozen=True)
class _Line:
    """One line of the chart: a row, or words about several."""

    row: Row | None
    words: str = ""
    brief: str = ""


def _lines(rows: Sequence[Row], most: int, ranked: bool) -> list[_Line]:
    numbered = [row for row in rows if numbers_of(row)]
    sure = [row for row in numbered if row.unit != SHARE or (row.ci_low or 0.0) > 0]
    folded = len(numbered) - len(sure)
    if not ranked or not sure or folded < _FEWEST_FOLDED:
        sure, folded = numbered, 0
    if ranked:
        sure = sorted(sure, key=lambda row: (-(row.value or 0.0), label_of(row)))
    lines = [_Line(row) for row in sure[:most]]
    if len(sure) > most:
        lines.append(_Line(None, f"and {len(sure) - most:,} more, smaller"))
    if folded:
        highest = max(row.ci_high or 0.0 for row in numbered if row not in sure)
        upper = number(highest, SHARE, highest / 3)
        words = f"{folded:,} more, not distinguishable from 0 (each up to about {upper})"
        lines.append(_Line(None, words, f"{folded:,} more within the noise"))
    return lines + list(_without_numbers(rows, most))


def _without_numbers(rows: Sequence[Row], most: int) -> Iterator[_Line]:
    """Yield the rows without a number, as one line a reason where they are many."""
    empty = [row for row in rows if numbers_of(row) is None]
    if len(empty) <= min(most, 4):
        yield from map(_Line, empty)
        return
    by_reason = sorted(empty, key=reading)
    for reason, same in groupby(by_reason, key=reading):
        yield _Line(None, f"{len(list(same)):,} without a number: {reason}")


def _noise_band(half_width: float, scale: Linear, foot: float) -> Iterator[Element]:
    left, right = scale.within(-half_width), scale.within(half_width)
    yield rectangle(left, 0, right - left, foot, "noise")


def _drawn(line: _Line, y: float, scale: Linear, columns: Columns) -> Iterator[Element]:
    row = line.row
    if row is None:
        yield columns.words(line.words, y, line.brief)
        return
    yield columns.name(label_of(row), y)
    found = numbers_of(row)
    if found is None:
        yield mark(row, label_of(row), columns.words(reading(row), y))
        return
    zero, end = scale.within(0.0), scale.at(found.value)
    thick = rectangle(min(zero, end), y - _THICK / 2, abs(end - zero), _THICK, "bar")
    tip = stroke(end, y - _THICK / 2, end, y + _THICK / 2, "end")
    halo, whisker = lying_whisker(row, scale, y)
    yield mark(row, label_of(row), thick, halo, tip, whisker)
    yield from columns.numbers(row, y)


def _notes(noise: float | None, shown: Sequence[Row]) -> Iterator[Note]:
    if noise:
        yield Note("what noise alone could show", "noise")
    if any(row.is_open for row in shown):
        yield Note("so far: the period is still running")
    if any(row.value is not None and row.unit == SHARE and row.value < 0 for row in shown):
        yield Note("estimates are unbiased, so one of a share near 0 may lie below it")


def _described(rows: Sequence[Row]) -> str:
    numbered = sorted((row for row in rows if numbers_of(row)), key=lambda row: -(row.value or 0.0))
    if not numbered:
        return f"Bar chart of {len(rows)} rows, none with a number."
    first = "; ".join(f"{label_of(row)}: {reading(row)}" for row in numbered[:3])
    return f"Bar chart of {len(rows)} rows. Greatest: {first}."
