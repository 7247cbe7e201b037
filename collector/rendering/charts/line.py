"""Lines over time with the band of their intervals; a gap where there is no number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from msgspec.structs import replace

from ...analytics.rows import ALL, SHARE, TIME, Row
from ..numbers import bounds_of, end_words, extent, numbers_of, reading, span
from .axes import FOOT, label_width, labels_below, left_axis, left_width, short_ticks
from .frame import (
    PAD,
    Before,
    ChartOptions,
    Mark,
    Note,
    Picture,
    label_of,
    named,
    nothing,
    remarks,
    subtitle_of,
    text,
    unit_words,
)
from .marks import (
    Marker,
    bare_dot,
    dot,
    line_path,
    median_half_width,
    missing_mark,
    rectangle,
    span_around,
    standing_whisker,
)
from .overlay import (
    FLAGS,
    Past,
    flag_notes,
    flags_drawn,
    flags_of,
    past_drawn,
    past_notes,
    past_of,
)
from .scale import Linear, nice_ticks
from .scale import ticks as time_ticks
from .svg import Drawn, Element, Placed, element, group, paint
from .timeline import Point, Run, Series, Timeline, runs, timeline

_MOST_MARKS: Final = 150  # of a picture: more would weigh more than the page
_MARKER_ROOM: Final = 15.0  # user units between markers at least, if every point has one
_MARKER_PACE: Final = 50.0  # user units between markers, if not
_TICK_ROOM: Final = 50.0  # user units between the labels of times at least
_WIDER: Final = 2.0  # times that a page draws a plot wider, or else leaves labels out
_LINE: Final = 15.0  # user units between the labels of two lines at least
_MOST_WHOLES: Final = 6  # numbers of all stretches together
_NAMES: Final = 0.28  # of the width at most
_NEAR_ZERO: Final = 0.6  # zero is shown unless all numbers lie in the upper part above it
_LEAST_WIDE, _LEAST_HIGH = 4.0, 8.0  # user units of what a pointer finds
_FELT: Final = 16.0  # user units that lead to a stretch at least
_TITLED: Final = 30  # marks; fewer also carry a title each


@dataclass(frozen=True)
class _Plot:
    """Where everything is, in user units."""

    x: Linear
    y: Linear
    ticks: tuple[float, ...]
    unit: str


def line_picture(
    rows: Sequence[Row],
    title: str,
    options: ChartOptions,
    marks: Sequence[Mark] = (),
    before: Before | None = None,
) -> Picture:
    """Return *rows*, which share a unit, over "time": a line for each other label.

    Args: marks: notes on the axis.  before: what the lines are compared with.
    """
    if not any(numbers_of(row) or bounds_of(row) for row in rows):
        return nothing(title, rows, options)
    whole = [row for row in rows if row.dimensions.get(TIME) == ALL]
    times = timeline([row for row in rows if row.dimensions.get(TIME) != ALL])
    unit = rows[0].unit
    drawn = [point.row for series in times.series for point in series.points]
    several = len(times.series) > 1
    past = past_of(before, times)
    plot = _plot(times, drawn, unit, options, several, past)
    flags = flags_of(marks, times, plot.x)
    body: list[Drawn] = []
    noise = _noise(drawn, plot)
    if noise is not None:
        body.append(noise)
    body += left_axis(plot.ticks, plot.y, unit, plot.x.start, plot.x.end)
    body += _time_labels(times, plot, _WIDER if options.styled else 1.0)
    marker = Marker.of(options, drawn)
    body += past_drawn(past, plot.x, plot.y, marker) if past else ()
    cut = [(series, runs(series, times.step)) for series in times.series]
    body += [band for series, each in cut for band in _bands(series, each, plot)]
    body += [path for series, each in cut for path in _lines(series, each, plot)]
    body.append(group(_stretches(times, plot, options), **paint("stretches")))
    body += flags_drawn(flags, plot.y.end, plot.y.start)
    body += _marks(cut, plot, marker)
    if several:
        body += _names(times, plot, options)
    _, common = named(drawn, (TIME,))
    subtitle = subtitle_of(drawn, common, unit_words(unit))
    notes = (
        *(past_notes(past) if past else ()),
        *_notes(times, drawn, noise is not None),
        *map(_together, whole[:_MOST_WHOLES]),
        *flag_notes(flags),
    )
    moved = FLAGS if flags else 0.0
    content = (group(body, transform=f"translate(0,{moved:.0f})"),) if moved else tuple(body)
    return Picture(
        title,
        subtitle,
        _described(times),
        content,
        moved + options.height + 8 + FOOT,
        notes,
        plot=(plot.x.start, plot.x.end),
        series=tuple((line.label or "all", line.number) for line in _ended(times) if several),
    )


def _plot(
    times: Timeline,
    drawn: Sequence[Row],
    unit: str,
    options: ChartOptions,
    named: bool,
    past: Past | None,
) -> _Plot:
    earlier = [point.row for _, series in (past.series if past else ()) for point in series.points]
    low, high = extent([*drawn, *earlier])
    counted = not any(row.std_error for row in drawn)
    if low > 0 and (counted or high - low > (1 - _NEAR_ZERO) * high):
        low = 0.0
    ticks = nice_ticks(low, high, 6)
    widest = max([label_width(series.label) for series in times.series] or [0.0])
    right = min(widest + 22, _NAMES * options.width) if named else 12.0
    first, last = span(point.at for series in times.series for point in series.points)
    if first == last:
        first, last = first - 1, last + 1
    left = PAD + left_width(ticks, unit)
    x = Linear(first, last, left + 8, options.width - PAD - right)
    return _Plot(x, Linear(ticks[0], ticks[-1], 8 + options.height, 8), ticks, unit)


def _noise(drawn: Sequence[Row], plot: _Plot) -> Element | None:
    """Return the band around zero, if zero is in view and the numbers are shares."""
    half = median_half_width(drawn) if plot.unit == SHARE else None
    if half is None or plot.y.low > 0:
        return None
    top, foot = plot.y.within(half), plot.y.within(-half)
    return rectangle(plot.x.start, top, plot.x.end - plot.x.start, foot - top, "noise")


def _time_labels(times: Timeline, plot: _Plot, wider: float) -> Iterator[Drawn]:
    foot = plot.y.start
    most = (plot.x.end - plot.x.start) / _TICK_ROOM
    if times.dated:
        own = sorted({point.at for series in times.series for point in series.points})
        ticks = time_ticks(plot.x.low, plot.x.high, int(wider * most), own)
        places = [plot.x.at(tick.hours) for tick in ticks]
        names = [tick.label for tick in ticks]
    else:
        # Rows without a number have names, too, and perhaps no place in view.
        ranks = [i for i in range(len(times.names)) if plot.x.low <= i <= plot.x.high]
        places = [plot.x.at(rank) for rank in ranks]
        names = [times.names[rank] for rank in ranks]
    yield short_ticks(places, foot)
    yield from labels_below(places, names, foot, plot.x, wider if len(places) > most else 1.0)


def _bands(series: Series, cut: Sequence[Run], plot: _Plot) -> Iterator[Element]:
    for run in cut:
        points = [(plot.x.at(p.at), numbers) for p in run if (numbers := numbers_of(p.row))]
        upper = [(x, plot.y.at(numbers.high)) for x, numbers in points]
        lower = [(x, plot.y.at(numbers.low)) for x, numbers in points]
        if len(run) > 1 and upper != lower:  # what is counted has no band
            path = line_path([*upper, *reversed(lower)]) + "z"
            yield element("path", d=path, **paint(f"band-{series.number}"))


def _lines(series: Series, cut: Sequence[Run], plot: _Plot) -> Iterator[Element]:
    for run in cut:
        places = [(plot.x.at(p.at), plot.y.at(p.row.value or 0.0)) for p in run]
        closed = sum(not p.row.is_open for p in run)
        for style, part in (("line", places[:closed]), ("open", places[max(closed - 1, 0) :])):
            if len(part) > 1 and not (style == "open" and _is_counted(run[0].row)):
                yield element("path", d=line_path(part), **paint(f"{style}-{series.number}"))


def _is_counted(row: Row) -> bool:
    """Return whether *row* is a count: of a period that is still running it is lower for that."""
    return row.ci_low == row.ci_high and not row.std_error


def _marks(
    cut: Sequence[tuple[Series, Sequence[Run]]], plot: _Plot, marker: Marker
) -> Iterator[Element]:
    count = sum(len(series.points) for series, _ in cut)
    for series, each in cut:
        alone = {id(run[0]) for run in each if len(run) == 1}
        reach = (plot.x.end - plot.x.start) / max(len(series.points) - 1, 1)
        every = max(-(-count // _MOST_MARKS), ceil(_LEAST_WIDE / max(reach, 0.1)), 1)
        several, is_interactive = len(cut) > 1, marker.options.interactive
        pace = _Pace(reach, every, count <= _TITLED, several, is_interactive, alone)
        yield group(_spots(series, plot, pace, marker), **paint("hover"))
        yield group(_dots(series, plot, pace, marker), **paint(f"dot-{series.number}"))


def _stretches(times: Timeline, plot: _Plot, options: ChartOptions) -> Iterator[Element]:
    """Yield strips that link to their stretch of time, each wide enough for a pointer.

    They are not reached by keys, which would have to pass all of them: the marks are.
    """
    rows = {point.at: point.row for series in times.series for point in series.points}
    places = sorted(rows)
    apart = (plot.x.end - plot.x.start) / max(len(places) - 1, 1)
    every = ceil(_FELT / max(apart, 0.1))
    for i in range(0, len(places), every):
        some = places[i : i + every]
        names = [rows[place].dimensions.get(TIME, "") for place in (some[0], some[-1])]
        label = "/".join(dict.fromkeys(names))
        url = options.link(replace(rows[some[0]], dimensions={TIME: label})) if options.link else ""
        if url:
            left, _ = span_around(plot.x, plot.x.at(some[0]), apart)
            begin, wide = span_around(plot.x, plot.x.at(some[-1]), apart)
            place = {"x": left, "y": plot.y.end, "width": begin + wide - left}
            hover_box = element("rect", **place, height=plot.y.start - plot.y.end)
            title = element("title", label.replace("/", " – "))
            yield element("a", title, hover_box, href=url, tabindex="-1")


@dataclass(frozen=True)
class _Pace:
    """How far points are apart, every how many have a mark, and which stand alone."""

    reach: float
    every: int
    titled: bool
    several: bool  # there are several lines, with a marker each
    is_interactive: bool  # markers react to a pointer
    alone: set[int]

    def dotted(self, i: int, point: Point, last: int) -> bool:
        """Return whether a point has a marker rather than a place to point at."""
        if i == last or point.row.is_open or id(point) in self.alone:
            return True
        if numbers_of(point.row) is None or (self.is_interactive and self.reach >= _MARKER_ROOM):
            return True
        return self.several and i % max(round(_MARKER_PACE / max(self.reach, 0.1)), 1) == 0


def _spots(series: Series, plot: _Plot, pace: _Pace, marker: Marker) -> Iterator[Element]:
    last, width = len(series.points) - 1, pace.reach * pace.every
    for i, point in enumerate(series.points):
        numbers = numbers_of(point.row)
        if numbers and i % pace.every == 0 and not pace.dotted(i, point, last):
            top, foot = plot.y.at(numbers.high), plot.y.at(numbers.low)
            more = max(_LEAST_HIGH - (foot - top), 0) / 2  # what is counted has no interval
            left, wide = span_around(plot.x, plot.x.at(point.at), width)
            place = left, top - more, wide, foot - top + 2 * more
            yield from marker.hover_area(point.row, _label(series, point), place)


def _dots(series: Series, plot: _Plot, pace: _Pace, marker: Marker) -> Iterator[Placed]:
    last = len(series.points) - 1
    for i, point in enumerate(series.points):
        if pace.dotted(i, point, last):
            shapes = _shapes(point, series.number, plot, pace, id(point) in pace.alone)
            mark = marker.mark(point.row, _label(series, point), *shapes, titled=pace.titled)
            yield Placed(plot.x.at(point.at), mark)


def _label(series: Series, point: Point) -> str:
    return " · ".join(filter(None, (series.label, point.row.dimensions.get(TIME, ""))))


def _shapes(
    point: Point, number: int, plot: _Plot, pace: _Pace, alone: bool
) -> tuple[Element, ...]:
    x = plot.x.at(point.at)
    numbers = numbers_of(point.row)
    if numbers is None:
        bar = standing_whisker(point.row, x, plot.y, f"reach-{number}", 3)
        left, wide = span_around(plot.x, x, pace.reach)
        return bar or missing_mark(left, wide, plot.y)
    y = plot.y.at(numbers.value)
    whisker = standing_whisker(point.row, x, plot.y, f"reach-{number}", 3) if alone else ()
    if point.row.is_open:
        return (*whisker, dot(x, y, number, hollow=True, size=3.5))
    return (*whisker, bare_dot(x, y, number, 3.5))


def _names(times: Timeline, plot: _Plot, options: ChartOptions) -> Iterator[Placed]:
    """Yield the label of each line at its end, moved apart where lines end close together."""
    ends = sorted(
        ((_end(series, plot), series) for series in _ended(times)), key=lambda end: end[0]
    )
    places = _apart([y for y, _ in ends], plot.y.end + 6, plot.y.start - 6)
    left = plot.x.end + 12
    for y, (_, series) in zip(places, ends, strict=True):
        room = options.width - PAD - left - 9
        sign = dot(left, y, series.number, size=3.5)
        name = text(series.label or "all", left + 9, y, "label", room=room)
        # A page knows from the data what can be hidden.
        data = {"data_series": str(series.number), "data_name": series.label or "all"}
        yield Placed(plot.x.end, group((sign, name), **data))


def _ended(times: Timeline) -> list[Series]:
    return [series for series in times.series if series.numbered]


def _end(series: Series, plot: _Plot) -> float:
    return plot.y.at(series.numbered[-1][1].value)


def _apart(places: Sequence[float], low: float, high: float) -> list[float]:
    """Return *places*, ascending, moved as little as is simple until they are a line apart."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + _LINE if moved else low))
    limit = high
    for i in range(len(moved) - 1, -1, -1):
        moved[i] = min(moved[i], limit)
        limit = moved[i] - _LINE
    return moved


def _notes(times: Timeline, drawn: Sequence[Row], noise: bool) -> Iterator[Note]:
    if noise:
        yield Note("within noise", "noise")
    if bounds := next(filter(bounds_of, drawn), None):
        yield Note(f"bars are bounds: {bounds.reason}")
    empty = [row for row in drawn if numbers_of(row) is None and bounds_of(row) is None]
    if empty:
        why = reading(empty[0])
        yield Note(f"× {len(empty)} of {len(drawn)} points have no number: {why}")
    if times.left_out:
        yield Note(f"and {times.left_out:,} more, smaller on average")
    for words, count in Counter(filter(None, map(end_words, drawn))).items():
        yield Note(f"{count:,} of the {len(drawn):,} shown: {words}")
    how = "Hollow" if all(map(_is_counted, drawn)) else "Dashed"
    yield from remarks(drawn, f"{how}: current period, not complete")


def _together(row: Row) -> Note:
    """Return what all stretches of time give together."""
    name = label_of(row, (TIME,))
    note = f": {row.note}" if row.note else ""
    return Note(f"{name + ' ' if name else ''}in all: {reading(row)}{note}")


def _described(times: Timeline) -> str:
    parts = []
    for series in _ended(times):
        last = series.numbered[-1][0].row
        name = f"{series.label} " if series.label else ""
        parts.append(f"{name}at last, {last.dimensions.get(TIME, '')}: {reading(last)}")
    points = sum(len(series.points) for series in times.series)
    return f"Line chart of {points} points over time.{' ' * bool(parts)}{'; '.join(parts)}."
