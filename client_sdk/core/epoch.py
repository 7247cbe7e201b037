"""Epochs: the only notion of time that a report carries.  Pure integer arithmetic on UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final

from .errors import InvalidParameterError

HOUR: Final = 3_600  # seconds
DAY: Final = 86_400  # seconds
LENGTHS: Final = {"1h": HOUR, "1d": DAY, "7d": 7 * DAY, "28d": 28 * DAY}  # seconds
ONCE: Final = "once"  # one epoch, number 0, that never ends
EVERY: Final = (*LENGTHS, ONCE)

# 1970-01-01 was a Thursday: shifted by three days, epochs of 7d begin on Mondays, and one of 28d
# holds four of them whole.
_OFFSETS: Final = {"1h": 0, "1d": 0, "7d": 3 * DAY, "28d": 3 * DAY}  # seconds


def day_of(seconds: float) -> int:
    """Return the epoch day, days since 1970-01-01 UTC, of Unix time *seconds*."""
    return int(seconds // DAY)


def day_of_date(day: date) -> int:
    """Return the epoch day of a calendar *day*."""
    return (day - date(1970, 1, 1)).days


def epoch_of(every: str, seconds: float) -> int:
    """Return the number of the epoch of length *every* that holds Unix time *seconds*.

    Raises: InvalidParameterError: *every* is not one of EVERY.
    """
    if every == ONCE:
        return 0
    return int((seconds + _offset(every)) // LENGTHS[every])


def epoch_start(every: str, epoch: int) -> int:
    """Return the Unix time at which *epoch* begins; 0 for ``once``."""
    if every == ONCE:
        return 0
    return epoch * LENGTHS[every] - _offset(every) if every in LENGTHS else _refuse(every)


def epoch_label(every: str, epoch: int) -> str:
    """Return the beginning of *epoch* as people write it: a date, with the hour for ``1h``."""
    if every == ONCE:
        return ONCE
    start = datetime.fromtimestamp(epoch_start(every, epoch), UTC)
    return start.strftime("%Y-%m-%dT%H:00Z") if every == "1h" else start.date().isoformat()


def epochs_between(every: str, first: date, last: date) -> range:
    """Return the epochs that begin on the days *first* to *last*, both included, in UTC.

    What began before *first* is left out, so that no window holds part of an epoch.
    """
    if every == ONCE:
        return range(1)
    offset = _offset(every)
    length = LENGTHS[every]
    begin = _midnight(first) + offset
    end = _midnight(last + timedelta(days=1)) + offset
    return range(-(-begin // length), -(-end // length))


def epochs_in(every: str, dates: int) -> int:
    """Return the most epochs of length *every* that *dates* dates in a row can touch."""
    if every == ONCE:
        return 1
    length = LENGTHS[every] // DAY
    if length:  # the first may have its last date here, and the last one its first
        return (dates + 2 * (length - 1)) // length
    return dates * DAY // LENGTHS[every]


def _midnight(day: date) -> int:
    return day_of_date(day) * DAY


def _offset(every: str) -> int:
    return _OFFSETS[every] if every in _OFFSETS else _refuse(every)


def _refuse(every: str) -> int:
    raise InvalidParameterError("every", every, f"must be one of {', '.join(EVERY)}")
