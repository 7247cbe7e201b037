"""Maps of a grid of locations: south at the bottom, west on the left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...analytics.rows import SHARE, Row
from ..numbers import numbers_of, reading, tick_labels
from .axes import labels_below
from .distribution import cell_of
from .frame import PAD, Face, Note, Picture, nothing, subtitle_of, text, unit_words
from .heat import Ramp, cell, faint, legend_height, opacity_of
from .marks import Marker, rectangle
from .scale import Linear, nice_ticks
from .svg import Element, coordinate, element, paint

_HIGHEST: Final = 420  # user units of the plot
_GREATEST: Final = 56  # user units a cell
_MOST_MARKS: Final = 300  # cells that answer a pointer; more are drawn as one path a colour
_FOOT: Final = 28  # user units


@dataclass(frozen=True)
class Box:
    """What the grid covers, in degrees."""

    west: float
    south: float
    east: float
    north: float


def grid_picture(
    rows: Sequence[Row],
    title: str,
    face: Face,
    shape: tuple[int, int] | None = None,
    box: Box | None = None,
) -> Picture:
    """Return the cells of *rows*, which share a unit: items are "row,column" from the south-west.

    Args: shape: rows and columns of the whole grid; by default those that occur.
          box: for labels in degrees.
    """
    cells = [(place, row) for row in rows if (place := cell_of(row.item))]
    if not any(numbers_of(row) for _, row in cells):
        return nothing(title, rows, face)
    downs = max(place[0] for place, _ in cells) + 1
    acrosses = max(place[1] for place, _ in cells) + 1
    if shape:
        downs, acrosses = max(shape[0], downs), max(shape[1], acrosses)
    ground = _ground(downs, acrosses, face)
    ramp = Ramp.of(rows)
    sure = [(place, row) for place, row in cells if _is_sure(row)]
    body = [rectangle(ground.left, ground.top, ground.wide, ground.high, "noise")]
    body += _empty([place for place, row in cells if numbers_of(row) is None], ground)
    if len(sure) <= _MOST_MARKS:
        marker = Marker.of(face, [row for _, row in sure])
        body += [_marked(place, row, ground, ramp, marker) for place, row in sure]
    else:
        body += _merged(sure, ground, ramp)
    body += _edges(ground, box)
    foot = ground.top + ground.high + _FOOT
    body += ramp.legend(foot, face.width)
    return Picture(
        title,
        subtitle_of(rows, f"{unit_words(rows[0].unit)} by location"),
        _described(cells, (downs, acrosses)),
        tuple(body),
        foot + legend_height(face.width),
        tuple(_notes(cells, sure)),
    )


@dataclass(frozen=True)
class _Ground:
    """Where the grid is, in user units."""

    left: float
    top: float
    size: float
    downs: int
    acrosses: int

    @property
    def wide(self) -> float:
        return self.size * self.acrosses

    @property
    def high(self) -> float:
        return self.size * self.downs

    def corner(self, place: tuple[int, int]) -> tuple[float, float]:
        """Return the upper left corner of a cell; row 0 is the southernmost."""
        down, across = place
        return self.left + self.size * across, self.top + self.size * (self.downs - 1 - down)


def _ground(downs: int, acrosses: int, face: Face) -> _Ground:
    left = PAD + 46.0
    size = min((face.width - left - PAD - 14) / acrosses, _HIGHEST / downs, _GREATEST)
    return _Ground(left, 6.0, size, downs, acrosses)


def _is_sure(row: Row) -> bool:
    """Return whether a cell can be told from an empty one."""
    numbers = numbers_of(row)
    return numbers is not None and (row.unit != SHARE or numbers.low > 0)


def _marked(
    place: tuple[int, int], row: Row, ground: _Ground, ramp: Ramp, marker: Marker
) -> Element:
    x, y = ground.corner(place)
    step = ramp.step(row.value or 0.0)
    gap = 0.5 if ground.size > 8 else 0.0
    size = ground.size - 2 * gap
    return marker.mark(row, row.item, cell(x + gap, y + gap, size, size, step, opacity_of(row)))


def _merged(
    sure: Sequence[tuple[tuple[int, int], Row]], ground: _Ground, ramp: Ramp
) -> Iterator[Element]:
    """Yield one path a step and certainty."""
    paths: dict[tuple[int, float], list[str]] = {}
    for place, row in sure:
        key = ramp.step(row.value or 0.0), opacity_of(row)
        paths.setdefault(key, []).append(_square(place, ground))
    for (step, opacity), squares in sorted(paths.items()):
        painted = {**paint(f"cell-{step}"), "fill_opacity": faint(opacity)}
        yield element("path", d="".join(squares), **painted)


def _empty(places: Sequence[tuple[int, int]], ground: _Ground) -> Iterator[Element]:
    if places:
        path = "".join(_square(place, ground) for place in places)
        yield element("path", d=path, **paint("paper"))
        yield element("path", d=path, **paint("empty"))


def _square(place: tuple[int, int], ground: _Ground) -> str:
    x, y = map(coordinate, ground.corner(place))
    size = coordinate(ground.size)
    return f"M{x},{y}h{size}v{size}h-{size}z"


def _edges(ground: _Ground, box: Box | None) -> Iterator[Element]:
    left, foot = ground.left, ground.top + ground.high
    right = left + ground.wide
    if box is None:
        yield text("north", left - 6, ground.top + 7, "tick", "end")
        yield text("south", left - 6, foot - 7, "tick", "end")
        x = Linear(0, 1, left, right)
        yield from labels_below((left, right), ("west", "east"), foot, x)
        return
    x = Linear(box.west, box.east, left, right)
    y = Linear(box.south, box.north, foot, ground.top)
    across = [t for t in nice_ticks(box.west, box.east, 6) if box.west <= t <= box.east]
    up = [t for t in nice_ticks(box.south, box.north, 6) if box.south <= t <= box.north]
    yield from labels_below([x.at(t) for t in across], _degrees(across), foot, x)
    for tick, label in zip(up, _degrees(up), strict=True):
        yield text(label, left - 6, y.at(tick), "tick", "end")


def _degrees(ticks: Sequence[float]) -> list[str]:
    return [f"{label}°" for label in tick_labels(ticks, "")] if ticks else []


def _notes(cells: Sequence[tuple[tuple[int, int], Row]], sure: Sequence[object]) -> Iterator[Note]:
    numbered = sum(numbers_of(row) is not None for _, row in cells)
    if numbered > len(sure):
        yield Note(f"{numbered - len(sure):,} cells not distinguishable from 0", "noise")
    empty = [row for _, row in cells if numbers_of(row) is None]
    if empty:
        yield Note(f"{len(empty):,} cells without a number: {reading(empty[0])}")


def _described(cells: Sequence[tuple[tuple[int, int], Row]], shape: tuple[int, int]) -> str:
    numbered = [row for _, row in cells if numbers_of(row)]
    top = max(numbered, key=lambda row: row.value or 0.0)
    return (
        f"Map of a grid of {shape[0]} rows from the south and {shape[1]} columns from the west. "
        f"Greatest: row {top.item.replace(',', ', column ')}: {reading(top)}."
    )
