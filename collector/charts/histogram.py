"""Histograms: a step for each bucket with its whisker; a band where buckets are narrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from ..analytics.rows import SHARE, Row
from .axes import FOOT, fitted_ticks, labels_below, left_axis, left_width
from .buckets import adjoining
from .frame import DEFAULT, PAD, Face, Note, Picture, finish, nothing, subtitle_of
from .labels import label_of, unit_words
from .marks import cross, line_path, mark, rectangle, spot, standing_whisker, stroke
from .noise import median_half_width
from .number import extent, numbers_of, reading, tick_labels
from .remarks import remarks
from .scale import Linear, nice_ticks
from .style import paint
from .svg import Element, element, group

_HEIGHT: Final = 200  # user units of the plot
_MOST: Final = 512  # buckets
_NARROW: Final = 9.0  # user units: narrower buckets have a band for whiskers


def histogram(rows: Sequence[Row], title: str, face: Face = DEFAULT, x_unit: str = "") -> str:
    """Return an SVG of *rows*, one a bucket, in their order.

    Items such as "10–20" that adjoin are drawn to scale, in *x_unit*; others side by side.
    """
    return finish(histogram_picture(rows, title, face, x_unit), face)


def histogram_picture(rows: Sequence[Row], title: str, face: Face, x_unit: str = "") -> Picture:
    """Return the buckets of *rows*, which share a unit."""
    if not any(map(numbers_of, rows)):
        return nothing(title, rows, face)
    shown = rows[:_MOST]
    plot = _plot(shown, face)
    unit = rows[0].unit
    body: list[Element] = []
    half = median_half_width(shown) if unit == SHARE else None
    if half is not None:
        top, foot = plot.y.within(half), plot.y.within(-half)
        body.append(rectangle(plot.x.start, top, plot.x.end - plot.x.start, foot - top, "noise"))
    body += left_axis(plot.ticks, plot.y, unit, plot.x.start, plot.x.end)
    body += _foot(plot, shown)
    body += _steps(shown, plot)
    body += _buckets(shown, plot)
    across = f"by {x_unit}" if x_unit else ""
    return Picture(
        title,
        subtitle_of(shown, " ".join(filter(None, (unit_words(unit), across)))),
        _described(shown),
        tuple(body),
        _HEIGHT + 8 + FOOT,
        tuple(_notes(rows, shown, half is not None)),
    )


@dataclass(frozen=True)
class _Plot:
    """Scales, and the ends of each bucket in user units."""

    x: Linear
    y: Linear
    ticks: tuple[float, ...]
    ends: tuple[tuple[float, float], ...]
    numeric: bool


def _plot(rows: Sequence[Row], face: Face) -> _Plot:
    ticks = nice_ticks(*extent(rows, 0.0), 6)
    edges = adjoining([row.item for row in rows])
    places = edges or tuple((float(i), i + 1.0) for i in range(len(rows)))
    left = PAD + left_width(ticks, rows[0].unit)
    x = Linear(places[0][0], places[-1][1], left + 8, face.width - PAD - 12)
    y = Linear(ticks[0], ticks[-1], 8 + _HEIGHT, 8)
    return _Plot(x, y, ticks, tuple((x.at(a), x.at(b)) for a, b in places), edges is not None)


def _foot(plot: _Plot, rows: Sequence[Row]) -> Iterator[Element]:
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
    for place in places:
        yield stroke(place, foot, place, foot + 4, "axis")
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


def _buckets(rows: Sequence[Row], plot: _Plot) -> Iterator[Element]:
    narrow = min(right - left for left, right in plot.ends) < _NARROW
    hover: list[Element] = []
    for row, (left, right) in zip(rows, plot.ends, strict=True):
        middle, label = (left + right) / 2, label_of(row)
        found = numbers_of(row)
        if found is None:
            yield mark(row, label, cross(middle, plot.y.within(0.0) - 8))
        elif narrow:
            top = plot.y.at(found.high)
            height = plot.y.at(found.low) - top
            yield rectangle(left, top, right - left, height, "band-1")
            hover.append(spot(row, label, left, top, right - left, height))
        else:
            cap = min(4.0, (right - left) / 4)
            yield mark(row, label, *standing_whisker(row, middle, plot.y, cap=cap))
    yield group(hover, **paint("hover"))


def _notes(rows: Sequence[Row], shown: Sequence[Row], noise: bool) -> Iterator[Note]:
    if noise:
        yield Note("what noise alone could show", "noise")
    empty = [row for row in shown if numbers_of(row) is None]
    if empty:
        yield Note(f"× no number in {len(empty)} of {len(shown)} buckets: {reading(empty[0])}")
    yield from remarks(shown)
    if len(rows) > len(shown):
        yield Note(f"and {len(rows) - len(shown):,} more buckets")


def _described(rows: Sequence[Row]) -> str:
    numbered = [row for row in rows if numbers_of(row)]
    top = max(numbered, key=lambda row: row.value or 0.0)
    return f"Histogram of {len(rows)} buckets. Greatest: {label_of(top)}: {reading(top)}."
