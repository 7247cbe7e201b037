"""Bars, dots and differences with whiskers: one value with its interval per row.

Bars are sorted; rows not distinguishable from zero share one line with their count, since the
noise does not allow to rank them.  Dots show a number of each segment, grouped by item if there are
several.  Differences have zero in view and no colour for good or bad; a difference that noise alone
could make says so in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from client_sdk.privacy.wording import counted

from ...analytics.rows import ITEM, MEASURE, RELATIVE, SHARE, Row, chance
from ..letters import width_of
from ..numbers import POINTS, extent, number, numbers_of, reading, span
from .axes import FOOT, Columns, bottom_axis
from .frame import (
    PAD,
    ChartOptions,
    Note,
    Picture,
    label_of,
    named,
    nothing,
    remarks,
    subtitle_of,
    text,
    unit_words,
    varying,
)
from .marks import dot, lying_whisker, noise_of, rectangle, stroke, widening
from .scale import Linear
from .svg import SERIES, SMALL, Drawn, Element, Placed

ROW: Final = 26  # user units
_THICK: Final = 14  # user units
_MOST_EMPTY: Final = 4  # rows without a number, or reasons of more of them
AT_ONCE: Final = "noise of all rows at once"
_FEWEST_FOLDED: Final = 2  # folding a single row would save nothing
_DOT_ROW: Final = 24  # user units
_HEADER: Final = 24  # user units
_NEAR_ZERO: Final = 0.4  # of the range of the numbers: how far off zero may be and still be shown


def bars_picture(
    rows: Sequence[Row], title: str, options: ChartOptions, ranked: bool = True
) -> Picture:
    """Return the bars of *rows*, which share a unit: greatest first if *ranked*, or in their order.

    A row without a number shows its reason instead of a bar.
    """
    if not rows:
        return nothing(title, rows, options)
    labels, common = named(rows)
    factor = widening(rows) if ranked and rows[0].unit == SHARE else 1.0
    lines = _lines(list(zip(rows, labels, strict=True)), options.most_rows, ranked, factor)
    rows_shown = [line.row for line in lines if line.row]
    unit = rows[0].unit
    columns = Columns.of(rows_shown, [line.label for line in lines], options, unit)
    ticks, scale = columns.scale(*extent(rows_shown, 0.0))
    high = columns.high(ROW)
    foot = high * len(lines) + 6
    noise = noise_of(rows) if unit == SHARE and ranked else None
    body: list[Drawn] = [*_noise_band(factor * noise, scale, foot)] if noise else []
    body += bottom_axis(ticks, scale, unit, 0, foot)
    for i, line in enumerate(lines):
        y = 3 + high * (i + 0.5)
        drawn = _drawn(line, y, scale, columns)
        body += columns.line(line.row, y, high, drawn) if line.row else drawn
    return Picture(
        title,
        subtitle_of(rows, common, unit_words(unit), AT_ONCE if factor > 1 and noise else ""),
        _described(lines, len(rows)),
        tuple(body),
        foot + FOOT,
        tuple(_notes(noise, rows_shown)),
        plot=columns.plot,
        has_columns=True,
    )


@dataclass(frozen=True)
class _Line:
    """One line of the chart: a row with its label, or words about several rows."""

    row: Row | None
    label: str = ""
    words: str = ""
    brief: str = ""


def _lines(rows: Sequence[tuple[Row, str]], most: int, ranked: bool, factor: float) -> list[_Line]:
    numbered = [_Line(row, label) for row, label in rows if numbers_of(row)]
    sure = [line for line in numbered if _is_sure(line, factor)]
    folded = [line.row for line in numbered if line.row and not _is_sure(line, factor)]
    if not ranked or not sure or len(folded) < _FEWEST_FOLDED:
        sure, folded = numbered, []
    if ranked:
        sure = sorted(sure, key=lambda line: (-_value(line), line.label))
    lines = sure[:most]
    if len(sure) > most:
        lines.append(_Line(None, words=f"and {len(sure) - most:,} more, smaller"))
    if folded:
        highest = max((row.ci_high or 0.0) + _added(row, factor) for row in folded)
        upper = number(highest, SHARE, highest / 3)
        words = f"{len(folded):,} more, not distinguishable from 0 (each up to about {upper})"
        lines.append(_Line(None, "", words, f"{len(folded):,} more within the noise"))
    return lines + list(_without_numbers(rows, most))


def _is_sure(line: _Line, factor: float) -> bool:
    """Return whether a row is distinguishable from zero, or need not be."""
    if line.row is None or line.row.unit != SHARE:
        return True
    return (line.row.ci_low or 0.0) - _added(line.row, factor) > 0


def _added(row: Row, factor: float) -> float:
    """Return what either arm of an interval gains if it is *factor* times as long."""
    numbers = numbers_of(row)
    return (factor - 1) * numbers.half_width if numbers else 0.0


def _value(line: _Line) -> float:
    return (line.row.value if line.row else None) or 0.0


def _without_numbers(rows: Sequence[tuple[Row, str]], most: int) -> Iterator[_Line]:
    """Yield the rows without a number, as one line a reason where they are many."""
    empty = [_Line(row, label) for row, label in rows if numbers_of(row) is None]
    if len(empty) <= min(most, _MOST_EMPTY):
        yield from empty
        return
    reasons = Counter(reading(line.row) for line in empty if line.row)
    for reason, count in reasons.most_common(_MOST_EMPTY):
        yield _Line(None, words=f"{count:,} without a number: {reason}")


def _noise_band(half_width: float, scale: Linear, foot: float) -> Iterator[Element]:
    left, right = scale.within(-half_width), scale.within(half_width)
    yield rectangle(left, 0, right - left, foot, "noise")


def _drawn(line: _Line, y: float, scale: Linear, columns: Columns) -> Iterator[Drawn]:
    row = line.row
    if row is None:
        yield columns.words(line.words, y, line.brief)
        return
    yield from columns.ground(y)
    yield columns.name(line.label, y)
    numbers = numbers_of(row)
    if numbers is None:
        yield columns.marker.mark(row, line.label, columns.words(reading(row), y))
        return
    middle = y + columns.sink
    zero, end = scale.within(0.0), scale.at(numbers.value)
    thick = rectangle(min(zero, end), middle - _THICK / 2, abs(end - zero), _THICK, "bar")
    tip = stroke(end, middle - _THICK / 2, end, middle + _THICK / 2, "end")
    halo, whisker = lying_whisker(row, scale, middle)
    yield columns.marker.mark(row, line.label, thick, halo, tip, whisker)
    yield from columns.numbers(row, y)


def _notes(noise: float | None, drawn: Sequence[Row]) -> Iterator[Note]:
    if noise:
        yield Note("within noise", "noise")
    yield from remarks(drawn)


def _described(lines: Sequence[_Line], count: int) -> str:
    numbered = [line for line in lines if line.row and numbers_of(line.row)]
    if not numbered:
        return f"Bar chart of {count} rows, none with a number."
    first = "; ".join(f"{line.label}: {reading(line.row)}" for line in numbered[:3] if line.row)
    return f"Bar chart of {count} rows. First: {first}."


def dots_picture(rows: Sequence[Row], title: str, options: ChartOptions) -> Picture:
    """Return the dots of *rows*, which share a unit; grouped by item if something else varies."""
    if not any(map(numbers_of, rows)):
        return nothing(title, rows, options)
    shown, unit = rows[: options.most_rows], rows[0].unit
    header = _header(shown)
    labels, common = named(shown, [header] if header else ())
    groups = list(dict.fromkeys(row.dimensions.get(header, "") for row in shown)) if header else []
    columns = Columns.of(shown, [*labels, *groups], options, unit)
    ticks, scale = columns.scale(*_ends(extent(shown)))
    foot = columns.high(_DOT_ROW) * len(shown) + _HEADER * len(groups) + 6.0
    body = bottom_axis(ticks, scale, unit, 0, foot)
    body += _body(shown, labels, header, scale, columns)
    notes = remarks(shown, "Hollow: current period, not complete")
    if len(rows) > len(shown):
        notes.append(Note(f"and {len(rows) - len(shown):,} more"))
    return Picture(
        title,
        subtitle_of(shown, common, unit_words(unit)),
        _describe_dots(shown),
        tuple(body),
        foot + FOOT,
        tuple(notes),
        plot=columns.plot,
        has_columns=True,
    )


def _header(rows: Sequence[Row]) -> str | None:
    """Return the dimension that makes groups: the item, if segments vary as well."""
    names = varying(rows)
    if len(names) < 2:
        return None
    return ITEM if ITEM in names else names[0]


def _ends(ends: tuple[float, float]) -> tuple[float, float]:
    low, high = ends
    if 0 < low <= _NEAR_ZERO * (high - low):
        return 0.0, high
    if 0 > high >= -_NEAR_ZERO * (high - low):
        return low, 0.0
    return ends


def _body(
    rows: Sequence[Row], labels: Sequence[str], header: str | None, scale: Linear, columns: Columns
) -> Iterator[Drawn]:
    names = tuple(dict.fromkeys(labels))  # a colour is one label's, so there are none for more
    numbers = {label: i + 1 if len(names) <= SERIES else 1 for i, label in enumerate(names)}
    groups: dict[str, list[tuple[Row, str]]] = {}
    for row, label in zip(rows, labels, strict=True):
        groups.setdefault(row.dimensions.get(header, "") if header else "", []).append((row, label))
    y, high = 3.0, columns.high(_DOT_ROW)
    for group, members in groups.items():
        if header:
            yield columns.name(group, y + _HEADER / 2 + 2 + columns.rise, "value")
            y += _HEADER
        for row, label in members:
            series, middle = numbers[label] if header else 1, y + high / 2
            drawn = _draw_dots(row, label, group, middle, series, scale, columns)
            yield from columns.line(row, middle, high, drawn)
            y += high


def _draw_dots(
    row: Row, label: str, group: str, y: float, series: int, scale: Linear, columns: Columns
) -> Iterator[Drawn]:
    yield from columns.ground(y)
    yield columns.name(label, y)
    numbers = numbers_of(row)
    full = " · ".join(part for part in (group, label) if part)
    if numbers is None:
        yield columns.marker.mark(row, full, columns.words(reading(row), y))
        return
    middle = y + columns.sink
    _, whisker = lying_whisker(row, scale, middle, f"reach-{series}")
    place = scale.at(numbers.value)
    point = Placed(place, dot(place, middle, series, row.is_open, 4.5))
    yield columns.marker.mark(row, full, whisker, point)
    yield from columns.numbers(row, y)


def _describe_dots(rows: Sequence[Row]) -> str:
    first = "; ".join(f"{label_of(row)}: {reading(row)}" for row in rows[:4])
    more = f"; and {len(rows) - 4} more" if len(rows) > 4 else ""
    return f"Dots with intervals of {len(rows)} rows. {first}{more}."


_TALL: Final = 40  # user units: two lines of text
_FEW: Final = 3  # differences with a note on the fakes that could turn them
_UP: Final = 8  # user units from the middle of a row to its first line
_BEYOND: Final = 1.5  # times what must be seen, at most
NO_CHANGE: Final = "no detectable change"


def difference_picture(rows: Sequence[Row], title: str, options: ChartOptions) -> Picture:
    """Return the differences of *rows*, which share a unit; shares differ by points."""
    if not any(map(numbers_of, rows)):
        return nothing(title, rows, options)
    drawn = rows[: options.most_rows]
    unit = POINTS if rows[0].unit == SHARE else rows[0].unit
    labels, common = named(drawn, unsaid=(MEASURE,))
    names = [label or "difference" for label in labels]
    least = max(width_of(verdict(row), SMALL) for row in drawn)
    columns = Columns.of(drawn, names, options, unit, True, least)
    ends = _ends_shown(drawn)
    reach = max(map(abs, ends)) or 1.0
    ticks, scale = columns.scale(min(ends[0], -reach / 3), max(ends[1], reach / 3))
    high = columns.high(_TALL)
    foot = high * len(drawn) + 6.0
    body = bottom_axis(ticks, scale, unit, 0, foot)
    body.append(stroke(scale.at(0), 0, scale.at(0), foot, "whisker"))
    for i, row in enumerate(drawn):
        y = 3 + high * (i + 0.5)
        body += columns.line(row, y, high, _draw_difference(row, names[i], y, scale, columns))
    return Picture(
        title,
        subtitle_of(drawn, common, _words(unit)),
        _describe_differences(drawn, unit),
        tuple(body),
        foot + FOOT,
        tuple(_difference_notes(rows, drawn, scale)),
        plot=columns.plot,
        has_columns=True,
    )


def _ends_shown(rows: Sequence[Row]) -> tuple[float, float]:
    """Return from where to where differences are drawn; wider intervals go on beyond.

    What is detectable is drawn whole, and so is the narrower half of the intervals: one of ± 300 %
    would leave nothing of one of ± 20 %.
    """
    known = sorted((n for row in rows if (n := numbers_of(row))), key=lambda n: n.half_width)
    narrow = known[: (len(known) + 1) // 2]
    whole = extent(rows, 0.0)
    needed = span(end for n in known if n in narrow or n.low > 0 or n.high < 0 for end in n)
    most = _BEYOND * max(map(abs, needed))
    return max(whole[0], -most), min(whole[1], most)


def _words(unit: str) -> str:
    """Return what the axis is."""
    if unit == RELATIVE:
        return f"difference {unit_words(unit)}"
    return f"difference in {unit_words(unit)}" if unit else "difference"


def _is_detectable(row: Row) -> bool:
    """Return whether the interval of a difference leaves zero out."""
    numbers = numbers_of(row)
    return numbers is not None and (numbers.low > 0 or numbers.high < 0)


def verdict(row: Row) -> str:
    """Return in words what a difference shows: higher, lower, or nothing that noise does not."""
    if numbers_of(row) is None:
        return "no number"
    if not _is_detectable(row):
        return NO_CHANGE
    way = "higher" if (row.value or 0.0) > 0 else "lower"
    return way if row.p_value is None else f"{way}, {chance(row.p_value)}"


def _draw_difference(
    row: Row, name: str, y: float, scale: Linear, columns: Columns
) -> Iterator[Drawn]:
    yield from columns.ground(y - _UP)
    yield columns.name(name, y - _UP if columns.options.is_narrow else y)
    numbers = numbers_of(row)
    if numbers is None:
        yield columns.marker.mark(row, name, columns.words(reading(row), y))
        return
    sure, middle = _is_detectable(row), y + columns.stacked / 2
    below = y + _UP + columns.sink
    yield from columns.ground_of_text(below)
    halo, whisker = lying_whisker(row, scale, middle, "reach-1" if sure else "quiet-reach")
    place = scale.within(numbers.value)
    point = dot(place, middle, 1, size=5) if sure else _hollow(place, middle)
    yield columns.marker.mark(row, name, halo, whisker, Placed(place, point))
    yield from columns.numbers(row, y - _UP, "value" if sure else "margin")
    words = text(verdict(row), columns.options.width - PAD, below, "aside", "end")
    yield Placed(columns.end, words)


def _hollow(x: float, y: float) -> Element:
    return dot(x, y, 1, hollow=True, size=4.5, style="quiet")


def _difference_notes(rows: Sequence[Row], drawn: Sequence[Row], scale: Linear) -> Iterator[Note]:
    ends = extent(drawn)
    if ends[0] < scale.low or ends[1] > scale.high:
        yield Note("a line without an end goes on beyond the axis")
    if len(rows) > len(drawn):
        yield Note(f"and {len(rows) - len(drawn):,} more")
    yield from remarks([replace(row, notes=()) for row in drawn])  # its verdict says the same
    for row in drawn if len(drawn) <= _FEW else ():
        if row.fakes_to_flip is not None and _is_detectable(row):
            name = f"{label_of(row)}: " if label_of(row) else ""
            fakes = counted(row.fakes_to_flip, "fake device")
            yield Note(f"{name}more than noise; {fakes} could reverse it")


def _describe_differences(rows: Sequence[Row], unit: str) -> str:
    said = "; ".join(
        f"{label_of(row) or 'difference'}: {reading(row, unit, signed=True)}, {verdict(row)}"
        for row in rows[:5]
    )
    return f"Differences with intervals around zero. {said}."
