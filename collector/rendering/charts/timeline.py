"""Which rows make which line over time, in which order, and where a line is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from ...analytics.rows import TIME, Period, Row
from ..numbers import Numbers, numbers_of
from .frame import constant, label_of
from .scale import is_gap, usual_step
from .svg import SERIES


class Point(NamedTuple):
    """A row at its place in time: hours from 1970, or its rank where times are no dates."""

    at: float
    row: Row


Run: TypeAlias = list[Point]  # neighbours in time, each with a number


@dataclass(frozen=True)
class Series:
    """The points of one line, ascending; ``number`` selects its colour and marker."""

    label: str
    number: int
    points: tuple[Point, ...]

    @cached_property
    def numbered(self) -> list[tuple[Point, Numbers]]:
        """Its points that have numbers, with them."""
        return [(point, numbers) for point in self.points if (numbers := numbers_of(point.row))]

    @property
    def level(self) -> float:
        """The mean of its numbers."""
        values = [numbers.value for _, numbers in self.numbered]
        return sum(values) / len(values) if values else 0.0


@dataclass(frozen=True)
class Timeline:
    """The series that are drawn, how many are not, and what the places stand for."""

    series: tuple[Series, ...]
    left_out: int
    dated: bool
    names: tuple[str, ...]  # of the places, where they are ranks
    step: float


def timeline(rows: Sequence[Row], most: int = SERIES) -> Timeline:
    """Return the lines of *rows*: the greatest where there are more than *most*."""
    names = tuple(dict.fromkeys(row.dimensions.get(TIME, "") for row in rows))
    hours = [period.hours for name in names if (period := Period.read(name))]
    dated = len(hours) == len(names)
    places = dict(zip(names, hours if dated else map(float, range(len(names))), strict=True))
    common = {TIME, *constant(rows)}
    lines: dict[str, list[Point]] = {}
    for row in rows:
        point = Point(places[row.dimensions.get(TIME, "")], row)
        lines.setdefault(label_of(row, common), []).append(point)
    series = [
        Series(label, 1, tuple(sorted(points, key=lambda point: point.at)))
        for label, points in lines.items()
    ]
    if len(series) > most:
        series.sort(key=lambda line: -line.level)
    numbered = enumerate(series[:most], 1)
    drawn = tuple(Series(entry.label, number, entry.points) for number, entry in numbered)
    step = usual_step(sorted(places.values()))
    return Timeline(drawn, len(series) - len(drawn), dated, names, step)


def runs(series: Series, step: float) -> list[Run]:
    """Return the stretches of *series* without a gap: neighbours in time, each with a number."""
    stretches: list[Run] = []
    before: Point | None = None
    for point in series.points:
        if numbers_of(point.row) is None:
            before = None
            continue
        if before is None or is_gap(before.at, point.at, step):
            stretches.append([])
        stretches[-1].append(point)
        before = point
    return stretches
