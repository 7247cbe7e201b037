"""The chart of an answer: what its verb says of it, and else what the rows say themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ...analytics.rows import ITEM, LEFT_OUT, MEASURE, SHARE, TIME, Chart, Row, units_of
from ..places import places_of
from ..possible import possible
from .bars import bars_picture, difference_picture, dots_picture
from .distribution import cdf_picture, cell_of, histogram_picture
from .frame import (
    DEFAULT,
    SEPARATOR,
    Before,
    ChartOptions,
    Mark,
    Note,
    Picture,
    finish,
    label_of,
    stacked,
    varying,
)
from .heat import heat_picture
from .line import line_picture
from .map import grid_picture
from .svg import SERIES

_ORDERED: Final = (Chart.ORDERED, Chart.STEPS)  # the rows have an order of their own
_SHAPES: Final = (Chart.CURVE, Chart.BUCKETS, Chart.MAP)  # one picture for each slice
_MANY: Final = 4  # values of both dimensions from which a two-way table is read better as cells
_MOST: Final = 6  # pictures below one another


@dataclass(frozen=True)
class _Answer:
    """What the pictures of an answer have in common."""

    kind: Chart
    title: str
    options: ChartOptions
    x_unit: str
    facts: Mapping[str, Any]
    marks: Sequence[Mark]
    before: Before | None

    def picture(self, rows: Sequence[Row]) -> Picture:
        """Return the picture of *rows*, which share a unit."""
        kind, names, common = self.kind, varying(rows), (self.title, self.options)
        if kind in _SHAPES:
            return _of_slice(self._shape(rows), _slice(rows[0]))
        if kind == Chart.DIFFERENCES:
            return difference_picture(rows, *common)
        if TIME in names:
            return line_picture(rows, *common, self.marks, self._before(rows[0]))
        if len(names) >= 2:
            is_table = kind == Chart.TABLE or _is_wide(rows, names)
            return (heat_picture if is_table else dots_picture)(rows, *common)
        if rows[0].unit == SHARE and (kind in _ORDERED or names in ((), (ITEM,))):
            return bars_picture(rows, *common, ranked=kind not in _ORDERED)
        return dots_picture(rows, *common)

    def _before(self, row: Row) -> Before | None:
        """Return what of the earlier period shares unit and measure with *row*."""
        if self.before is None:
            return None
        measure = row.dimensions.get(MEASURE)
        rows = [
            other
            for other in self.before.rows
            if other.unit == row.unit and other.dimensions.get(MEASURE) == measure
        ]
        return replace(self.before, rows=rows)

    def _shape(self, rows: Sequence[Row]) -> Picture:
        if self.kind == Chart.CURVE:
            return cdf_picture(rows, self.title, self.options, self.x_unit)
        if self.kind == Chart.BUCKETS:
            return histogram_picture(rows, self.title, self.options, self.x_unit)
        if all(cell_of(row.item) for row in rows):
            return grid_picture(rows, self.title, self.options, places_of(self.facts))
        return bars_picture(rows, self.title, self.options)


def chart_of(
    kind: Chart,
    rows: Sequence[Row],
    title: str,
    options: ChartOptions = DEFAULT,
    x_unit: str = "",
    facts: Mapping[str, Any] | None = None,
    marks: Sequence[Mark] = (),
    before: Before | None = None,
) -> str:
    """Return the *pictures_of* the same arguments as one SVG."""
    pictures = pictures_of(kind, rows, title, options, x_unit, facts, marks, before)
    return finish(pictures[0], options) if len(pictures) == 1 else stacked(title, pictures, options)


def pictures_of(
    kind: Chart,
    rows: Sequence[Row],
    title: str,
    options: ChartOptions,
    x_unit: str = "",
    facts: Mapping[str, Any] | None = None,
    marks: Sequence[Mark] = (),
    before: Before | None = None,
) -> list[Picture]:
    """Return what is drawn of the *rows* of an answer, whose verb deserves a chart of this *kind*.

    Numbers of different units share no scale: they are drawn below one another, as are the
    distributions and maps of several slices, at most _MOST of them.

    Args: x_unit: of the numbers whose distribution it is.
          facts: of the answer; of a map where its cells are.
          marks: notes, on each time axis.  before: an earlier period, below each line over time.
    """
    rows = possible(rows, kind)
    before = before and replace(before, rows=possible(before.rows, kind))
    parts = list(_parts(kind, rows))
    answer = _Answer(kind, title, options, x_unit, facts or {}, marks, before)
    pictures = [answer.picture(part) for part in parts[:_MOST]] or [
        bars_picture(rows, title, options)
    ]
    if len(parts) > _MOST:
        more = Note(f"and {len(parts) - _MOST:,} more pictures: ask for fewer slices")
        pictures[-1] = replace(pictures[-1], notes=(*pictures[-1].notes, more))
    if left_out := (facts or {}).get(LEFT_OUT):
        notes = (*pictures[-1].notes, *map(Note, left_out))
        pictures[-1] = replace(pictures[-1], notes=notes)
    return pictures


def _parts(kind: Chart, rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Yield the rows that share a unit, a measure and, where a picture is of one, a slice."""
    for unit in units_of(rows):
        groups: dict[tuple[str | None, str], list[Row]] = {}
        for row in rows:
            if row.unit == unit:
                slice_label = _slice(row) if kind in (*_SHAPES, Chart.TABLE) else ""
                groups.setdefault((row.dimensions.get(MEASURE), slice_label), []).append(row)
        yield from groups.values()


def _slice(row: Row) -> str:
    """Return what a distribution, map or table is of: all but the dimensions within it."""
    names = list(row.dimensions)
    within = [ITEM] if ITEM in row.dimensions else names[-2:]
    return label_of(row, within)


def _of_slice(picture: Picture, name: str) -> Picture:
    subtitle = SEPARATOR.join(part for part in (name, picture.subtitle) if part)
    return replace(picture, subtitle=subtitle)


def _is_wide(rows: Sequence[Row], names: Sequence[str]) -> bool:
    counts = [len({row.dimensions.get(name) for row in rows}) for name in names]
    return min(counts) >= _MANY or max(counts) * min(counts) > SERIES * _MANY
