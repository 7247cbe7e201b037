"""Distributions of numbers: histograms, and cumulative shares with quantiles read off them.

A histogram has a step for each bucket with its whisker, or a band where buckets are narrow.  Items
stand for numbers: the edges of a bucket, a threshold, a cell of a grid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from math import isclose
from typing import Final

from ...analytics.monotone import isotonic, weights_of
from ...analytics.rows import SHARE, Row
from ..letters import width_of
from ..numbers import extent, number, numbers_of, reading, tick_labels
from .axes import FOOT, fitted_ticks, labels_below, left_axis, left_width, short_ticks
from .frame import (
    PAD,
    ChartOptions,
    Note,
    Picture,
    label_of,
    nothing,
    remarks,
    subtitle_of,
    text,
    unit_words,
)
from .marks import (
    Marker,
    dot,
    line_path,
    median_half_width,
    missing_mark,
    rectangle,
    span_around,
    standing_whisker,
    stroke,
)
from .scale import Linear, nice_ticks
from .svg import SMALL, Drawn, Element, Placed, element, group, paint

_NUMBER: Final = r"[-\u2212+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_BETWEEN: Final = r"\s*(?:\.\.\.?|…|–|—|-|to|,|;|/)\s*"
_EDGES: Final = re.compile(rf"[\[(]?\s*({_NUMBER}){_BETWEEN}({_NUMBER})\s*[\])]?(?:\s*\D*)?")
_ALONE: Final = re.compile(rf"\D*?({_NUMBER})(?:\s*\D*)?")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_HEIGHT: Final = 200  # user units of the plot of a histogram
_MOST: Final = 512  # buckets
_NARROW: Final = 9.0  # user units: narrower buckets have a band for whiskers
_CURVE_HEIGHT: Final = 220  # user units of the plot of cumulative shares
_MOST_SPOTS: Final = 32
_TICKS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_DRAWN: Final = "Drawn as never falling, from 0 to 100 %; the table has the unbiased shares"


def edges_of(item: str) -> tuple[float, float] | None:
    """Return the ends of the bucket named *item*, such as "10–20", or None if it names none."""
    match = _EDGES.fullmatch(_THOUSANDS.sub("", item.strip()))
    if not match:
        return None
    low, high = (_number(part) for part in match.groups())
    return (low, high) if low < high else None


def threshold_of(item: str) -> float | None:
    """Return the number in *item*, such as "≤ 20 ms", or the upper end of a bucket, or None."""
    edges = edges_of(item)
    if edges:
        return edges[1]
    match = _ALONE.fullmatch(_THOUSANDS.sub("", item.strip()))
    return _number(match[1]) if match else None


def adjoining(items: Sequence[str]) -> tuple[tuple[float, float], ...] | None:
    """Return the edges of *items* if each bucket begins where the one before ends, else None."""
    ends = [edges_of(item) for item in items]
    edges = tuple(pair for pair in ends if pair)
    if not edges or len(edges) < len(ends):
        return None
    whole = all(isclose(a[1], b[0], rel_tol=1e-6, abs_tol=1e-9) for a, b in pairwise(edges))
    return edges if whole else None


def cell_of(item: str) -> tuple[int, int] | None:
    """Return row and column of a cell named "row,column", or None."""
    row, comma, column = item.partition(",")
    if not comma or not (row.strip().isdecimal() and column.strip().isdecimal()):
        return None
    return int(row), int(column)


def _number(text: str) -> float:
    return float(text.replace("\u2212", "-").replace("_", ""))


def histogram_picture(
    rows: Sequence[Row], title: str, options: ChartOptions, x_unit: str = ""
) -> Picture:
    """Return the buckets of *rows*, which share a unit, in their order.

    Items such as "10–20" that adjoin are drawn to scale, in *x_unit*; others side by side.
    """
    if not any(map(numbers_of, rows)):
        return nothing(title, rows, options)
    drawn = rows[:_MOST]
    plot = _plot(drawn, options)
    unit = rows[0].unit
    body: list[Drawn] = []
    half = median_half_width(drawn) if unit == SHARE else None
    if half is not None:
        top, foot = plot.y.within(half), plot.y.within(-half)
        body.append(rectangle(plot.x.start, top, plot.x.end - plot.x.start, foot - top, "noise"))
    body += left_axis(plot.ticks, plot.y, unit, plot.x.start, plot.x.end)
    body += _foot(plot, drawn)
    body += _steps(drawn, plot)
    body += _buckets(drawn, plot, Marker.of(options, drawn))
    across = f"by {x_unit}" if x_unit else ""
    return Picture(
        title,
        subtitle_of(drawn, " ".join(filter(None, (unit_words(unit), across)))),
        _described(drawn),
        tuple(body),
        _HEIGHT + 8 + FOOT,
        tuple(_notes(rows, drawn, half is not None)),
        plot=(plot.x.start, plot.x.end),
    )


@dataclass(frozen=True)
class _Plot:
    """Scales, and the ends of each bucket in user units."""

    x: Linear
    y: Linear
    ticks: tuple[float, ...]
    ends: tuple[tuple[float, float], ...]
    numeric: bool


def _plot(rows: Sequence[Row], options: ChartOptions) -> _Plot:
    ticks = nice_ticks(*extent(rows, 0.0), 6)
    edges = adjoining([row.item for row in rows])
    places = edges or tuple((float(i), i + 1.0) for i in range(len(rows)))
    left = PAD + left_width(ticks, rows[0].unit)
    x = Linear(places[0][0], places[-1][1], left + 8, options.width - PAD - 12)
    y = Linear(ticks[0], ticks[-1], 8 + _HEIGHT, 8)
    return _Plot(x, y, ticks, tuple((x.at(a), x.at(b)) for a, b in places), edges is not None)


def _foot(plot: _Plot, rows: Sequence[Row]) -> Iterator[Drawn]:
    """Yield the labels below: round numbers between edges, or the names of the buckets."""
    foot = plot.y.start
    if plot.numeric:
        ticks = [
            tick
            for tick in fitted_ticks(plot.x.low, plot.x.high, "", plot.x.end - plot.x.start)
            if plot.x.low <= tick <= plot.x.high
        ]
        places, names = [plot.x.at(tick) for tick in ticks], tick_labels(ticks, "")
    else:
        places = [(left + right) / 2 for left, right in plot.ends]
        names = [label_of(row) for row in rows]
    yield short_ticks(places, foot)
    yield from labels_below(places, names, foot, plot.x)


def _steps(rows: Sequence[Row], plot: _Plot) -> Iterator[Element]:
    """Yield the area under the steps and their outline, cut at buckets without a number."""
    zero = plot.y.within(0.0)
    for has_number, stretch in groupby(zip(rows, plot.ends, strict=True), key=_has_number):
        if has_number:
            tops = [(ends, plot.y.at(row.value or 0.0)) for row, ends in stretch]
            steps = [(x, top) for ends, top in tops for x in ends]
            path = line_path([(steps[0][0], zero), *steps, (steps[-1][0], zero)])
            yield element("path", d=path + "z", **paint("pale"))
            yield element("path", d=path, **paint("outline"))


def _has_number(bucket: tuple[Row, tuple[float, float]]) -> bool:
    return numbers_of(bucket[0]) is not None


def _buckets(rows: Sequence[Row], plot: _Plot, marker: Marker) -> Iterator[Drawn]:
    narrow = min(right - left for left, right in plot.ends) < _NARROW
    hover: list[Element] = []
    for row, (left, right) in zip(rows, plot.ends, strict=True):
        middle, label = (left + right) / 2, label_of(row)
        numbers = numbers_of(row)
        if numbers is None:
            body = missing_mark(left, right - left, plot.y)
            yield Placed(middle, marker.mark(row, label, *body))
        elif narrow:
            top = plot.y.at(numbers.high)
            height = plot.y.at(numbers.low) - top
            yield rectangle(left, top, right - left, height, "band-1")
            hover += marker.hover_area(row, label, (left, top, right - left, height))
        else:
            cap = min(4.0, (right - left) / 4)
            whisker = standing_whisker(row, middle, plot.y, cap=cap)
            yield Placed(middle, marker.mark(row, label, *whisker))
    yield group(hover, **paint("hover"))


def _notes(rows: Sequence[Row], drawn: Sequence[Row], noise: bool) -> Iterator[Note]:
    if noise:
        yield Note("within noise", "noise")
    empty = [row for row in drawn if numbers_of(row) is None]
    if empty:
        yield Note(f"× no number in {len(empty)} of {len(drawn)} buckets: {reading(empty[0])}")
    yield from remarks(drawn)
    if len(rows) > len(drawn):
        yield Note(f"and {len(rows) - len(drawn):,} more buckets")


def _described(rows: Sequence[Row]) -> str:
    numbered = [row for row in rows if numbers_of(row)]
    top = max(numbered, key=lambda row: row.value or 0.0)
    return f"Histogram of {len(rows)} buckets. Greatest: {label_of(top)}: {reading(top)}."


@dataclass(frozen=True)
class _Step:
    """A threshold and the share up to it as it is drawn, with its interval within 0 and 1."""

    at: float
    value: float
    low: float
    high: float
    row: Row


def cdf_picture(
    rows: Sequence[Row],
    title: str,
    options: ChartOptions,
    x_unit: str = "",
    quantiles: Sequence[float] = (),
) -> Picture:
    """Return the curve of *rows*: items are thresholds in *x_unit*, values shares up to them.

    Items that are no numbers stand side by side.  The line is the nearest to the numbers that never
    falls and stays within 0 and 1, as every such curve does; tips and the table show the numbers
    themselves.

    Args: quantiles: levels that are read off the curve as it is drawn, straight between thresholds.
    """
    steps, numeric = _curve_steps(rows)
    if len(steps) < 2:
        return nothing(title, rows, options)
    left = PAD + left_width(_TICKS, SHARE)
    x = Linear(steps[0].at, steps[-1].at, left + 8, options.width - PAD - 26)
    y = Linear(0.0, 1.0, 8 + _CURVE_HEIGHT, 8)
    body = left_axis(_TICKS, y, SHARE, x.start, x.end)
    body += _curve_foot(steps, numeric, x, y)
    body += _curve(steps, x, y)
    markers = list(_quantiles(steps, quantiles)) if numeric else []
    body += _markers(markers, x, y)
    marker = Marker.of(options, [step.row for step in steps])
    body.append(group(_spots(steps, x, y, marker), **paint("hover")))
    unit = f"share of devices up to each value in {x_unit}" if x_unit else "share of devices up to"
    words = "; ".join(_quantile_in_words(marker, x_unit) for marker in markers)
    notes = [*([Note(words)] if words else []), *remarks(rows)]
    if any(step.value != step.row.value for step in steps):
        notes.append(Note(_DRAWN))
    description = f"Cumulative distribution at {len(steps)} thresholds. {words}"
    subtitle = subtitle_of(rows, unit)
    return Picture(
        title,
        subtitle,
        description,
        tuple(body),
        _CURVE_HEIGHT + 8 + FOOT,
        tuple(notes),
        plot=(x.start, x.end),
    )


def _curve_steps(rows: Sequence[Row]) -> tuple[list[_Step], bool]:
    """Return the rows with numbers by ascending threshold, and whether items are numbers."""
    places = [threshold_of(row.item) for row in rows]
    numeric = all(place is not None for place in places)
    steps = [
        _Step(place if numeric and place is not None else float(rank), *numbers, row)
        for rank, (row, place) in enumerate(zip(rows, places, strict=True))
        if (numbers := numbers_of(row))
    ]
    steps.sort(key=lambda step: step.at)
    steps = [step for i, step in enumerate(steps) if not i or step.at > steps[i - 1].at]
    trust = weights_of([step.row.std_error or 0.0 for step in steps])
    rising = isotonic([step.value for step in steps], trust)
    return [
        replace(step, value=value, low=_share(step.low), high=_share(step.high))
        for step, value in zip(steps, rising, strict=True)
    ], numeric


def _share(end: float) -> float:
    """Return an end of an interval within 0 and 1, where every share is."""
    return min(max(end, 0.0), 1.0)


def _curve_foot(steps: Sequence[_Step], numeric: bool, x: Linear, y: Linear) -> Iterator[Drawn]:
    if numeric:
        ticks = fitted_ticks(x.low, x.high, "", x.end - x.start)
        ticks = tuple(tick for tick in ticks if x.low <= tick <= x.high)
        places, names = [x.at(tick) for tick in ticks], tick_labels(ticks, "")
    else:
        places, names = [x.at(step.at) for step in steps], [label_of(s.row) for s in steps]
    yield short_ticks(places, y.start)
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


def _markers(quantiles: Sequence[_Quantile], x: Linear, y: Linear) -> Iterator[Drawn]:
    """Yield a drop line, a dot and a name for each quantile, names only where they have room."""
    free = float("-inf")
    for quantile in quantiles:
        place, level = x.at(quantile.at), y.at(quantile.level)
        yield stroke(x.start, level, place, level, "reference")
        yield stroke(place, level, place, y.start, "reference")
        yield Placed(place, dot(place, level, 1))
        name = _name(quantile.level)
        wide = width_of(name, SMALL)
        if place + 6 > free:
            yield Placed(place, text(name, place + 6, level + 12, "aside"))
            free = place + 6 + wide


def _name(level: float) -> str:
    return f"p{100 * level:.6g}"


def _quantile_in_words(quantile: _Quantile, x_unit: str) -> str:
    if quantile.low is None:
        return f"{_name(quantile.level)} not within these thresholds"
    if quantile.high is None:
        least = number(quantile.low, x_unit, quantile.at - quantile.low)
        return f"{_name(quantile.level)} at least {least}"
    half = (quantile.high - quantile.low) / 2
    ends = [number(end, "", half) for end in (quantile.low, quantile.high)]
    return f"{_name(quantile.level)} ≈ {number(quantile.at, x_unit, half)} ({ends[0]} to {ends[1]})"


def _spots(steps: Sequence[_Step], x: Linear, y: Linear, marker: Marker) -> Iterator[Element]:
    every = -(-len(steps) // _MOST_SPOTS)
    width = (x.end - x.start) / max(len(steps) - 1, 1) * every
    for step in steps[::every]:
        top, foot = y.at(step.high), y.at(step.low)
        left, wide = span_around(x, x.at(step.at), width)
        yield from marker.hover_area(step.row, label_of(step.row), (left, top, wide, foot - top))
