"""Where the numbers of a scrape come from; and the one that a process without a store has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ..config import Config
from ..errors import RefusedByStoreError
from ..storage.activity import ActivityStore, Told, open_activity
from ..storage.diagnosis import Server, diagnose
from ..storage.suspicions import SuspicionStore, Watched, open_suspicions


class Sources(NamedTuple):
    """What processes tell of themselves, and what servers tell."""

    activity: ActivityStore
    servers: Callable[[], Sequence[Server]]
    unarchived: Callable[[], int | None]  # folds that wait for the archive; None: may not be asked
    watched: Callable[[], Mapping[bytes, Watched]]  # of closed epochs, by metric

    @classmethod
    def of(cls, config: Config) -> Sources:
        """Return those of *config*'s store.  Nothing is sent before their first use."""
        asked = diagnose(config)
        kept = partial(watched_in, open_suspicions(config))
        return cls(open_activity(config), asked.servers, asked.unarchived, kept)

    @classmethod
    def alone(cls) -> Sources:
        """Return those of one process with a store of its own."""
        return cls(Unshared(), list, lambda: None, dict)


def watched_in(store: SuspicionStore) -> Mapping[bytes, Watched]:
    """Return what was found of closed epochs; nothing if it may not be read.

    Raises: StorageUnavailableError.
    """
    try:
        return store.kept()
    except RefusedByStoreError:  # a user of the release before
        return {}


class Unshared:
    """The ActivityStore protocol in memory: what this process tells, and nobody else."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._told: dict[tuple[int, str], Told] = {}

    def tell(self, day: int, told: Told) -> None:
        """Keep the sums of a process."""
        self._told[day, told.process] = told

    def told(self, day: int) -> list[Told]:
        """Return what was told on a day."""
        return [told for (of, _), told in self._told.items() if of == day]
