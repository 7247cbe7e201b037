"""What the collector asks of its store, and the values that cross this border.

Law of this layer: nothing here imports redis, numpy or flask; only the implementations do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """The address of one tally.  ``segment`` is canonical text, opaque here: "" for everybody."""

    metric: bytes  # the digest
    epoch: int
    segment: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """A stream entry handed to one worker, now for the ``deliveries``-th time."""

    id: str
    entry: bytes
    deliveries: int


# Of each cell, (index, delta): index 0 counts reports, index i + 1 is cell i of the tally.
Increments: TypeAlias = Mapping[Cell, Sequence[tuple[int, int]]]
# An upload as the store sees it: its id, the epoch day it was sealed, and its stream entry.
Sealed: TypeAlias = tuple[bytes, int, bytes]
# By (epoch, segment), one packed vector a shard that holds any: big-endian int64, n first.
Tallies: TypeAlias = dict[tuple[int, str], list[bytes]]


class Storage(Protocol):
    """A durable queue of entries and exact integer tallies, spread over ``shards``.

    Laws of all methods:
    1. A method that returns has happened, as durably as the store's profile says.
    2. A method that raises CollectorError may have happened, but not in part; repeating it is safe.
    3. An upload id is queued once, however often it is appended while its id is remembered.
    4. An entry is folded or quarantined once; its deletion is the token that decides.
    5. Whatever can refuse a change refuses it before the first write.

    Raises, all methods: StorageUnavailableError: no answer, or not prepared.
        StorageFullError: the store takes no more writes.
    """

    @property
    def shards(self) -> int:
        """Number of shards; fixed when the store is first prepared."""

    def prepare(self) -> None:
        """Make the store ready and check that it is safe to use.  Repeatable.

        Raises: UnsafeStoreError: its settings could lose acknowledged uploads, it is too old,
            or it was prepared with another number of shards.
        """

    def append(self, upload_id: bytes, sealed_day: int, entry: bytes) -> bool:
        """Queue *entry* unless *upload_id* was seen; return whether this was the first sight.

        Args: sealed_day: epoch day on which the device sealed the upload; bounds the memory of ids.
        """

    def append_many(self, uploads: Sequence[Sealed]) -> list[bool]:
        """Append several uploads in one round trip; each is first or duplicate on its own.

        An error of one is raised for all: those already appended are duplicates on repeat.
        """

    def claim(self, shard: int, consumer: str, count: int, min_idle_ms: int) -> list[Claimed]:
        """Hand at most *count* entries to *consumer*: first those others left, then new ones.

        Args: min_idle_ms: milliseconds after which a claimed entry counts as left.
        """

    def fold(self, shard: int, ids: Sequence[str], increments: Increments) -> tuple[str, ...]:
        """Delete the entries *ids* and add *increments*, as one step.

        Returns: (), or the ids that are no longer there; then nothing was changed.
        Raises: TallyOverflowError: a counter would leave its range; nothing was changed.
                ValueError: an id is given twice; nothing was changed.
        """

    def tallies(self, metric: bytes, epochs: Iterable[int]) -> Tallies:
        """Return every stored tally of *metric* in *epochs*, one packed vector a shard."""

    def quarantine(self, shard: int, entry_id: str, reason: str) -> bool:
        """Set an entry aside for an operator; return False if it was no longer there."""

    def retire(self, consumer: str) -> None:
        """Forget *consumer* on every shard where it holds no entry."""

    def backlog(self) -> int:
        """Return the number of entries appended but neither folded nor quarantined."""

    def quarantined(self) -> int:
        """Return the number of entries set aside."""

    def ping(self) -> None:
        """Return if an append would be taken now; raise what an append would raise."""

    def destroy(self) -> None:
        """Delete everything under this store's prefix."""
