"""Uploads of each hour, and since when none waits longer: what an operator sees of the flow.

Processes count uploads by the hour and write sums, so that no entry of the store has a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from client_sdk.core.epoch import DAY, HOUR, day_of

from ...storage.records import ActivityStore
from .activity import ACCEPTED_AT, EMPTY, REFUSED_AT, totals_of


class Hour(NamedTuple):
    """The uploads of an hour, by the hours from 1970 to its begin."""

    hour: int
    accepted: int
    refused: int


class Flow(NamedTuple):
    """The hours of yesterday and today, in order, the running one last.

    ``empty_at`` is the Unix time of the last look at which no upload waited; None if none was seen.
    So every upload that waits has come since.
    """

    hours: Sequence[Hour]
    empty_at: int | None


def flow_of(store: ActivityStore, now: float) -> Flow:
    """Return the flow as all processes have counted it until *now*, Unix time.

    Raises: StorageUnavailableError.
    """
    today = day_of(now)
    records = [record for day in (today - 1, today) for record in store.records(day)]
    totals = totals_of(records, {})
    accepted, refused = totals.of(ACCEPTED_AT), totals.of(REFUSED_AT)
    hours = [
        Hour(hour, accepted.get(str(hour), 0), refused.get(str(hour), 0))
        for hour in range((today - 1) * (DAY // HOUR), int(now) // HOUR + 1)
    ]
    seen = [record.counts[f"{EMPTY}."] for record in records if f"{EMPTY}." in record.counts]
    return Flow(hours, max(seen, default=None))
