"""Cumulative distributions: the share up to each threshold, its band, and quantiles read off it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ..analytics.rows import SHARE, Row
from .axes import FOOT, fitted_ticks, labels_below, left_axis, left_width
from .buckets import threshold_of
from .frame import DEFAULT, PAD, Face, Note, Picture, finish, nothing, subtitle_of, text
from .labels import label_of
from .letters import width_of
from .marks import around, dot, line_path, spot, stroke
from .number import extent, number, numbers_of, tick_labels
from .remarks import remarks
from .scale import Linear
from .style import SMALL, paint
from .svg import Element, element, group

_HEIGHT: Final = 220  # user units of the plot
_MOST_SPOTS: Final = 200
_TICKS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class _Step:
    """A threshold and the share up to it, with its interval."""

    at: float
    value: float
    low: float
    high: float
    row: Row


def cdf(
    rows: Sequence[Row],
    title: str,
    face: Face = DEFAULT,
    x_unit: str = "",
    quantiles: Sequence[float] = (),
) -> str:
    """Return an SVG of *rows*: items are thresholds in *x_unit*, values shares up to them.

    Args: quantiles: levels that are read off the curve as it is drawn, straight between thresholds.
    """
    return finish(cdf_picture(rows, title, face, x_unit, quantiles), face)


def cdf_picture(
    rows: Sequence[Row],
    title: str,
    face: Face,
    x_unit: str = "",
    quantiles: Sequence[float] = (),
) -> Picture:
    """Return the curve of *rows*; items that are no numbers stand side by side."""
    steps, numeric = _steps(rows)
    if len(steps) < 2:
        return nothing(title, rows, face)
    left = PAD + left_width(_TICKS, SHARE)
    x = Linear(steps[0].at, steps[-1].at, left + 8, face.width - PAD - 26)
    y = Linear(*extent(rows, 0.0, 1.0), 8 + _HEIGHT, 8)
    body = left_axis(_TICKS, y, SHARE, x.start, x.end)
    body += _foot(steps, numeric, x, y)
    body += _curve(steps, x, y)
    found = list(_quantiles(steps, quantiles)) if numeric else []
    body += _markers(found, x, y)
    body.append(group(_spots(steps, x, y), **paint("hover")))
    unit = f"share of devices up to each value in {x_unit}" if x_unit else "share of devices up to"
    said = "; ".join(_said(one, x_unit) for one in found)
    notes = [*([Note(said)] if said else []), *remarks(rows)]
    description = f"Cumulative distribution at {len(steps)} thresholds. {said}"
    subtitle = subtitle_of(rows, unit)
    return Picture(title, subtitle, description, tuple(body), _HEIGHT + 8 + FOOT, tuple(notes))


def _steps(rows: Sequence[Row]) -> tuple[list[_Step], bool]:
    """Return the rows with numbers by ascending threshold, and whether items are numbers."""
    places = [threshold_of(row.item) for row in rows]
    numeric = all(place is not None for place in places)
    steps = [
        _Step(place if numeric and place is not None else float(rank), *found, row)
        for rank, (row, place) in enumerate(zip(rows, places, strict=True))
        if (found := numbers_of(row))
    ]
    steps.sort(key=lambda step: step.at)
    return [step for i, step in enumerate(steps) if not i or step.at > steps[i - 1].at], numeric


def _foot(steps: Sequence[_Step], numeric: bool, x: Linear, y: Linear) -> Iterator[Element]:
    if numeric:
        ticks = fitted_ticks(x.low, x.high, "", x.end - x.start)
        ticks = tuple(tick for tick in ticks if x.low <= tick <= x.high)
        places, names = [x.at(tick) for tick in ticks], tick_labels(ticks, "")
    else:
        places, names = [x.at(step.at) for step in steps], [label_of(s.row) for s in steps]
    for place in places:
        yield stroke(place, y.start, place, y.start + 4, "axis")
    yield from labels_below(places, names, y.start, x)


def _curve(steps: Sequence[_Step], x: Linear, y: Linear) -> Iterator[Element]:
    upper = [(x.at(step.at), y.at(step.high)) for step in steps]
    lower = [(x.at(step.at), y.at(step.low)) for step in reversed(steps)]
    yield element("path", d=line_path([*upper, *lower]) + "z", **paint("band-1"))
    middle = [(x.at(step.at), y.at(step.value)) for step in steps]
    yield element("path", d=line_path(middle), **paint("line-1"))


@dataclass(frozen=True)
class _Quantile:
    """Where the curve reaches a level, and where the ends of its interval do, if they do."""

    level: float
    at: float
    low: float | None
    high: float | None


def _quantiles(steps: Sequence[_Step], levels: Sequence[float]) -> Iterator[_Quantile]:
    for level in levels:
        at = _crossing([(step.at, step.value) for step in steps], level)
        if at is not None:
            low = _crossing([(step.at, step.high) for step in steps], level)
            high = _crossing([(step.at, step.low) for step in steps], level)
            yield _Quantile(level, at, low, high)


def _crossing(points: Sequence[tuple[float, float]], level: float) -> float | None:
    """Return where the line through *points* first reaches *level*, or None."""
    for (x1, y1), (x2, y2) in pairwise(points):
        if y1 < level <= y2:
            return x1 + (x2 - x1) * (level - y1) / (y2 - y1)
    return None


def _markers(found: Sequence[_Quantile], x: Linear, y: Linear) -> Iterator[Element]:
    """Yield a drop line, a dot and a name for each quantile, names only where they have room."""
    free = float("-inf")
    for one in found:
        place, level = x.at(one.at), y.at(one.level)
        yield stroke(x.start, level, place, level, "reference")
        yield stroke(place, level, place, y.start, "reference")
        yield dot(place, level, 1)
        name = _name(one.level)
        wide = width_of(name, SMALL)
        if place + 6 > free:
            yield text(name, place + 6, level + 12, "aside")
            free = place + 6 + wide


def _name(level: float) -> str:
    return f"p{100 * level:.6g}"


def _said(one: _Quantile, x_unit: str) -> str:
    if one.low is None:
        return f"{_name(one.level)} not within these thresholds"
    if one.high is None:
        return f"{_name(one.level)} at least {number(one.low, x_unit, one.at - one.low)}"
    half = (one.high - one.low) / 2
    ends = [number(end, "", half) for end in (one.low, one.high)]
    return f"{_name(one.level)} ≈ {number(one.at, x_unit, half)} ({ends[0]} to {ends[1]})"


def _spots(steps: Sequence[_Step], x: Linear, y: Linear) -> Iterator[Element]:
    every = -(-len(steps) // _MOST_SPOTS)
    width = (x.end - x.start) / max(len(steps) - 1, 1) * every
    for step in steps[::every]:
        top, foot = y.at(step.high), y.at(step.low)
        left, wide = around(x, x.at(step.at), width)
        yield spot(step.row, label_of(step.row), left, top, wide, foot - top)
