"""Where the numbers of a scrape come from; and the one that a process without a store has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ..core.config import Config
from ..core.errors import RefusedByStoreError
from ..storage.diagnosis import Server, diagnose
from ..storage.records import (
    ActivityRecord,
    ActivityStore,
    SuspicionStore,
    WatchRecord,
    open_activity,
    open_suspicions,
)


class Sources(NamedTuple):
    """What processes tell of themselves, and what servers tell."""

    activity: ActivityStore
    servers: Callable[[], Sequence[Server]]
    unarchived: Callable[[], int | None]  # folds that wait for the archive; None: may not be asked
    watched: Callable[[], Mapping[bytes, WatchRecord]]  # of closed epochs, by metric

    @classmethod
    def of(cls, config: Config) -> Sources:
        """Return those of *config*'s store.  Nothing is sent before their first use."""
        asked = diagnose(config)
        kept = partial(watched_in, open_suspicions(config))
        return cls(open_activity(config), asked.servers, asked.unarchived, kept)

    @classmethod
    def alone(cls) -> Sources:
        """Return those of one process with a store of its own."""
        return cls(MemoryActivity(), list, lambda: None, dict)


def watched_in(store: SuspicionStore) -> Mapping[bytes, WatchRecord]:
    """Return what was found of closed epochs; nothing if it may not be read.

    Raises: StorageUnavailableError.
    """
    try:
        return store.records()
    except RefusedByStoreError:  # a user of the release before
        return {}


class MemoryActivity:
    """The ActivityStore protocol in memory: what this process tells, and nobody else."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._records: dict[tuple[int, str, str], ActivityRecord] = {}

    def put(self, day: int, record: ActivityRecord) -> None:
        """Keep the sums of a process; those that it leaves out stay."""
        place = day, record.role, record.process
        known = self._records.get(place, record)
        self._records[place] = replace(record, counts={**known.counts, **record.counts})

    def records(self, day: int) -> list[ActivityRecord]:
        """Return what was told on a day."""
        return [record for (of, _, _), record in self._records.items() if of == day]
