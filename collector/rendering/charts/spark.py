"""Sparklines: a line with its band, small enough for a tile, which shows the number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ...analytics.rows import ALL, TIME, Row
from ..letters import one_line
from ..numbers import extent, numbers_of, reading, span
from .frame import DEFAULT, ChartOptions
from .marks import dot, line_path
from .scale import Linear, apart
from .svg import CSS, FONT, Element, element, markup, paint
from .timeline import Series, runs, timeline

WIDTH, HEIGHT = 120, 32  # user units
_PAD: Final = 4  # user units


def spark(rows: Sequence[Row], title: str, options: ChartOptions = DEFAULT) -> str:
    """Return a small SVG of *rows* over time, of one series, without axes."""
    names = f"{options.prefix}-title", f"{options.prefix}-desc"
    rows = [row for row in rows if row.dimensions.get(TIME) != ALL]
    numbered = [row for row in rows if numbers_of(row)]
    last = f"{len(rows)} points; the last: {reading(numbered[-1])}" if numbered else "no numbers"
    root = element(
        "svg",
        element("title", one_line(title) or "Chart", id=names[0]),
        element("desc", one_line(last), id=names[1]),
        element("style", CSS) if options.standalone else None,
        *_drawn(rows),
        xmlns="http://www.w3.org/2000/svg",
        class_="chart spark",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width=WIDTH,
        height=HEIGHT,
        role="img",
        aria_labelledby=" ".join(names),
        font_family=None if options.styled else FONT,
    )
    return markup(root, options.styled)


def _drawn(rows: Sequence[Row]) -> Iterator[Element]:
    times = timeline(rows, most=1)
    if not times.series or not times.series[0].numbered:
        return
    (series,) = times.series
    low, high = extent(point.row for point in series.points)
    first, last = span(point.at for point in series.points)
    y = Linear(*apart(low, high), HEIGHT - _PAD, _PAD)
    x = Linear(first, last if last > first else first + 1, _PAD, WIDTH - _PAD - 2)
    yield from _stretches(series, times.step, x, y)
    end, numbers = series.numbered[-1]
    yield dot(x.at(end.at), y.at(numbers.value), 1, end.row.is_open, 2.5)


def _stretches(series: Series, step: float, x: Linear, y: Linear) -> Iterator[Element]:
    for run in runs(series, step):
        points = [(x.at(p.at), numbers) for p in run if (numbers := numbers_of(p.row))]
        upper = [(place, y.at(numbers.high)) for place, numbers in points]
        lower = [(place, y.at(numbers.low)) for place, numbers in reversed(points)]
        if len(run) > 1:
            yield element("path", d=line_path([*upper, *lower]) + "z", **paint("band-1"))
            middle = [(place, y.at(numbers.value)) for place, numbers in points]
            yield element("path", d=line_path(middle), **paint("line-1"))
