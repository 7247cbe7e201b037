"""Times in typed words: "last 30 days", "yesterday", "1 to 28 november", "vs last week".  Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, timedelta
from typing import Final, NamedTuple, TypeAlias

from client_sdk.core.epoch import DAY, ONCE, day_of_date, epoch_of, epochs_between, epochs_in
from client_sdk.registry.metric import Metric

from ..window import PREVIOUS, YEAR, Against, days_of, days_of_epochs, usual_range
from .words import SAID

_Days: TypeAlias = tuple[date, date]
_RANGES: Final[Mapping[str, str]] = SAID["times"]  # to a range of a question
_WHOLE: Final[Mapping[str, str]] = SAID["whole"]  # whole periods, to the range that is as long
_EARLIER: Final = "|".join(SAID["earlier"])
_YEAR_AGO: Final = "12mo"  # what is compared with last year is so with the same days of it
_OF_MONTHS: Final = {"30d": 1, "91d": 3, "12mo": 12}  # by the range that is as long
_MONTHS: Final[tuple[str, ...]] = tuple(SAID["months"].split())
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_MONTH: Final = f"(?P<month>{'|'.join(f'{name}|{name[:3]}' for name in _MONTHS)})"
_YEAR: Final = r"(?P<year>20\d\d)"
_TO: Final = re.compile(r" *(?:to|until|till|through|and) +")
_FROM: Final = re.compile(rf"\b(?:from )?{_DAY} (?:to|until|till|through) $")
_DATES: Final = (
    re.compile(rf"\b{_YEAR} (?P<month>\d\d?) (?P<day>\d\d?)\b"),
    re.compile(rf"\b{_DAY} (?:of )?{_MONTH}(?: {_YEAR})?\b"),
    re.compile(rf"\b{_MONTH} {_DAY}(?: {_YEAR})?\b"),
)


class Times(NamedTuple):
    """What words say of time: a range, or two days, and an earlier one; *rest* are the others."""

    rest: str
    date_range: str | _Days | None = None
    against: Against | None = None

    def range_for(self, metric: Metric, today: date) -> str | tuple[str, str] | None:
        """Return the range of a question about *metric*.

        Where it holds no start of an epoch it is the whole epoch that holds its first day, or if
        that one still runs, the last whole one.
        """
        said = self.date_range
        if said is None or metric.every == ONCE:
            return None
        days = _days_of_range(said, today)
        if epochs_between(metric.every, *days):
            return self.date_range_of_all()
        holding, running = (_epoch_of(metric.every, day) for day in (days[0], today))
        epoch = min(holding, running - 1)
        return _texts(days_of_epochs(metric.every, range(epoch, epoch + 1)))

    def most_epochs(self, metric: Metric, today: date) -> int:
        """Return how many epochs of *metric* its range can hold: the usual one if none is said."""
        first, last = _days_of_range(self.date_range or usual_range([metric]), today)
        return epochs_in(metric.every, (last - first).days + 1)

    def date_range_of_all(self) -> str | tuple[str, str] | None:
        """Return the range as a question has it, whatever it is about."""
        return _texts(self.date_range) if isinstance(self.date_range, tuple) else self.date_range


def _days_of_range(said: str | _Days, today: date) -> _Days:
    return days_of(said, today, "date_range") if isinstance(said, str) else said


def _texts(days: _Days) -> tuple[str, str]:
    return days[0].isoformat(), days[1].isoformat()


def times_in(words: str, today: date) -> Times:
    """Return the times that plain *words* say."""
    for pattern in _DATES:
        match = pattern.search(words)
        if match and (day := _day_of(match, today)):
            (first, last), begin, end = _stretch(words, match, day, today)
            return Times(f"{words[:begin]} {words[end:]}", (first, last))
    for said, name in (*_WHOLE.items(), *_RANGES.items()):
        if (rest := re.sub(rf"\b{said}\b", " ", words)) != words:
            if not re.search(rf"\b(?:{_EARLIER})(?: the)? {said}\b", words):
                return Times(rest, _whole(name, today) if said in _WHOLE else name)
            return Times(rest, None, YEAR) if name == _YEAR_AGO else Times(rest, name, PREVIOUS)
    return Times(words)


def _stretch(words: str, match: re.Match[str], day: date, today: date) -> tuple[_Days, int, int]:
    """Return the days that are said with *day*, and where in *words* they begin and end.

    "1 to 28 november" and "1 november to 28 november" are two days, else it is one.
    """
    if earlier := _FROM.search(words[: match.start()]):
        with suppress(ValueError):
            first = day.replace(day=int(earlier["day"]))
            if first <= day:
                return (first, day), earlier.start(), match.end()
    if link := _TO.match(words, match.end()):
        for pattern in _DATES:
            other = pattern.match(words, link.end())
            if other and (last := _day_of(other, today)) and day <= last:
                return (day, last), match.start(), other.end()
    return (day, day), match.start(), match.end()


def _day_of(match: re.Match[str], today: date) -> date | None:
    """Return the day that was typed, the last one of that name if no year was; None if none is."""
    name, year = match["month"], match["year"]
    month = int(name) if name.isdigit() else 1 + [each[:3] for each in _MONTHS].index(name[:3])
    with suppress(ValueError):
        day = date(int(year or today.year), month, int(match["day"]))
        return day if year or day <= today else day.replace(year=day.year - 1)
    return None


def _whole(name: str, today: date) -> _Days:
    """Return the last whole period of the calendar that is as long as the range *name*."""
    last = _begin(name, today) - timedelta(days=1)
    return _begin(name, last), last


def _begin(name: str, day: date) -> date:
    """Return the first day of the period that holds *day*."""
    if months := _OF_MONTHS.get(name):
        return day.replace(month=(day.month - 1) // months * months + 1, day=1)
    return day - timedelta(days=day.weekday() if name == "7d" else 0)


def _epoch_of(every: str, day: date) -> int:
    return epoch_of(every, day_of_date(day) * DAY)
