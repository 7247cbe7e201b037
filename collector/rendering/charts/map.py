"""Maps of cells in longitude and latitude: south at the bottom, west on the left.

One degree is as long to the north as to the east in the middle of the map.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import cos, radians
from typing import Final, TypeAlias

from ...analytics.rows import SHARE, Row
from ..coasts import coasts_within
from ..numbers import finest, numbers_of, reading
from ..places import Box, degrees
from .axes import labels_below
from .distribution import cell_of
from .frame import PAD, ChartOptions, Note, Picture, nothing, subtitle_of, text, unit_words
from .heat import Ramp, cell, faint, legend_height, opacity_of
from .marks import Marker, line_path, rectangle, stroke
from .scale import Linear, nice_ticks
from .svg import Drawn, Element, coordinate, element, paint

_HIGHEST: Final = 420  # user units of the plot
_GREATEST: Final = 80  # user units a cell
_ENTRY: Final = 40  # user units of a cell in words
_WORDS_ROOM: Final = 200  # user units to the right of a map at least, for cells in words
_MOST_MARKS: Final = 300  # cells that answer a pointer; more are drawn as one path a colour
_FOOT: Final = 28  # user units
_LEFT: Final = 56.0  # user units, for the labels of latitudes
_TICKS: Final = 6  # lines of the graticule each way, about
_LEAST_COS: Final = 0.2  # near the poles a map would be a strip
_COASTS_FROM: Final = 5.0  # degrees; of smaller maps the outline would be too coarse to be true
_Cell: TypeAlias = tuple[Box, Row]


def grid_picture(
    rows: Sequence[Row],
    title: str,
    options: ChartOptions,
    places: Mapping[str, Box] | None = None,
) -> Picture:
    """Return the cells of *rows*, which share a unit: items are "row,column" from the south-west.

    Args: places: where all cells of the map are; without them it has no degrees.
    """
    boxes = places or {row.item: _unplaced(place) for row in rows if (place := cell_of(row.item))}
    cells = [(boxes[row.item], row) for row in rows if row.item in boxes]
    if not any(numbers_of(row) for _, row in cells):
        return nothing(title, rows, options)
    ground = _Ground.of(list(boxes.values()), options, is_placed=bool(places))
    ramp = Ramp.of(rows)
    sure = [(box, row) for box, row in cells if _is_sure(row)]
    body: list[Drawn] = [rectangle(ground.x.start, ground.top, ground.wide, ground.high, "noise")]
    body += _empty([box for box, row in cells if numbers_of(row) is None], ground)
    if len(sure) <= _MOST_MARKS:
        marker = Marker.of(options, [row for _, row in sure])
        body += [_marked(box, row, ground, ramp, marker) for box, row in sure]
    else:
        body += _merged(sure, ground, ramp)
    body += _graticule(ground) if places else _sides(ground)
    body += _greatest(sure, ground, options.width - PAD)
    foot = ground.foot + _FOOT
    body += ramp.legend(foot, options.width)
    return Picture(
        title,
        subtitle_of(rows, f"{unit_words(rows[0].unit)} by location"),
        _described(cells, ground),
        tuple(body),
        foot + legend_height(options.width),
        tuple(_notes(cells, sure)),
    )


def _unplaced(place: tuple[int, int]) -> Box:
    """Return a cell of a known row and column only."""
    row, column = place
    return Box(column, row, column + 1, row + 1)


@dataclass(frozen=True)
class _Ground:
    """Where the map is, in user units, and what it covers."""

    x: Linear
    y: Linear
    box: Box
    is_placed: bool  # the cells have degrees

    @classmethod
    def of(cls, boxes: Sequence[Box], options: ChartOptions, *, is_placed: bool) -> _Ground:
        """Return the ground of all *boxes* as large as *options* allows."""
        west, south, east, north = zip(*boxes, strict=True)
        box = Box(min(west), min(south), max(east), max(north))
        narrow = max(cos(radians(box.middle[1])), _LEAST_COS) if is_placed else 1.0
        room = options.width - _LEFT - PAD - 14
        widest = max(narrow * (each.east - each.west) for each in boxes)
        highest = max(each.north - each.south for each in boxes)
        unit = min(
            room / (narrow * (box.east - box.west)),
            _HIGHEST / (box.north - box.south),
            _GREATEST / max(widest, highest),
        )
        top = 6.0
        foot = top + unit * (box.north - box.south)
        x = Linear(box.west, box.east, _LEFT, _LEFT + unit * narrow * (box.east - box.west))
        return cls(x, Linear(box.south, box.north, foot, top), box, is_placed)

    @property
    def top(self) -> float:
        return self.y.end

    @property
    def foot(self) -> float:
        return self.y.start

    @property
    def wide(self) -> float:
        return self.x.end - self.x.start

    @property
    def high(self) -> float:
        return self.foot - self.top

    def name(self, box: Box, row: Row) -> str:
        """Return how a cell is called."""
        return box.in_words if self.is_placed else row.item

    def placed(self, box: Box) -> tuple[float, float, float, float]:
        """Return left, top, width and height of a cell."""
        left, top = self.x.at(box.west), self.y.at(box.north)
        return left, top, self.x.at(box.east) - left, self.y.at(box.south) - top


def _is_sure(row: Row) -> bool:
    """Return whether a cell is distinguishable from an empty one."""
    numbers = numbers_of(row)
    return numbers is not None and (row.unit != SHARE or numbers.low > 0)


def _marked(box: Box, row: Row, ground: _Ground, ramp: Ramp, marker: Marker) -> Element:
    x, y, wide, high = ground.placed(box)
    step = ramp.step(row.value or 0.0)
    gap = 0.5 if min(wide, high) > 8 else 0.0
    drawn = cell(x + gap, y + gap, wide - 2 * gap, high - 2 * gap, step, opacity_of(row))
    return marker.mark(row, ground.name(box, row), drawn)


def _greatest(sure: Sequence[_Cell], ground: _Ground, right: float) -> Iterator[Element]:
    """Yield the greatest cells in words, where there is room for them next to the map."""
    left = ground.x.end + 2 * PAD
    if right - left < _WORDS_ROOM:
        return
    ranked = sorted(sure, key=lambda cell: -(cell[1].value or 0.0))
    least = finest([row for _, row in sure])
    for rank, (box, row) in enumerate(ranked[: int(ground.high / _ENTRY)]):
        top = ground.top + _ENTRY * rank + PAD
        yield text(reading(row, least=least), left, top, "value", room=right - left)
        yield text(ground.name(box, row), left, top + _ENTRY / 2 - 4, "label", room=right - left)


def _merged(sure: Sequence[_Cell], ground: _Ground, ramp: Ramp) -> Iterator[Element]:
    """Yield one path a step and certainty."""
    paths: dict[tuple[int, float], list[str]] = {}
    for box, row in sure:
        key = ramp.step(row.value or 0.0), opacity_of(row)
        paths.setdefault(key, []).append(_rectangle(box, ground))
    for (step, opacity), rectangles in sorted(paths.items()):
        painted = {**paint(f"cell-{step}"), "fill_opacity": faint(opacity)}
        yield element("path", d="".join(rectangles), **painted)


def _empty(boxes: Sequence[Box], ground: _Ground) -> Iterator[Element]:
    if boxes:
        path = "".join(_rectangle(box, ground) for box in boxes)
        yield element("path", d=path, **paint("paper"))
        yield element("path", d=path, **paint("empty"))


def _rectangle(box: Box, ground: _Ground) -> str:
    x, y, wide, high = map(coordinate, ground.placed(box))
    return f"M{x},{y}h{wide}v{high}h-{wide}z"


def _sides(ground: _Ground) -> Iterator[Drawn]:
    """Yield where the sides of a map without degrees are."""
    left = ground.x.start
    yield text("north", left - 6, ground.top + 7, "tick", "end")
    yield text("south", left - 6, ground.foot - 7, "tick", "end")
    yield from labels_below((left, ground.x.end), ("west", "east"), ground.foot, ground.x)


def _graticule(ground: _Ground) -> Iterator[Drawn]:
    """Yield coasts, then lines of equal longitude and latitude with their degrees."""
    box, x, y = ground.box, ground.x, ground.y
    if max(box.east - box.west, box.north - box.south) >= _COASTS_FROM:
        lines = [[(x.at(a), y.at(b)) for a, b in line] for line in coasts_within(box)]
        if lines:
            yield element("path", d="".join(map(line_path, lines)), **paint("gap"))
    across, up = _ticks(box.west, box.east), _ticks(box.south, box.north)
    for tick in across:
        yield stroke(x.at(tick), ground.top, x.at(tick), ground.foot, "reference")
    for tick in up:
        yield stroke(x.start, y.at(tick), x.end, y.at(tick), "reference")
        yield text(degrees(tick, "S", "N"), x.start - 6, y.at(tick), "tick", "end")
    labels = [degrees(tick, "W", "E") for tick in across]
    yield from labels_below([x.at(tick) for tick in across], labels, ground.foot, x)


def _ticks(low: float, high: float) -> list[float]:
    slack = 1e-9 * (high - low)
    return [tick for tick in nice_ticks(low, high, _TICKS) if low - slack <= tick <= high + slack]


def _notes(cells: Sequence[_Cell], sure: Sequence[_Cell]) -> Iterator[Note]:
    numbered = sum(numbers_of(row) is not None for _, row in cells)
    if hidden := numbered - len(sure):
        yield Note(f"{_cells(hidden)} not distinguishable from 0", "noise")
    empty = [row for _, row in cells if numbers_of(row) is None]
    if empty:
        yield Note(f"{_cells(len(empty))} without a number: {reading(empty[0])}")


def _cells(count: int) -> str:
    return f"{count:,} cell{'' if count == 1 else 's'}"


def _described(cells: Sequence[_Cell], ground: _Ground) -> str:
    numbered = [(box, row) for box, row in cells if numbers_of(row)]
    place, top = max(numbered, key=lambda cell: cell[1].value or 0.0)
    where = place.in_words if ground.is_placed else f"row {top.item.replace(',', ', column ')}"
    covered = f", {ground.box.in_words}" if ground.is_placed else ""
    return f"Map of a grid of {_cells(len(cells))}{covered}. Greatest: {where}: {reading(top)}."
