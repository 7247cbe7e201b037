"""How the reports of a metric arrive: how many a day, until when, and how many are still missing.

It is read from any answer by time, as every row of a stretch has the number of its reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil
from types import MappingProxyType
from typing import Final

from client_sdk.core.epoch import DAY, LENGTHS
from client_sdk.registry.metric import Metric

from ...analytics.rows import TIME, Period, Row
from ...core.remarks import Code

_LENGTHS: Final = MappingProxyType({f"{TIME}:day": "1d", f"{TIME}:week": "7d"})
_FULL: Final = 7  # stretches of which a rate is the average
_SILENT: Final = 2  # whole stretches without reports, and a day, that are no chance


@dataclass(frozen=True)
class Stretch:
    """The reports of some days."""

    first: date
    last: date
    n: int

    @property
    def length(self) -> int:
        """Its days."""
        return (self.last - self.first).days + 1


@dataclass(frozen=True)
class Progress:
    """How far a metric is on the way to its first number."""

    n: int  # reports
    least: int  # reports that a number takes
    days: int | None = None  # that it will take, None if the rate is not known

    @property
    def words(self) -> str:
        """It in words: "1,200 of 3,000 reports, about 3 days"."""
        days = f", about {self.days:,} day{'' if self.days == 1 else 's'}" if self.days else ""
        return f"{self.n:,} of {self.least:,} reports{days}"


def is_short(row: Row | None) -> bool:
    """Return whether *row* has no number because there are too few reports."""
    return row is not None and row.refusal is not None and row.refusal.code == Code.TOO_FEW


def stretches_of(rows: Sequence[Row], metric: Metric, granularity: str) -> list[Stretch]:
    """Return the stretches that *rows* of *metric* by time are of, in their order."""
    every = _LENGTHS.get(granularity, metric.every)
    counts = {row.dimensions.get(TIME, ""): row.n for row in rows}
    periods = [(Period.read(label, every), n) for label, n in counts.items()]
    known = ((period.days, n) for period, n in periods if period)
    return sorted(
        (Stretch(*days, n) for days, n in known if days), key=lambda stretch: stretch.first
    )


def whole_days(period: Period) -> int:
    """Return how many days *period* has, of epochs of its length."""
    return (period.last - period.begin).days + max(LENGTHS.get(period.every, DAY) // DAY, 1)


def progress(n: int, least: int, arrived: Sequence[Stretch], window: int, today: date) -> Progress:
    """Return the progress of *n* reports to *least*, at the rate of the last whole stretches.

    There is no rate without the last whole stretch; and at a rate at which a window never holds
    enough the days are not known either.

    Args: window: days that a number is of at most.
    """
    whole = [stretch for stretch in arrived if stretch.last < today][-_FULL:]
    if not whole or (today - whole[-1].last).days > whole[-1].length:
        return Progress(n, least)
    days = (whole[-1].last - whole[0].first).days + 1
    total = sum(stretch.n for stretch in whole)
    if total * window < least * days:
        return Progress(n, least)
    return Progress(n, least, max(ceil((least - n) * days / total), 1))


def silent_since(arrived: Sequence[Stretch], today: date) -> date | None:
    """Return the last day of reports if since then so many are missing that something is wrong."""
    if not arrived:
        return None
    last = arrived[-1]
    is_silent = (today - last.last).days > _SILENT * last.length + 1
    return last.last if is_silent else None
