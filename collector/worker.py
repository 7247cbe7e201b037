"""The worker: claim entries, tally them together, fold them in one step.

Law: an entry leaves the stream folded, or quarantined, or not at all.  A worker may die anywhere:
what it claimed is claimed again by another.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from .entry import Accepted, decode
from .errors import (
    CorruptEntryError,
    RefusedByStoreError,
    StorageFullError,
    StorageUnavailableError,
)
from .storage import Claimed, Storage
from .tally import Mechanisms, tally_entries

MAX_DELIVERIES: Final = 5  # times that an entry which cannot be folded is tried
CONSUMER_SIZE: Final = 8  # bytes of chance in a worker's name; says nothing of its machine

# What bad data raises in decoding, tallying or folding.  A store that is away is none of these.
_POISON: Final = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError)

_log = logging.getLogger("hearsay.worker")


@dataclass(frozen=True)
class Pace:
    """How much a worker takes at once, and how long it waits."""

    least_entries: int = 16  # entries a claim; the first claim, before any size is known
    most_entries: int = 256  # entries a claim; one fold of them stays far below 100 ms
    batch_bytes: int = 16 * 1024 * 1024  # bytes a claim aims at: a few gateway uploads
    min_idle_ms: int = 10_000  # milliseconds after which a claimed entry counts as left
    idle_s: float = 0.05  # seconds of rest when nothing was there
    first_retry_s: float = 0.1  # seconds of rest when the store is away, doubling …
    last_retry_s: float = 5.0  # … up to this

    def next_count(self, count: int, entries: int, size: int) -> int:
        """Return how many entries to claim after a claim of *entries* with *size* bytes."""
        if not entries:
            return count
        fitting = self.batch_bytes * entries // max(size, 1)
        return max(1, min(count * 2, fitting, self.most_entries))


@dataclass(frozen=True)
class _Decoded:
    claimed: Claimed
    columns: Sequence[Accepted]


class Worker:
    """Folds what it can claim.  Any number of workers may share a store."""

    def __init__(
        self,
        storage: Storage,
        mechanisms: Mechanisms,
        *,
        consumer: str | None = None,
        pace: Pace | None = None,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """Fold into *storage*, which must be prepared.

        Args: mechanisms: of every known metric, by digest.  consumer: unique among live workers;
              random if left out.  beat: called in every round of ``run``, to show life.
        """
        self._storage, self._mechanisms, self._beat = storage, mechanisms, beat
        self._consumer = consumer or secrets.token_hex(CONSUMER_SIZE)
        self._pace = pace or Pace()
        self._counts = [self._pace.least_entries] * storage.shards
        self._unknown: set[bytes] = set()  # digests already logged

    def run(self, stop: threading.Event) -> None:
        """Fold until *stop* is set, resting when idle and while the store is away."""
        retry = self._pace.first_retry_s
        while not stop.is_set():
            self._beat()
            try:
                rest = 0.0 if self.step() else self._pace.idle_s
                retry = self._pace.first_retry_s
            except (StorageUnavailableError, StorageFullError) as error:
                _log.warning("%s; trying again in %.1f s", error, retry)
                rest, retry = retry, min(2 * retry, self._pace.last_retry_s)
            stop.wait(rest)
        self._retire()

    def step(self) -> int:
        """Claim from every shard once and fold; return the number of entries folded.

        A shard that fails does not keep the others waiting: its error is raised at the end.
        Raises: StorageUnavailableError: what was claimed stays pending and is claimed again.
        """
        folded, failure = 0, None
        for shard in range(self._storage.shards):
            try:
                folded += self._step_shard(shard)
            except (StorageUnavailableError, StorageFullError) as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return folded

    def _step_shard(self, shard: int) -> int:
        count = self._counts[shard]
        claimed = self._storage.claim(shard, self._consumer, count, self._pace.min_idle_ms)
        size = sum(len(one.entry) for one in claimed)
        self._counts[shard] = self._pace.next_count(count, len(claimed), size)
        batch = self._decode(shard, claimed)
        try:
            return self._fold(shard, batch)
        except (*_POISON, RefusedByStoreError):  # one entry's counters may be what is refused
            return sum(self._fold_alone(shard, one) for one in batch)

    def _decode(self, shard: int, claimed: Sequence[Claimed]) -> list[_Decoded]:
        """Return what can be folded here; set corrupt entries aside, leave unknown ones pending."""
        batch = []
        for one in claimed:
            try:
                decoded = _Decoded(one, decode(one.entry))
            except CorruptEntryError as error:
                self._quarantine(shard, one, str(error))
                continue
            if self._knows(decoded):
                batch.append(decoded)
        return batch

    def _knows(self, decoded: _Decoded) -> bool:
        # An older worker must leave the entries of a newer registry to its newer colleagues.
        unknown = {c.cell.metric for c in decoded.columns} - self._mechanisms.keys()
        for metric in unknown - self._unknown:
            _log.warning("metric=%s: is in no registry of this worker; left pending", metric.hex())
        self._unknown |= unknown
        return not unknown

    def _fold(self, shard: int, batch: Sequence[_Decoded]) -> int:
        """Fold *batch*, without the entries that somebody else folded meanwhile."""
        while batch:
            ids = [one.claimed.id for one in batch]
            increments = tally_entries((one.columns for one in batch), self._mechanisms)
            missing = set(self._storage.fold(shard, ids, increments))
            if not missing:
                break
            batch = [one for one in batch if one.claimed.id not in missing]
        return len(batch)

    def _fold_alone(self, shard: int, one: _Decoded) -> int:
        """Fold one entry of a batch that failed, or set it aside after its last try."""
        try:
            return self._fold(shard, [one])
        except (*_POISON, RefusedByStoreError) as error:
            _log.error("entry=%s: cannot be folded: %s", one.claimed.id, type(error).__name__)
            if one.claimed.deliveries >= MAX_DELIVERIES:
                self._quarantine(shard, one.claimed, type(error).__name__)
            return 0

    def _quarantine(self, shard: int, claimed: Claimed, reason: str) -> None:
        _log.error("entry=%s: is set aside: %s", claimed.id, reason)
        self._storage.quarantine(shard, claimed.id, reason)

    def _retire(self) -> None:
        try:
            self._storage.retire(self._consumer)
        except (StorageUnavailableError, StorageFullError) as error:
            _log.warning("%s; this worker's name stays in the store", error)
