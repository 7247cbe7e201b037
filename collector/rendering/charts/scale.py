"""Scales: from values or times to user units and back, and the ticks of both.

Times are read as answers name them, all in UTC, without a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from math import ceil, floor, log10
from typing import Final

_LEAST: Final = 1e-290  # ends nearer together are one
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)
_DAY: Final = 24.0  # hours
_STEPS: Final = (1, 2, 3, 6, 12, 24, 48, 168, 336)  # hours
_MONTH_STEPS: Final = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1_200)
_MONDAY: Final = 96.0  # hours from the start of 1970 to its first Monday
_WIDEST_GAP: Final = 1.5  # usual distances: more is a gap


@dataclass(frozen=True)
class Linear:
    """Maps low..high onto start..end; ``end`` may be the smaller, as upwards on a screen."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return where *value* is, in user units."""
        part = (value - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * part

    def inverse(self, place: float) -> float:
        """Return the value at *place*."""
        part = (place - self.start) / (self.end - self.start)
        return self.low + (self.high - self.low) * part

    def within(self, value: float) -> float:
        """Return where *value* is, or the nearer end if it is outside."""
        return self.at(min(max(value, self.low), self.high))


@dataclass(frozen=True)
class Log:
    """Maps low..high, both above 0, onto start..end: equal factors are equal distances."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return where *value* > 0 is, in user units."""
        return self._line().at(log10(value))

    def inverse(self, place: float) -> float:
        """Return the value at *place*."""
        return float(10 ** self._line().inverse(place))

    def _line(self) -> Linear:
        return Linear(log10(self.low), log10(self.high), self.start, self.end)


def nice_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Return round numbers from at most *low* to at least *high*, about *most* of them or fewer.

    They are multiples of 1, 2 or 5 times a power of ten.
    """
    low, high = apart(low, high)
    step = _nice_step((high - low) / max(most - 1, 1))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return tuple(i * step for i in range(first, last + 1))


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Return powers of ten from at most *low* > 0 to at least *high*; 2 and 5 too if few."""
    first = floor(log10(low) + 1e-9)
    last = max(ceil(log10(high) - 1e-9), first + 1)
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    ticks = [factor * 10.0**power for power in range(first, last) for factor in factors]
    return (*ticks, 10.0**last)


def apart(low: float, high: float) -> tuple[float, float]:
    """Return the ends, moved apart if there is no room between them."""
    if high - low > max(1e-12 * max(abs(low), abs(high)), _LEAST):
        return low, high
    reach = abs(low) / 2 or 1.0
    return low - reach, high + reach


def _nice_step(step: float) -> float:
    power = 10.0 ** floor(log10(step))
    return float(next(nice for nice in (1, 2, 5, 10) if nice * power >= step * 0.999) * power)


@dataclass(frozen=True)
class Tick:
    """A place on a time axis, in hours from the start of 1970, and its label."""

    hours: float
    label: str


def ticks(low: float, high: float, most: int, own: Sequence[float] = ()) -> tuple[Tick, ...]:
    """Return at most about *most* ticks from *low* to *high* hours; years where they begin.

    Args: own: the times of what is drawn, ascending: the ticks, if they are no more than *most*.
    """
    most = max(most, 2)
    length = high - low
    step: float | None = next((hours for hours in _STEPS if length / hours <= most - 1), None)
    if 0 < len(own) <= most:
        step, places = usual_step(own), own
    else:
        places = _even(low, high, step) if step else _months(low, high, most)
    labels, year = [], None
    for place in places:
        moment = _START + timedelta(hours=place)
        labels.append(_label(moment, step, moment.year != year))
        year = moment.year
    return tuple(Tick(place, label) for place, label in zip(places, labels, strict=True))


def usual_step(places: Sequence[float]) -> float:
    """Return the least distance of neighbours in *places*, ascending; a day if there is none."""
    steps = [after - before for before, after in pairwise(places) if after > before]
    return min(steps, default=_DAY)


def is_gap(before: float, after: float, step: float) -> bool:
    """Return whether something is missing between two times."""
    return after - before > _WIDEST_GAP * step


def _even(low: float, high: float, step: float) -> list[float]:
    offset = _MONDAY if step >= 168 else 0.0
    first = -((offset - low) // step)  # rounded up
    count = int((high - offset) // step - first) + 1
    return [offset + (first + i) * step for i in range(max(count, 0))]


def _months(low: float, high: float, most: int) -> list[float]:
    begin, end = (_START + timedelta(hours=ends) for ends in (low, high))
    first, last = begin.year * 12 + begin.month - 1, end.year * 12 + end.month - 1
    step = next((n for n in _MONTH_STEPS if (last - first) / n <= most - 1), _MONTH_STEPS[-1])
    months = range(-(-first // step) * step, last + 1, step)
    dates = (date(month // 12, month % 12 + 1, 1) for month in months)
    places = [(day - _START.date()).days * _DAY for day in dates]
    return [place for place in places if low <= place <= high]


def _label(moment: datetime, step: float | None, new_year: bool) -> str:
    day = f"{moment.day} {_MONTHS[moment.month - 1]}"
    if step is None:
        month = _MONTHS[moment.month - 1]
        return f"{month} {moment.year}" if new_year else month
    if step < _DAY and moment.hour:
        return f"{moment:%H:%M}"
    return f"{day} {moment.year}" if new_year else day
