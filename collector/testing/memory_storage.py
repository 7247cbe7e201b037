"""A store in dictionaries, without a server, with a clock of its own: of simulations and tests."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from client_sdk.core.epoch import DAY

from ..core.cells import Cell
from ..core.errors import (
    ClassEndedError,
    CollectorError,
    ForgottenUploadError,
    TallyOverflowError,
)
from ..storage.protocols import ALONE_FROM, MAX_CLAIM
from ..storage.redis import MAX_DELTA, SEEN_DAYS
from ..storage.values import (
    ClaimedEntry,
    Count,
    Counters,
    Health,
    Increments,
    Index,
    SealedUpload,
    TallyPlace,
)


@dataclass
class _Delivery:
    """To whom an entry was handed last, when by the store's clock, and how often."""

    consumer: str
    at: int
    times: int


class MemoryStorage:
    """The protocols Intake, Work and TallyStore: one shard, one process.

    ``failure``, if set, is raised by every method.  ``clock`` is its time, in Unix seconds: long
    ago, so that nothing is late unless a test says so; nothing becomes idle before a test moves it.
    """

    shards = 1

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.memory_share: float | None = None
        self.faults: tuple[str, ...] = ()
        self.times: tuple[float, ...] = ()
        self.memory_limit = 0
        self.contents = "memory.0"
        self.clock = 0
        self.entries: dict[str, bytes] = {}
        self.tallied: dict[Cell, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self.aside: dict[str, str] = {}
        self.marks: dict[bytes, int] = {}  # of each metric, the epoch before which all is pruned
        self.excluded: dict[str, bytes] = {}  # records of exclusions, by id
        self._seen: set[tuple[int, bytes]] = set()
        self._reports: dict[str, int] = {}  # of every entry there was
        self._deliveries: dict[str, _Delivery] = {}  # of entries, the oldest first
        self._consumers: dict[str, int] = {}  # when each has asked last
        self._counts: dict[str, Count] = defaultdict(Count)
        self._late = 0

    def append(self, upload_id: bytes, sealed_day: int, entry: bytes, reports: int) -> bool:
        self._require()
        if (sealed_day + SEEN_DAYS) * DAY <= self.clock:
            raise ForgottenUploadError("store: the id of the upload would be forgotten at once")
        if (sealed_day, upload_id) in self._seen:
            return False
        self._seen.add((sealed_day, upload_id))
        name = f"1-{len(self._reports) + 1}"
        self.entries[name], self._reports[name] = entry, reports
        self._count("accepted", 1, reports)
        return True

    def append_many(self, uploads: Sequence[SealedUpload]) -> list[bool]:
        return [self.append(*upload) for upload in uploads]

    def shard_of(self, upload_id: bytes) -> int:
        return 0

    def server_of(self, upload_id: bytes) -> str:
        return ""

    def existing(self, places: Collection[TallyPlace]) -> set[TallyPlace]:
        self._require()
        return {(shard, cell) for shard, cell in places if cell in self.tallied}

    def claim(
        self, shard: int, consumer: str, count: int, min_idle_ms: int, size: int = MAX_CLAIM
    ) -> list[ClaimedEntry]:
        self._require()
        self._consumers[consumer] = self.clock
        claimed: list[ClaimedEntry] = []
        left = [name for name in self._deliveries if self._idle_ms(name) >= min_idle_ms]
        for name in (*left, *(name for name in self.entries if name not in self._deliveries)):
            if len(claimed) == count or size <= 0:
                break
            before = self._deliveries.get(name)
            if before and claimed and claimed[-1].deliveries >= ALONE_FROM:
                continue
            times = 1 + (self._deliveries.pop(name).times if before else 0)
            self._deliveries[name] = _Delivery(consumer, self.clock, times)
            claimed.append(ClaimedEntry(name, self.entries[name], times))
            size -= len(self.entries[name])
        return claimed

    def spare(self, shard: int, consumer: str, ids: Sequence[str]) -> None:
        self._require()
        for name in ids:
            self._deliveries[name] = _Delivery(consumer, self.clock - DAY, 0)

    def forget_ids(self, shard: int, now: float) -> int:
        """Forget none: a store without servers has memory for all."""
        self._require()
        return 0

    def now(self, shard: int) -> int:
        self._require()
        return self.clock

    def fold(
        self, shard: int, ids: Sequence[str], increments: Increments, ending: int | None = None
    ) -> tuple[str, ...]:
        self._require()
        if len(set(ids)) < len(ids):
            raise ValueError("ids: must differ")
        if ending is not None and self.clock >= ending:
            raise ClassEndedError("store: a class of lateness has ended")
        missing = tuple(name for name in ids if name not in self.entries)
        if missing or not ids:
            return missing
        for cell, pairs in increments.items():
            if sum(abs(delta) for _, delta in pairs) >= MAX_DELTA:
                raise TallyOverflowError("increments: must add less than 2^62 to a cell")
            counters = self.tallied.get(cell, {})
            if not all(-MAX_DELTA <= counters.get(index, 0) < MAX_DELTA for index, _ in pairs):
                raise TallyOverflowError("store: a counter would leave its range")
        for name in ids:
            self._take(name)
        self._add(len(ids), increments)
        return ()

    def put(self, increments: Increments) -> None:
        """Hold *increments* as if folded, so that tests need not make their uploads."""
        self._count("accepted", 0, self._add(0, increments))

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        self._require()
        wanted = set(epochs)
        cells = [
            cell
            for cell in self.tallied
            if cell.metric == metric and cell.epoch in wanted
            if latest is None or cell.lateness <= latest
        ]
        return Index(cells, len(cells), cells)

    def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
        for cell in index.cells:
            if counters := self.tallied.get(cell):  # what is gone since is passed over
                yield cell, _packed(counters)

    def pruned(self, metrics: Sequence[bytes]) -> dict[bytes, int]:
        self._require()
        return {metric: self.marks[metric] for metric in metrics if metric in self.marks}

    def exclusions(self) -> dict[str, bytes]:
        self._require()
        return dict(self.excluded)

    def quarantine(self, shard: int, entry_id: str, reason: str) -> bool:
        self._require()
        if entry_id not in self.entries:
            return False
        self._take(entry_id)
        self.aside[entry_id] = reason
        self._count("quarantined", 1, self._reports[entry_id])
        return True

    def retire(self, consumer: str) -> None:
        self._require()
        if consumer not in self._holders():
            self._consumers.pop(consumer, None)

    def sweep(self, idle_ms: int) -> int:
        self._require()
        idle = [name for name, at in self._consumers.items() if (self.clock - at) * 1000 >= idle_ms]
        gone = set(idle) - self._holders()
        for consumer in gone:
            del self._consumers[consumer]
        return len(gone)

    def counters(self) -> list[Counters]:
        self._require()
        return [
            Counters(
                accepted=self._counts["accepted"],
                folded=self._counts["folded"],
                quarantined=self._counts["quarantined"],
                dropped=self._counts["dropped"],
                late_reports=self._late,
                stream=len(self.entries),
                aside=len(self.aside),
            )
        ]

    def backlog(self, but: Collection[int] = ()) -> int:
        self._require()
        return len(self.entries)

    def health(self) -> Health:
        self._require()
        return Health(self.memory_share, self.faults, self.times, self.memory_limit, self.contents)

    def refusing(self) -> dict[int, CollectorError]:
        if isinstance(self.failure, CollectorError):
            return {0: self.failure}
        self._require()
        return {}

    def destroy(self) -> None:
        vars(self).update(vars(MemoryStorage()))

    def _require(self) -> None:
        if self.failure:
            raise self.failure

    def _add(self, uploads: int, increments: Increments) -> int:
        """Add *increments* to the tallies; return how many reports they count."""
        total = 0
        for cell, pairs in increments.items():
            for index, delta in pairs:
                if delta:  # the last one may only tell how wide the tally is
                    self.tallied[cell][index] += delta
            reports = sum(delta for index, delta in pairs if index == 0)
            total += reports
            self._late += reports if cell.lateness else 0
        self._count("folded", uploads, total)
        return total

    def _take(self, name: str) -> None:
        """Delete an entry: only one caller can, and so folds it or sets it aside."""
        del self.entries[name]
        self._deliveries.pop(name, None)

    def _idle_ms(self, name: str) -> int:
        return max(self.clock - self._deliveries[name].at, 0) * 1000  # a clock may be set back

    def _holders(self) -> set[str]:
        return {delivery.consumer for delivery in self._deliveries.values()}

    def _count(self, state: str, uploads: int, reports: int) -> None:
        old = self._counts[state]
        self._counts[state] = Count(old.uploads + uploads, old.reports + reports)


def _packed(counters: dict[int, int]) -> bytes:
    width = max(counters) + 1
    return struct.pack(f">{width}q", *(counters[index] for index in range(width)))
