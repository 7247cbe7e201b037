"""Epochs: the only notion of time that a report carries.  Pure integer arithmetic on UTC."""

from __future__ import annotations

from .errors import InvalidParameterError
from .typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import date

HOUR: Final = 3_600  # seconds
DAY: Final = 86_400  # seconds
LENGTHS: Final = {"1h": HOUR, "1d": DAY, "7d": 7 * DAY, "28d": 28 * DAY}  # seconds
ONCE: Final = "once"  # one epoch, number 0, that never ends
EVERY: Final = (*LENGTHS, ONCE)

_FIRST_DAY: Final = 719_163  # of 1970-01-01, where 0001-01-01 is 1
_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)  # their longest

# 1970-01-01 was a Thursday: shifted by three days, epochs of 7d begin on Mondays, and one of 28d
# holds four of them whole.
_OFFSETS: Final = {"1h": 0, "1d": 0, "7d": 3 * DAY, "28d": 3 * DAY}  # seconds


def day_of(seconds: float) -> int:
    """Return the epoch day, days since 1970-01-01 UTC, of Unix time *seconds*."""
    return int(seconds // DAY)


def day_of_date(day: date) -> int:
    """Return the epoch day of a calendar *day*."""
    return day.toordinal() - _FIRST_DAY


def is_date(text: object) -> bool:
    """Whether *text* is a calendar day, such as 2027-12-31, as ``datetime.date`` writes it."""
    if not isinstance(text, str) or len(text) != 10 or text[4] + text[7] != "--":
        return False
    year, month, day = text[:4], text[5:7], text[8:]
    if not (text.isascii() and (year + month + day).isdigit()):
        return False
    leap = int(year) % 4 == 0 and (int(year) % 100 != 0 or int(year) % 400 == 0)
    if int(year) == 0 or not 1 <= int(month) <= 12:
        return False
    return 1 <= int(day) <= _MONTHS[int(month) - 1] - (int(month) == 2 and not leap)


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
    from datetime import UTC, datetime  # 1 ms that a start need not pay for

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
    following = day_of_date(last) + 1
    begin, end = day_of_date(first) * DAY + offset, following * DAY + offset
    return range(-(-begin // length), -(-end // length))


def epochs_in(every: str, dates: int) -> int:
    """Return the most epochs of length *every* that *dates* dates in a row can touch."""
    if every == ONCE:
        return 1
    length = LENGTHS[every] // DAY
    if length:  # the first may have its last date here, and the last one its first
        return (dates + 2 * (length - 1)) // length
    return dates * DAY // LENGTHS[every]


def _offset(every: str) -> int:
    return _OFFSETS[every] if every in _OFFSETS else _refuse(every)


def _refuse(every: str) -> int:
    raise InvalidParameterError("every", every, f"must be one of {', '.join(EVERY)}")
