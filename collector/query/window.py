"""Windows of time: from words and dates to whole epochs, and the labels of stretches of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal, TypeAlias

from client_sdk.core.epoch import (
    DAY,
    LENGTHS,
    ONCE,
    epoch_label,
    epoch_of,
    epoch_start,
    epochs_between,
)
from client_sdk.registry.metric import COUNT, Metric

from ..core.errors import QueryError

DEFAULT_RANGE: Final = "30d"
_LONG_RANGE: Final = "6mo"  # the default of epochs of four weeks: it holds five of them at least
_MAX_EPOCHS: Final = 10_000  # epochs of one window: a year of hours
FIRST_DAY: Final = date(1970, 1, 1)  # epoch day 0
LAST_DAY: Final = date(2999, 12, 31)  # far from where dates end, so that sums of them do not fail
_DAYS: Final = {"day": 1, "7d": 7, "14d": 14, "28d": 28, "30d": 30, "91d": 91}
_MONTHS: Final = {"month": 1, "6mo": 6, "12mo": 12}  # calendar months, this one included
RANGES: Final = (*_DAYS, *_MONTHS, "year")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

EPOCH: Final = "epoch"  # the granularity of dimension "time" alone: the metric's own
PERIOD: Final = "period"  # the window as one stretch, after the earlier one it is held against
PREVIOUS: Final = "previous"  # which earlier one: just before it
YEAR: Final = "year"  # the same dates a year ago
Against: TypeAlias = Literal["previous", "year"] | tuple[str, str]
# Of each granularity the lengths of epochs that it can hold whole.
GRANULARITIES: Final[Mapping[str, tuple[str, ...]]] = {
    EPOCH: tuple(LENGTHS),
    "hour": ("1h",),
    "day": ("1h", "1d"),
    "week": ("1h", "1d", "7d"),
    "month": ("1h", "1d", "7d"),  # a week belongs to the month in which it begins
    PERIOD: tuple(LENGTHS),
}


def usual_range(metrics: Iterable[Metric]) -> str:
    """Return the range of a question about *metrics* that names none."""
    return _LONG_RANGE if any(metric.every == "28d" for metric in metrics) else DEFAULT_RANGE


def days_of(words: str, today: date, field: str) -> tuple[date, date]:
    """Return the first and the last day of a range in *words*, one of RANGES, up to *today*.

    Raises: QueryError: names *field* and the words that there are.
    """
    if words in _DAYS:
        return max(today - timedelta(days=_DAYS[words] - 1), FIRST_DAY), today
    if words == "year":
        return today.replace(month=1, day=1), today
    if words not in _MONTHS:
        names = ", ".join(RANGES)
        raise QueryError(field, f"must be one of {names}, or two dates such as 2026-01-31")
    months = today.year * 12 + today.month - _MONTHS[words]
    return date(months // 12, months % 12 + 1, 1), today


def days_for(
    words: str, metrics: Iterable[Metric], now: float, field: str, *, compared: bool = False
) -> tuple[date, date]:
    """Return the first and the last day of a range in *words* of a question about *metrics*.

    It ends today; where devices are counted it begins with the last whole period at the latest.
    With the last whole period, and with at least one of each metric, it ends where the running one
    has no answer yet, as its reports are sent when it is over; and where it is *compared* with
    another range, which is whole.

    Raises: QueryError: as ``days_of``.
    """
    today = _date(now)
    repeated = [metric for metric in metrics if metric.every != ONCE]
    adds_up = any(metric.aggregate and metric.every != "1h" for metric in repeated)
    if not repeated or not (compared or adds_up):
        first, last = days_of(words, today, field)
        counted = [metric.every for metric in repeated if metric.show == COUNT]
        whole = [_date(epoch_start(every, epoch_of(every, now) - 1)) for every in counted]
        return max(min([first, *whole]), FIRST_DAY), last
    longest = max((metric.every for metric in repeated), key=LENGTHS.__getitem__)
    ends = epoch_start(longest, epoch_of(longest, now)) // DAY * DAY - 1  # shorter ones lie in it
    first, last = days_of(words, _date(ends), field)
    return max(min(first, _date(epoch_start(longest, epoch_of(longest, ends)))), FIRST_DAY), last


def days_of_epochs(every: str, epochs: range) -> tuple[date, date]:
    """Return the first and the last day of *epochs*."""
    return _date(epoch_start(every, epochs.start)), _date(epoch_start(every, epochs.stop) - 1)


def _date(seconds: float) -> date:
    return datetime.fromtimestamp(seconds, UTC).date()


def day_of_text(text: str, field: str) -> date:
    """Return the date that *text* is.  Raises QueryError, which names *field*."""
    try:
        if not _DATE.fullmatch(text):  # other digits than ours, and short forms, are dates too
            raise ValueError
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).date()
    except ValueError:
        raise QueryError(field, "must be a date such as 2026-01-31") from None
    if not FIRST_DAY <= day <= LAST_DAY:
        raise QueryError(field, f"must be from {FIRST_DAY} to {LAST_DAY}", day)
    return day


def epochs_of(metric: Metric, first: date, last: date, field: str) -> range:
    """Return the whole epochs of *metric* that begin on the days *first* to *last*.

    Raises: QueryError: names *field*: reversed, too many, or not one whole epoch.
    """
    if first > last:
        raise QueryError(field, f"must not be after {last}", first)
    if (last - first).days > _MAX_EPOCHS:
        raise QueryError(field, f"must leave at most {_MAX_EPOCHS} epochs up to {last}", first)
    epochs = epochs_between(metric.every, first, last)
    if not epochs:
        rule = f"leaves no whole epoch of {metric.every} up to {last}"
        days = LENGTHS[metric.every] // DAY
        raise QueryError(field, f"{rule}; {days} days always hold the start of one", first)
    if len(epochs) > _MAX_EPOCHS:
        raise QueryError(field, f"must leave at most {_MAX_EPOCHS} epochs", first)
    return epochs


def earlier_epochs(
    metric: Metric, epochs: range, days: tuple[date, date], against: Against
) -> range:
    """Return the epochs of the earlier stretch that *epochs*, those of *days*, are held against.

    The previous stretch is as many epochs just before; a year ago are the same dates of that year,
    for as many weeks.

    Raises: QueryError: names ``against``: before the first day, or not before *days*; or names
            ``date_range``: too long to have as many epochs before it.
    """
    if against == PREVIOUS:
        return _previous(epochs, "date_range")
    if isinstance(against, tuple):
        first, last = (day_of_text(text, f"against.{i}") for i, text in enumerate(against))
    else:
        first, last = map(_year_before, days_of_epochs(metric.every, epochs))
    if last >= days[0]:
        way = "name the earlier range here" if isinstance(against, tuple) else "take a shorter one"
        rule = f"must end before {days[0]}, where date_range begins"
        raise QueryError("against", f"{rule}; {way}", last)
    stretch = epochs_of(metric, first, last, "against")
    if len(stretch) + len(epochs) > _MAX_EPOCHS:
        rule = f"must leave at most {_MAX_EPOCHS} epochs, with those of date_range"
        raise QueryError("against", rule, first)
    return stretch


def _year_before(day: date) -> date:
    """Return the same date a year before; of 29 February the 28th."""
    if day.year <= FIRST_DAY.year:
        raise QueryError("against", f"must leave room for a year after {FIRST_DAY}", YEAR)
    is_leap_day = (day.month, day.day) == (2, 29)
    return day.replace(year=day.year - 1, day=28 if is_leap_day else day.day)


def _previous(epochs: range, field: str) -> range:
    """Return as many epochs as *epochs*, just before them.

    Raises: QueryError: names *field*: too many, or before the first day.
    """
    if 2 * len(epochs) > _MAX_EPOCHS:
        rule = f"must leave at most {_MAX_EPOCHS // 2} epochs, as there are as many before them"
        raise QueryError(field, rule)
    first = epochs.start - len(epochs)
    if first < 0:
        raise QueryError(field, f"must leave room for as long a period after {FIRST_DAY}")
    return range(first, epochs.start)


def labeller(
    metric: Metric, granularity: str, epochs: range, field: str, earlier: range | None = None
) -> Callable[[int], str]:
    """Return what gives each of *epochs* the label of its stretch of *granularity*.

    Args: earlier: epochs of the stretch before, where the granularity is PERIOD.

    Raises: QueryError: names *field*: an epoch is longer than the stretch.
    """
    every = metric.every
    if granularity not in GRANULARITIES:
        known = ", ".join(f"time:{name}" for name in GRANULARITIES if name != EPOCH)
        raise QueryError(field, f"time is asked for as time, {known}")
    if every not in GRANULARITIES[granularity]:
        rule = "has no time: it is reported once" if every == ONCE else f"is reported every {every}"
        raise QueryError(field, f"metric={metric.address} {rule}; take a longer stretch of time")
    if granularity == PERIOD:
        names = [_span(every, stretch) for stretch in (earlier or epochs, epochs)]
        return lambda epoch: names[epoch >= epochs.start]
    if granularity in (EPOCH, "hour"):
        return lambda epoch: epoch_label(every, epoch)
    return lambda epoch: _label(epoch_start(every, epoch), granularity)


def _label(start: int, granularity: str) -> str:
    day = datetime.fromtimestamp(start, UTC).date()
    if granularity == "month":
        return day.isoformat()[:7]
    return (day - timedelta(days=day.weekday() if granularity == "week" else 0)).isoformat()


def _span(every: str, epochs: range) -> str:
    """Return the labels of the first and the last of *epochs*, in one; in order, as time is."""
    return "/".join(dict.fromkeys(epoch_label(every, epochs[i]) for i in (0, -1)))
