"""Coasts of the world, coarse: what makes a map of degrees recognizable.

Made by ``tests/support/references/make_coasts.py`` from the land of Natural Earth at 1:110 million,
which is in the public domain.  Bays of less than half a degree are straight lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Final, TypeAlias

from .places import Box

Point: TypeAlias = tuple[float, float]  # longitude and latitude, in degrees
PARTS: Final = 10  # of a degree: the unit of the file
_FILE: Final = "coasts.txt"


@lru_cache(maxsize=64)  # maps: each is drawn twice, and again at every visit
def coasts_within(box: Box) -> tuple[tuple[Point, ...], ...]:
    """Return the lines of coasts that lie in *box*, cut off at its ends.

    A line that leaves the box and comes back is several.  Of a box at sea there are none.
    """
    return tuple(tuple(piece) for line in _coasts() for piece in _pieces(line, box))


@cache
def _coasts() -> tuple[tuple[Point, ...], ...]:
    text = (files(__package__) / _FILE).read_text("ascii")
    return tuple(tuple(_points(line)) for line in text.splitlines())


def _points(line: str) -> Iterator[Point]:
    """Yield the points of a line of the file: the first, then the steps to each next."""
    x = y = 0
    numbers = [int(number) for number in line.split()]
    for step_x, step_y in zip(numbers[::2], numbers[1::2], strict=True):
        x, y = x + step_x, y + step_y
        yield x / PARTS, y / PARTS


def _pieces(line: tuple[Point, ...], box: Box) -> Iterator[list[Point]]:
    piece: list[Point] = []
    for start, end in pairwise(line):
        inside = _clipped(start, end, box)
        if piece and (inside is None or inside[0] != piece[-1]):
            yield piece
            piece = []
        if inside is not None:
            piece = [*(piece or [inside[0]]), inside[1]]
    if piece:
        yield piece


def _clipped(start: Point, end: Point, box: Box) -> tuple[Point, Point] | None:
    """Return the part of a straight line that is in *box*, None if there is none.

    Source: Liang and Barsky, ACM Transactions on Graphics 3(1), 1984.
    """
    first, last = 0.0, 1.0
    lows, highs = (box.west, box.south), (box.east, box.north)
    for a, b, low, high in zip(start, end, lows, highs, strict=True):
        step = b - a
        if not step:
            if not low <= a <= high:
                return None
            continue
        near, far = sorted(((low - a) / step, (high - a) / step))
        first, last = max(first, near), min(last, far)
    if first >= last:
        return None
    return _between(start, end, first), _between(start, end, last)


def _between(start: Point, end: Point, part: float) -> Point:
    if part in (0.0, 1.0):
        return end if part else start
    return start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1])
