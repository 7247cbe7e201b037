"""What a line is seen against: notes at their times, and the period before at the same places.

Notes that would touch share a number, which stands above the plot; their texts are below it.  An
earlier period is drawn thin and without markers, with its intervals, below the line that it is
compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...analytics.rows import TIME, Period
from ..letters import one_line
from ..numbers import numbers_of, reading
from .frame import Before, Mark, Note, text
from .marks import Marker, line_path, span_around, stroke
from .scale import Linear
from .svg import Drawn, Element, Placed, element, group, paint
from .timeline import Point, Series, Timeline, runs, timeline

FLAGS: Final = 14.0  # user units above a plot, for the numbers of notes
_APART: Final = 18.0  # user units between the numbers of notes at least
_MOST: Final = 8  # numbers with their notes in words
_DAY: Final = 24.0  # hours
_EDGE: Final = 0.5  # steps that a point may lie beyond the ends of the axis


@dataclass(frozen=True)
class Flag:
    """Notes that share a number, and where each is along x, in user units."""

    number: int
    marks: tuple[Mark, ...]
    places: tuple[float, ...]

    @property
    def words(self) -> str:
        """The notes with their times."""
        return " · ".join(f"{mark.at}: {one_line(mark.text)}" for mark in self.marks)


def flags_of(marks: Sequence[Mark], times: Timeline, x: Linear) -> tuple[Flag, ...]:
    """Return the *marks* that lie on the axis *x* of *times*, in order."""
    placed = [(place, mark) for mark in marks if (place := _place(mark, times, x)) is not None]
    groups: list[list[tuple[float, Mark]]] = []
    for place, mark in sorted(placed, key=lambda entry: (entry[0], entry[1].at)):
        if not groups or place - groups[-1][0][0] >= _APART:
            groups.append([])
        groups[-1].append((place, mark))
    return tuple(
        Flag(number, tuple(mark for _, mark in some), tuple(place for place, _ in some))
        for number, some in enumerate(groups, 1)
    )


def flags_drawn(flags: Sequence[Flag], top: float, foot: float) -> Iterator[Drawn]:
    """Yield a line from *top* to *foot* at each note, and the numbers above."""
    for flag in flags:
        yield from (stroke(x, top, x, foot, "reference") for x in dict.fromkeys(flag.places))
        url = next((mark.url for mark in flag.marks if mark.url), "")
        sign = text(str(flag.number), flag.places[0], top - FLAGS / 2, "flag", "middle")
        box = {"x": flag.places[0] - _APART / 2, "y": top - FLAGS, "width": _APART, "height": FLAGS}
        hover_box = element("rect", **box, **{**paint("hover"), "class_": "hover"})
        data = {"data_row": f"Note {flag.number}", "data_reason": flag.words}
        title = element("title", flag.words)
        drawn = element("g", title, hover_box, sign, class_="mark", **data)
        yield Placed(flag.places[0], element("a", drawn, href=url) if url else drawn)


def flag_notes(flags: Sequence[Flag]) -> Iterator[Note]:
    """Yield the notes by their numbers."""
    for flag in flags[:_MOST]:
        yield Note(f"{flag.number} · {flag.words}")
    if len(flags) > _MOST:
        yield Note(f"and {len(flags) - _MOST:,} more notes: point at their numbers")


def _place(mark: Mark, times: Timeline, x: Linear) -> float | None:
    """Return where *mark* is, None beyond the axis; what begins before its end lies on it."""
    if not times.dated:
        ranks = {name: float(rank) for rank, name in enumerate(times.names)}
        at = ranks.get(mark.at)
    else:
        period = Period.read(mark.at)
        at = period.hours if period else None
    if at is None or not x.low <= at < x.high + times.step:
        return None
    return x.within(at)


@dataclass(frozen=True)
class Past:
    """The lines of an earlier period, moved to where they are drawn."""

    series: tuple[tuple[int, Series], ...]  # each with the number of its colour, 0 if it is alone
    step: float
    name: str
    reason: str  # why there are none


def past_of(before: Before | None, times: Timeline) -> Past | None:
    """Return the lines of *before* that *times* has too, at the places of *times*; None for none.

    Points beyond both ends of *times* are left out, since they have nothing to be compared with.
    """
    if before is None or not times.dated or not times.series:
        return None
    earlier = timeline(before.rows, most=max(len(before.rows), 1))
    places = [point.at for series in times.series for point in series.points]
    several = len(times.series) > 1
    low, high = min(places) - _EDGE * times.step, max(places) + _EDGE * times.step
    numbers = {series.label: series.number for series in times.series}
    drawn = []
    for series in earlier.series if earlier.dated else ():
        number = numbers.get(series.label) if several else 1
        moved = [Point(point.at + _DAY * before.days, point.row) for point in series.points]
        points = tuple(point for point in moved if low <= point.at <= high)
        if number and any(numbers_of(point.row) for point in points):
            drawn.append((number if several else 0, replace(series, points=points)))
    first = next(iter(before.rows), None)
    why = before.reason or (reading(first) if first else "no reports")
    return Past(tuple(drawn), times.step, before.name, why)


def past_drawn(past: Past, x: Linear, y: Linear, marker: Marker) -> Iterator[Element]:
    """Yield bands, lines and what a pointer feels of an earlier period."""
    for number, series in past.series:
        suffix = f"-{number}" if number else ""
        for run in runs(series, past.step):
            points = [(x.within(p.at), numbers) for p in run if (numbers := numbers_of(p.row))]
            upper = [(place, y.at(numbers.high)) for place, numbers in points]
            lower = [(place, y.at(numbers.low)) for place, numbers in reversed(points)]
            middle = [(place, y.at(numbers.value)) for place, numbers in points]
            if len(run) == 1:  # a point alone is a short line with its interval
                (place, numbers), wide = points[0], 4.0
                upper = [(place - wide, y.at(numbers.high)), (place + wide, y.at(numbers.high))]
                lower = [(place + wide, y.at(numbers.low)), (place - wide, y.at(numbers.low))]
                middle = [(end, y.at(numbers.value)) for end in (place - wide, place + wide)]
            band = line_path([*upper, *lower]) + "z"
            yield element("path", d=band, **paint(f"ghost{suffix}"))
            yield element("path", d=line_path(middle), **paint(f"past{suffix}"))
        yield group(_spots(series, x, y, marker), **paint("hover"))


def past_notes(past: Past) -> Iterator[Note]:
    """Yield what the thin lines are, or why there are none."""
    if past.series:
        style = "ghost" if past.series[0][0] == 0 else None
        yield Note(f"{'' if style else 'thin: '}{past.name}", style, "past" if style else "")
    else:
        yield Note(f"{past.name}: {past.reason}")


def _spots(series: Series, x: Linear, y: Linear, marker: Marker) -> Iterator[Element]:
    width = (x.end - x.start) / max(len(series.points) - 1, 1)
    for point, numbers in series.numbered:
        left, wide = span_around(x, x.within(point.at), width)
        top, foot = y.at(numbers.high), y.at(numbers.low)
        label = " · ".join(filter(None, (series.label, point.row.dimensions.get(TIME, ""))))
        yield from marker.hover_area(point.row, label, (left, top, wide, foot - top))
