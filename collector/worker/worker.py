"""The worker: claim entries, tally them together, fold them in one step.

Law: an entry leaves the stream folded, or quarantined, or not at all.  A worker may die anywhere:
what it claimed is claimed again by another.  An entry that kills its workers is set aside unread.
While the worker's clock and the store's do not agree, nothing is folded: all entries wait.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ..core.cells import Cell, class_of
from ..core.entry import AcceptedColumn, decode
from ..core.errors import (
    ClassEndedError,
    ClockError,
    CorruptEntryError,
    RefusedByStoreError,
    StorageFullError,
    StorageUnavailableError,
    UnsafeStoreError,
)
from ..core.steady_clock import SteadyClock
from ..estimation.tally import Mechanisms, tally_entries
from ..storage.protocols import ALONE_FROM, MAX_CLAIM, Work
from ..storage.values import ClaimedEntry, Increments

MAX_DELIVERIES: Final = 5  # times that an entry which cannot be folded is tried
KILLS: Final = "deliveries"  # reason of an entry whose workers died, as often
_NEVER_LEFT_MS: Final = 10**12  # milliseconds, some thirty years
_CONSUMER_SIZE: Final = 8  # bytes of chance in a worker's name; says nothing of its machine

# What bad data raises in decoding, tallying or folding.  A store that is away is none of these.
_POISON: Final = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError)

_log = logging.getLogger("hearsay.worker")


@dataclass(frozen=True)
class Pace:
    """How much a worker takes at once, and how long it waits."""

    most_entries: int = 256  # entries a claim; one fold of them stays far below 100 ms
    batch_bytes: int = MAX_CLAIM  # bytes after which a claim stops
    min_idle_ms: int = 10_000  # milliseconds after which a claimed entry counts as left
    idle_s: float = 0.05  # seconds of rest when nothing was there
    first_retry_s: float = 0.1  # seconds of rest when the store is away; the next is twice that
    last_retry_s: float = 5.0  # seconds: no such rest is longer
    sweep_s: float = 300.0  # seconds between two looks for the names of killed workers
    forgotten_ms: int = 3_600_000  # milliseconds without a sign of life after which one is killed
    unknown_s: float = 60.0  # seconds for which what was handed back is left to others
    clock_s: float = 1.0  # seconds between two looks at a shard's clock while nothing is folded
    ids_s: float = 600.0  # seconds between two looks for upload ids that may be forgotten


@dataclass(frozen=True)
class _DecodedEntry:
    claimed: ClaimedEntry
    columns: Sequence[AcceptedColumn]


class Worker:
    """Folds what it can claim.  Any number of workers may share a store."""

    def __init__(
        self,
        storage: Work,
        mechanisms: Mechanisms,
        every: Mapping[bytes, str],
        *,
        consumer: str | None = None,
        pace: Pace | None = None,
        beat: Callable[[], None] = lambda: None,
        clock: SteadyClock | None = None,
        tell_clock: Callable[[], None] = lambda: None,
        tell_fold: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """Fold into *storage*, which must be prepared.

        Args: mechanisms: of every known metric, by digest.  every: length of its epochs, likewise.
              consumer: unique among live workers; random if left out.  beat: called in every
              round of ``run``, to show life.  clock: held against the store's, which is believed
              if there is none.  tell_clock: called when nothing is folded because of them.
              tell_fold: called with the seconds of each fold, decoding and tallying included.
        """
        self._storage, self._mechanisms, self._every = storage, mechanisms, every
        self._consumer = consumer or secrets.token_hex(_CONSUMER_SIZE)
        self._pace, self._beat = pace or Pace(), beat
        self._unknown: set[bytes] = set()  # digests already logged
        self._failing: set[int] = set()  # shards already logged
        self._clock, self._tell_clock, self._tell_fold = clock, tell_clock, tell_fold
        self._fold_begun = 0.0  # moment on the monotonic clock: after a claim, or the last fold
        # Moments on the monotonic clock: of the next look for killed workers, and for old ids; of
        # each shard, of the next look at its clock, and until when what others left is not taken.
        self._sweep_at = self._ids_at = 0.0
        self._clock_at: dict[int, float] = {}
        self._new_only_until: dict[int, float] = {}

    def run(self, stop: threading.Event) -> None:
        """Fold until *stop* is set, resting when idle and while the store is away."""
        retry = self._pace.first_retry_s
        while not stop.is_set():
            self._beat()
            try:
                self._sweep()
                self._forget_ids()
                rest = 0.0 if self.step() else self._pace.idle_s
                retry = self._pace.first_retry_s
            except (StorageUnavailableError, StorageFullError, ClockError) as error:
                _log.warning("%s; trying again in %.1f s", error, retry)
                rest, retry = retry, min(2 * retry, self._pace.last_retry_s)
            stop.wait(rest)
        self._retire()

    def step(self) -> int:
        """Claim from every shard once and fold; return the number of entries folded.

        A shard that fails does not keep the others waiting: it is logged when it begins to, and
        its error is raised at the end, if there was nothing to fold on them.

        Raises: StorageUnavailableError: what was claimed stays pending and is claimed again.
                ClockError: the clocks do not agree; nothing is held.
        """
        if self._clock is not None:
            self._clock.look()
        folded, failures = 0, dict[int, Exception]()
        for shard in range(self._storage.shards):
            try:
                folded += self._step_shard(shard)
            except (StorageUnavailableError, StorageFullError, ClockError) as error:
                failures[shard] = error
        failure = next(iter(failures.values()), None)
        if folded:  # else what is raised is logged
            for shard in failures.keys() - self._failing:
                _log.warning("shard=%d: is not folded, as others are: %s", shard, failures[shard])
            self._failing = {*failures}
        if isinstance(failure, ClockError):
            self._tell_clock()
        if failure is not None and not folded:
            raise failure
        return folded

    def _step_shard(self, shard: int) -> int:
        pace, now = self._pace, time.monotonic()
        if now >= self._clock_at.get(shard, 0.0):
            self._time(shard)  # before a claim: each one counts as a try to fold
            self._clock_at[shard] = now + pace.clock_s
        is_left = now >= self._new_only_until.get(shard, 0.0)
        min_idle_ms = pace.min_idle_ms if is_left else _NEVER_LEFT_MS
        claimed = self._storage.claim(
            shard, self._consumer, pace.most_entries, min_idle_ms, pace.batch_bytes
        )
        self._fold_begun = time.monotonic()
        try:
            return self._fold_each(shard, claimed)
        except (ClockError, StorageUnavailableError) as error:
            # No fault of an entry.  Where the store does not answer at all, its tries count.
            with suppress(StorageUnavailableError):
                self._storage.spare(shard, self._consumer, [entry.id for entry in claimed])
            if isinstance(error, ClockError):
                self._clock_at.pop(shard, None)
            raise

    def _fold_each(self, shard: int, claimed: Sequence[ClaimedEntry]) -> int:
        folded = self._fold_claimed(
            shard, [entry for entry in claimed if entry.deliveries < ALONE_FROM]
        )
        for entry in claimed:
            if entry.deliveries > MAX_DELIVERIES:
                self._quarantine(shard, entry, KILLS)
            elif entry.deliveries >= ALONE_FROM:
                folded += self._fold_claimed(shard, [entry])
        return folded

    def _fold_claimed(self, shard: int, claimed: Sequence[ClaimedEntry]) -> int:
        batch = self._decode(shard, claimed)
        try:
            return self._fold(shard, batch)
        except (*_POISON, RefusedByStoreError) as error:
            if isinstance(error, RefusedByStoreError) and error.lacks_right:
                self._storage.spare(shard, self._consumer, [entry.claimed.id for entry in batch])
                raise
            # One entry's counters may be what is refused.
            return sum(self._fold_alone(shard, entry) for entry in batch)

    def _decode(self, shard: int, claimed: Sequence[ClaimedEntry]) -> list[_DecodedEntry]:
        """Return what can be folded here; set corrupt entries aside, leave unknown ones pending."""
        batch, spared = [], []
        for entry in claimed:
            try:
                decoded = _DecodedEntry(entry, decode(entry.entry))
            except CorruptEntryError as error:
                self._quarantine(shard, entry, str(error))
                continue
            if self._knows(decoded):
                batch.append(decoded)
            else:
                spared.append(entry.id)
        if spared:  # left to workers that know them; here each claim would return them
            self._storage.spare(shard, self._consumer, spared)
            self._new_only_until[shard] = time.monotonic() + self._pace.unknown_s
        return batch

    def _knows(self, decoded: _DecodedEntry) -> bool:
        # An older worker must leave the entries of a newer registry to its newer colleagues.
        unknown = {c.cell.metric for c in decoded.columns} - self._mechanisms.keys()
        for metric in unknown - self._unknown:
            _log.warning("metric=%s: is in no registry of this worker; left pending", metric.hex())
        self._unknown |= unknown
        return not unknown

    def _fold(self, shard: int, batch: Sequence[_DecodedEntry]) -> int:
        """Fold *batch*, without the entries that another worker has folded meanwhile."""
        while batch:
            ids = [entry.claimed.id for entry in batch]
            tallied = tally_entries((entry.columns for entry in batch), self._mechanisms)
            increments, ending = self._classify(tallied, self._time(shard))
            try:
                missing = set(self._storage.fold(shard, ids, increments, ending))
            except ClassEndedError:
                continue
            begun, self._fold_begun = self._fold_begun, time.monotonic()
            if not missing:
                self._tell_fold(self._fold_begun - begun)
                break
            batch = [entry for entry in batch if entry.claimed.id not in missing]
        return len(batch)

    def _time(self, shard: int) -> int:
        """Return the shard's time.  Raises ClockError: ours is another, or was just set."""
        now = self._storage.now(shard)
        if self._clock is not None:
            self._clock.require_near(now)
        return now

    def _classify(self, tallied: Increments, now: int) -> tuple[Increments, int | None]:
        """Return *tallied* with the class of lateness of each cell, and when the first one ends."""
        increments: dict[Cell, Sequence[tuple[int, int]]] = {}
        endings = []
        for cell, pairs in tallied.items():
            lateness, ending = class_of(self._every[cell.metric], cell.epoch, now)
            increments[cell._replace(lateness=lateness)] = pairs
            if ending is not None:
                endings.append(ending)
        return increments, min(endings, default=None)

    def _fold_alone(self, shard: int, entry: _DecodedEntry) -> int:
        """Fold one entry of a batch that failed, or set it aside after its last try."""
        try:
            return self._fold(shard, [entry])
        except (*_POISON, RefusedByStoreError) as error:
            _log.error("entry=%s: cannot be folded: %s", entry.claimed.id, type(error).__name__)
            if entry.claimed.deliveries >= MAX_DELIVERIES:
                self._quarantine(shard, entry.claimed, type(error).__name__)
            return 0

    def _sweep(self) -> None:
        """Now and then, forget the names of workers that were killed."""
        if time.monotonic() < self._sweep_at:
            return
        self._sweep_at = time.monotonic() + self._pace.sweep_s
        forgotten = self._storage.sweep(self._pace.forgotten_ms)
        if forgotten:
            _log.warning("%d names of workers without a sign of life are forgotten", forgotten)

    def _forget_ids(self) -> None:
        """Now and then, delete the ids of days from which no upload is taken any more."""
        if self._clock is None or time.monotonic() < self._ids_at:
            return
        self._clock.look()
        now = self._clock.now()
        self._ids_at = time.monotonic() + self._pace.ids_s
        for shard in range(self._storage.shards):
            try:
                self._storage.forget_ids(shard, now)
            except (StorageUnavailableError, UnsafeStoreError) as error:  # folding must go on
                _log.error("shard=%d: upload ids are not forgotten, and fill it: %s", shard, error)

    def _quarantine(self, shard: int, claimed: ClaimedEntry, reason: str) -> None:
        _log.error("entry=%s: is set aside: %s", claimed.id, reason)
        self._storage.quarantine(shard, claimed.id, reason)

    def _retire(self) -> None:
        try:
            self._storage.retire(self._consumer)
        except (StorageUnavailableError, StorageFullError) as error:
            _log.warning("%s; this worker's name stays in the store", error)
