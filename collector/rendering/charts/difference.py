"""Differences with their intervals around zero: compare, and the lift of a test.

No colour says good or bad, and a difference that noise alone could make says so in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ...analytics.rows import MEASURE, RELATIVE, SHARE, Row, chance
from ..numbers import POINTS, extent, numbers_of, reading, width_of
from .axes import FOOT, Columns, bottom_axis
from .frame import (
    DEFAULT,
    PAD,
    Face,
    Note,
    Picture,
    finish,
    label_of,
    named,
    nothing,
    remarks,
    subtitle_of,
    text,
    unit_words,
)
from .marks import dot, lying_whisker, mark, stroke
from .scale import Linear
from .svg import SMALL, Element

ROW: Final = 40  # user units: two lines of text
_FEW: Final = 3  # differences of which the fakes that could turn them are told below
_UP: Final = 8  # user units from the middle of a row to its first line
NO_CHANGE: Final = "no detectable change"


def difference(rows: Sequence[Row], title: str, face: Face = DEFAULT) -> str:
    """Return an SVG of *rows*, each a difference, with zero in view."""
    return finish(difference_picture(rows, title, face), face)


def difference_picture(rows: Sequence[Row], title: str, face: Face) -> Picture:
    """Return the differences of *rows*, which share a unit; shares differ by points."""
    if not any(map(numbers_of, rows)):
        return nothing(title, rows, face)
    drawn = rows[: face.most_rows]
    unit = POINTS if rows[0].unit == SHARE else rows[0].unit
    labels, common = named(drawn, unsaid=(MEASURE,))
    names = [label or "difference" for label in labels]
    least = max(width_of(verdict(row), SMALL) for row in drawn)
    columns = Columns.of(drawn, names, face, unit, True, least)
    ends = extent(drawn, 0.0)
    reach = max(map(abs, ends)) or 1.0
    ticks, scale = columns.scale(min(ends[0], -reach / 3), max(ends[1], reach / 3))
    foot = float(ROW * len(drawn) + 6)
    body = bottom_axis(ticks, scale, unit, 0, foot)
    body.append(stroke(scale.at(0), 0, scale.at(0), foot, "whisker"))
    for i, row in enumerate(drawn):
        body += _drawn(row, names[i], 3 + ROW * i + ROW / 2, scale, columns)
    return Picture(
        title,
        subtitle_of(drawn, common, _words(unit)),
        _described(drawn, unit),
        tuple(body),
        foot + FOOT,
        tuple(_notes(rows, drawn)),
    )


def _words(unit: str) -> str:
    """Return what the axis is."""
    if unit == RELATIVE:
        return f"difference {unit_words(unit)}"
    return f"difference in {unit_words(unit)}" if unit else "difference"


def is_detectable(row: Row) -> bool:
    """Return whether the interval of a difference leaves zero out."""
    numbers = numbers_of(row)
    return numbers is not None and (numbers.low > 0 or numbers.high < 0)


def verdict(row: Row) -> str:
    """Return in words what a difference shows: higher, lower, or nothing that noise does not."""
    if numbers_of(row) is None:
        return "no number"
    if not is_detectable(row):
        return NO_CHANGE
    way = "higher" if (row.value or 0.0) > 0 else "lower"
    return way if row.p_value is None else f"{way}, {chance(row.p_value)}"


def _drawn(row: Row, name: str, y: float, scale: Linear, columns: Columns) -> Iterator[Element]:
    yield columns.name(name, y)
    numbers = numbers_of(row)
    if numbers is None:
        yield mark(row, name, columns.words(reading(row), y))
        return
    sure = is_detectable(row)
    halo, whisker = lying_whisker(row, scale, y, "reach-1" if sure else "quiet-reach")
    point = (
        dot(scale.at(numbers.value), y, 1, size=5) if sure else _hollow(scale.at(numbers.value), y)
    )
    yield mark(row, name, halo, whisker, point, unit=columns.unit)
    yield from columns.numbers(row, y - _UP, "value" if sure else "margin")
    yield text(verdict(row), columns.width - PAD, y + _UP, "note", "end")


def _hollow(x: float, y: float) -> Element:
    return dot(x, y, 1, hollow=True, size=4.5, look="quiet")


def _notes(rows: Sequence[Row], drawn: Sequence[Row]) -> Iterator[Note]:
    if len(rows) > len(drawn):
        yield Note(f"and {len(rows) - len(drawn):,} more")
    noted = [replace(row, note=None) if row.note == NO_CHANGE else row for row in drawn]
    yield from remarks(noted)
    for row in drawn if len(drawn) <= _FEW else ():
        if row.fakes_to_flip is not None and is_detectable(row):
            name = f"{label_of(row)}: " if label_of(row) else ""
            yield Note(f"{name}{row.fakes_to_flip:,} fake devices could turn the sign")


def _described(rows: Sequence[Row], unit: str) -> str:
    said = "; ".join(
        f"{label_of(row) or 'difference'}: {reading(row, unit, signed=True)}, {verdict(row)}"
        for row in rows[:5]
    )
    return f"Differences with intervals around zero. {said}."
