"""Dimensions of rows in the words of a page: "yes", "the others", "10 to 16 Nov".

Files and the API keep what the rows say: "true", "(rest)", "2026-11-10/2026-11-16".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from ..analytics.rows import AGAINST, BETWEEN, ITEM, REST, TIME, Chart, Period, Row, moment
from ..core.remarks import Remark

_ANSWERS: Final = MappingProxyType({"true": "yes", "false": "no"})
_QUANTILES: Final = MappingProxyType({"p50": "median"})
_OTHERS: Final = "the others"
_STRETCHES: Final = MappingProxyType({f"{TIME}:day": "1d", f"{TIME}:week": "7d"})
_SINCE: Final = MappingProxyType({"7d": "the week of ", "28d": "the four weeks of "})
_EACH: Final = MappingProxyType({"1h": "an hour", "1d": "a day", "7d": "a week"})


def worded(
    rows: Sequence[Row], is_boolean: bool = False, every: str = "", chart: Chart = Chart.ROWS
) -> list[Row]:
    """Return *rows* with dimensions as people call them.

    Args: is_boolean: the items are yes and no.
          every: the length of the epochs, whose first days the labels of time name.
          chart: of the rows; items of quantiles are names of levels.
    """
    values = {value for row in rows for value in row.dimensions.values()}
    # Against another epoch each is a stretch; on an axis of time they stay dates.
    ends = [(row.dimensions[TIME], row.dimensions[AGAINST]) for row in rows if _held(row)]
    is_stretch = every in ("7d", "28d") and any(all(map(_days, pair)) for pair in ends)
    names = days_in_words(values, every, alone=is_stretch)
    items = _ANSWERS if is_boolean else _QUANTILES if chart == Chart.QUANTILES else {}
    if not names and not items and REST not in values:
        return list(rows)

    def word(name: str, value: str) -> str:
        if name == AGAINST and value == REST:
            return _OTHERS
        return items.get(value, value) if name == ITEM else names.get(value, value)

    return [
        replace(row, dimensions={name: word(name, value) for name, value in row.dimensions.items()})
        for row in rows
    ]


def sentence(text: str) -> str:
    """Return *text* as a page says it: with a capital and a full stop."""
    return _stopped(capitalized(text)) if text else ""


def capitalized(text: str) -> str:
    """Return *text* with a capital, and the rest as it is."""
    return text[:1].upper() + text[1:]


def remark_text(remark: Remark, titles: Mapping[str, str]) -> str:
    """Return *remark* as a page says it, after the title of its metric, as that is spelled.

    Args: titles: of metrics by their address; "" of one that need not be named.
    """
    name = titles.get(remark.metric, remark.metric)
    return _stopped(remark.of(name)) if name else sentence(remark.of(""))


def _stopped(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def when_counted(label: str, every: str, stretch: str = TIME) -> str:
    """Return when devices were counted: "on 2026-11-23", "a day on average in the week of …".

    Args: every: the length of the epochs; each is counted.
          stretch: the stretch of time that the label names, as a question asks for it.
    """
    if BETWEEN in label:
        return f"{_EACH.get(every, 'each')} on average from {days_in_words([label], every)[label]}"
    length = _STRETCHES.get(stretch, every)
    at = moment(label, length)
    place = f"on {at}" if at == label else f"in {at}"
    return place if length == every else f"{_EACH.get(every, 'each')} on average {place}"


def since_in_words(label: str, stretch: str) -> str:
    """Return the stretch of time that *label* names, after "since": "the week of 2 to 8 Nov".

    Args: stretch: how long it is, as metrics say how often they are reported.
    """
    words = days_in_words([label], stretch, alone=True).get(label, label)
    return f"{_SINCE.get(stretch, '')}{words}"


def last_day(label: str, every: str) -> str:
    """Return the last day of the epoch that *label* names by its first, or the label of an hour."""
    days = _days(label, every)
    return days[1].isoformat() if days else label


def _days(label: str, every: str = "") -> tuple[date, date] | None:
    """Return the first and the last day of a stretch of epochs, None of hours and other labels."""
    period = Period.read(label, every)
    return period.days if period else None


def days_in_words(
    labels: Iterable[str], every: str = "", *, alone: bool = False, today: date = date.max
) -> Mapping[str, str]:
    """Return the *labels* that are stretches of days, in words: "28 Oct to 3 Nov".

    Epochs are in words next to stretches only, or *alone*.  Years are given if there are several.
    A running stretch ends *today*: there are no later reports.
    """
    stretches = {
        label: (days[0], max(days[0], min(days[1], today)))
        for label in labels
        if (days := _days(label, every))
    }
    if not (alone or any(BETWEEN in label for label in stretches)):
        return {}
    has_years = len({day.year for days in stretches.values() for day in days}) > 1
    return {label: _said(first, last, has_years) for label, (first, last) in stretches.items()}


def _held(row: Row) -> bool:
    """Return whether *row* holds one time against another."""
    return TIME in row.dimensions and AGAINST in row.dimensions


def _said(first: date, last: date, has_years: bool) -> str:
    """Return the days from *first* to *last*, with no more than the last needs of the first."""
    end = f"{last.day} {last:%b}" + (f" {last.year}" if has_years else "")
    if first == last:
        return end
    begin = str(first.day)
    if (first.year, first.month) != (last.year, last.month):
        begin += f" {first:%b}"
    if first.year != last.year:
        begin += f" {first.year}"
    return f"{begin} to {end}"
