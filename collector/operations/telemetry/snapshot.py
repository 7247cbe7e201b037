"""The state of a deployment at one moment, gathered for /metrics.  What is away is left out.

``Sources`` are where the numbers of a scrape come from; a process without a store has its own only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from client_sdk.core.epoch import DAY, day_of, day_of_date
from client_sdk.registry.metric import Metric

from ...core.config import Config
from ...core.credentials import id_of, readable
from ...core.errors import CollectorError
from ...storage.connection import allowed
from ...storage.diagnosis import Server, diagnose
from ...storage.hashes import MemoryHashes
from ...storage.records import (
    BYTES_BEGUN,
    ActivityStore,
    CredentialStore,
    SuspicionStore,
    WatchRecord,
    WatchState,
    WatchStore,
)
from ...storage.values import Counters
from .activity import Activity, Totals
from .flow import Flow, flow_of

_log = logging.getLogger("hearsay.telemetry")


class Sources(NamedTuple):
    """What processes tell of themselves, and what servers tell."""

    activity: ActivityStore
    servers: Callable[[], Sequence[Server]]
    unarchived: Callable[[], int | None]  # folds that wait for the archive; None: may not be asked
    watched: Callable[[], Mapping[bytes, WatchRecord]]  # of closed epochs, by metric
    watches: Callable[[], WatchState] = WatchState  # of published numbers

    @classmethod
    def of(cls, config: Config) -> Sources:
        """Return those of *config*'s store.  Nothing is sent before their first use."""
        diagnosis = diagnose(config)
        suspicions = SuspicionStore.of(config)
        watched = partial(allowed, suspicions.records, {})
        watches = partial(allowed, WatchStore.of(config).state, WatchState())
        activity = ActivityStore.of(config)
        return cls(activity, diagnosis.servers, diagnosis.unarchived, watched, watches)

    @classmethod
    def alone(cls) -> Sources:
        """Return those of one process with a store of its own."""
        return cls(ActivityStore(MemoryHashes()), list, lambda: None, dict)


@dataclass(frozen=True)
class Snapshot:
    """What one scrape shows."""

    process: str  # random name of the process that answers
    profile: str  # of that process
    expired_metrics: int  # by their registry, today
    next_metric_expiry: int | None  # Unix time; None if none is to come
    # Of each shard, whether that process refuses its uploads, as it last found the store.
    refused: Mapping[int, bool] = field(default_factory=dict)
    # What follows comes from the store, and is left out where it is away.
    store_is_up: bool = False
    shards: Sequence[Counters] = ()
    servers: Sequence[Server] = ()
    unarchived: int | None = None  # folds that wait for the archive; None if that may not be asked
    totals: Totals = Totals({}, {})  # noqa: RUF009  # frozen
    flow: Flow = Flow((), None)  # noqa: RUF009  # likewise
    next_token_expiry: int | None = None
    watched: Mapping[str, WatchRecord] = field(default_factory=dict)  # closed epochs, by metric
    watches: WatchState = WatchState()  # noqa: RUF009  # nothing writes to it
    # Bytes of tallies that each write key has begun today, by the key's short name.
    begun: Mapping[str, int] = field(default_factory=dict)
    is_replaced: bool = False  # whether the store is another than when that process began


def take(
    count: Callable[[], Sequence[Counters]],
    sources: Sources,
    activity: Activity,
    credentials: CredentialStore,
    metrics: Iterable[Metric],
    clock: Callable[[], float],
    profile: str,
    is_replaced: Callable[[], bool] = lambda: False,
    refused: Callable[[], Mapping[int, bool]] = dict,
) -> Snapshot:
    """Return the state now; a store that is away is part of it.

    Args: count: returns what became of the uploads of each shard.  is_replaced: whether the store
          was emptied, or is another than when this process began.  refused: says of each shard
          whether its uploads are refused.
    """
    now = clock()
    today = day_of(now)
    known = list(metrics)
    names = [(metric.address, metric.digest) for metric in known]
    ends = [day_of_date(metric.expires) + 1 for metric in known]  # the first day without it
    to_come = [end for end in ends if end > today]
    away = Snapshot(
        process=activity.process,
        profile=profile,
        expired_metrics=len(ends) - len(to_come),
        next_metric_expiry=min(to_come) * DAY if to_come else None,
        refused=refused(),
    )
    try:
        watched = sources.watched()
        return replace(
            away,
            store_is_up=True,
            shards=count(),
            servers=sources.servers(),
            unarchived=sources.unarchived(),
            totals=activity.totals(),  # first: it shares what this process has counted
            flow=flow_of(sources.activity, now),
            next_token_expiry=_next_token_expiry(credentials, today),
            begun={id_of(key): size for key, size in credentials.share(BYTES_BEGUN, today).items()},
            watched={name: watched[digest] for name, digest in names if digest in watched},
            watches=sources.watches(),
            is_replaced=is_replaced(),
        )
    except CollectorError as error:
        _log.error("the state of the store cannot be read: %s", error)
        return away


def _next_token_expiry(credentials: CredentialStore, today: int) -> int | None:
    """Return when the next credential that is good now ends, None if none ever does."""
    good = (c for c in readable(credentials.records()).values() if c.is_good(today))
    ends = (credential.expires for credential in good if credential.expires is not None)
    return min((end * DAY for end in ends), default=None)
