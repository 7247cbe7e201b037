"""Sparklines: a line with its band, or bars, small enough for a tile, which shows the number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from ...analytics.rows import ALL, TIME, Row
from ..numbers import extent, numbers_of, reading, span
from .frame import DEFAULT, ChartOptions, titled
from .marks import dot, line_path, rectangle
from .scale import Linear, apart
from .svg import CSS, Element, element, markup, paint
from .timeline import Series, Timeline, runs, timeline

WIDTH, HEIGHT = 120, 32  # user units
_PAD: Final = 4  # user units
_MOST_BARS: Final = 5
_THICK: Final = 4  # user units of a bar


def spark(rows: Sequence[Row], title: str, options: ChartOptions = DEFAULT) -> str:
    """Return a small SVG of *rows* without axes: over time a line of one series, else bars."""
    rows = [row for row in rows if row.dimensions.get(TIME) != ALL]
    is_line = any(TIME in row.dimensions for row in rows)
    times = timeline(rows, most=1) if is_line else None
    drawn = [point.row for each in times.series for point in each.points] if times else rows
    numbered = [row for row in drawn if numbers_of(row)]
    what, at = ("points; the last", -1) if is_line else ("rows; the first", 0)
    said = f"{len(drawn)} {what}: {reading(numbered[at])}" if numbered else "no numbers"
    if not is_line and len(numbered) > _MOST_BARS:
        said = f"{said}; {_MOST_BARS} are drawn"
    content = _line(times) if times else _bars(numbered[:_MOST_BARS])
    root = titled(
        title,
        said,
        [*([element("style", CSS)] if options.standalone else []), *content],
        replace(options, css_class="spark"),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width=float(WIDTH),
        height=float(HEIGHT),
    )
    return markup(root, options.styled)


def _bars(rows: Sequence[Row]) -> Iterator[Element]:
    """Yield a bar and its interval for each of *rows*, which have numbers."""
    x = Linear(*apart(*extent(rows, 0.0)), _PAD, WIDTH - _PAD)
    for place, numbers in enumerate(filter(None, map(numbers_of, rows))):
        y = HEIGHT * (place + 0.5) / len(rows)
        left, right = sorted((x.at(0.0), x.at(numbers.value)))
        yield rectangle(left, y - _THICK / 2, right - left, _THICK, "bar")
        interval = [(x.at(end), y) for end in (numbers.low, numbers.high)]
        yield element("path", d=line_path(interval), **paint("whisker"))


def _line(times: Timeline) -> Iterator[Element]:
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
