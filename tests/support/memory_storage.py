"""Stores in dictionaries, without a server, for tests of what uses them."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from collector.errors import ClassEndedError
from collector.storage.protocols import MAX_CLAIM
from collector.storage.suspicions import WatchRecord
from collector.storage.values import (
    Cell,
    ClaimedEntry,
    Count,
    Counters,
    Health,
    Increments,
    Index,
    SealedUpload,
    Tallies,
)


class MemoryStorage:
    """One shard, one process.  ``failure``, if set, is raised by every method.

    ``clock`` is its time, in Unix seconds: long ago, so that nothing is late unless a test says so.
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
        self.seen: set[tuple[int, bytes]] = set()
        self.entries: dict[str, bytes] = {}
        self.reports: dict[str, int] = {}
        self.tallied: dict[Cell, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self.aside: dict[str, str] = {}
        self.marks: dict[bytes, int] = {}  # of each metric, the epoch before which all is pruned
        self.spared: list[str] = []
        self._counts: dict[str, Count] = defaultdict(Count)
        self._late = 0
        self._appended = 0

    def prepare(self, renew: bool = False) -> None:
        self.ping()

    def append(self, upload_id: bytes, sealed_day: int, entry: bytes, reports: int) -> bool:
        self.ping()
        if (sealed_day, upload_id) in self.seen:
            return False
        self.seen.add((sealed_day, upload_id))
        self._appended += 1
        name = f"1-{self._appended}"
        self.entries[name], self.reports[name] = entry, reports
        self._count("accepted", 1, reports)
        return True

    def append_many(self, uploads: Sequence[SealedUpload]) -> list[bool]:
        return [self.append(*upload) for upload in uploads]

    def claim(
        self, shard: int, consumer: str, count: int, min_idle_ms: int, size: int = MAX_CLAIM
    ) -> list[ClaimedEntry]:
        self.ping()
        return [ClaimedEntry(name, entry, 1) for name, entry in list(self.entries.items())[:count]]

    def spare(self, shard: int, consumer: str, ids: Sequence[str]) -> None:
        self.ping()
        self.spared += ids

    def forget_ids(self, shard: int, now: float) -> int:
        self.ping()
        return 0

    def now(self, shard: int) -> int:
        self.ping()
        return self.clock

    def fold(
        self, shard: int, ids: Sequence[str], increments: Increments, ending: int | None = None
    ) -> tuple[str, ...]:
        self.ping()
        missing = tuple(name for name in ids if name not in self.entries)
        if missing:
            return missing
        if ending is not None and self.clock >= ending:
            raise ClassEndedError("store: a class of lateness has ended")
        for name in ids:
            del self.entries[name]
        for cell, pairs in increments.items():
            for index, delta in pairs:
                if delta:  # the last one may only tell how wide the tally is
                    self.tallied[cell][index] += delta
        reports = {cell: dict(pairs).get(0, 0) for cell, pairs in increments.items()}
        self._count("folded", len(ids), sum(reports.values()))
        self._late += sum(n for cell, n in reports.items() if cell.lateness)
        return ()

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        found = self.tallies(metric, epochs, latest)
        return Index(tuple(found), sum(map(len, found.values())), found)

    def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
        for cell, vectors in index.places.items():
            for vector in vectors:
                yield cell, vector

    def tallies(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Tallies:
        self.ping()
        wanted = set(epochs)
        return {
            cell: [_packed(counters)]
            for cell, counters in self.tallied.items()
            if cell.metric == metric and cell.epoch in wanted
            if latest is None or cell.lateness <= latest
        }

    def pruned(self, metrics: Sequence[bytes]) -> dict[bytes, int]:
        self.ping()
        return {metric: self.marks[metric] for metric in metrics if metric in self.marks}

    def quarantine(self, shard: int, entry_id: str, reason: str) -> bool:
        self.ping()
        if self.entries.pop(entry_id, None) is None:
            return False
        self.aside[entry_id] = reason
        self._count("quarantined", 1, self.reports[entry_id])
        return True

    def retire(self, consumer: str) -> None:
        self.ping()

    def sweep(self, idle_ms: int) -> int:
        self.ping()
        return 0

    def counters(self) -> list[Counters]:
        self.ping()
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

    def backlog(self) -> int:
        self.ping()
        return len(self.entries)

    def health(self) -> Health:
        self.ping()
        return Health(self.memory_share, self.faults, self.times, self.memory_limit, self.contents)

    def quarantined(self) -> int:
        return len(self.aside)

    def ping(self) -> None:
        if self.failure:
            raise self.failure

    def destroy(self) -> None:
        self.__init__()  # type: ignore[misc]  # forget everything, as a new store

    def _count(self, state: str, uploads: int, reports: int) -> None:
        old = self._counts[state]
        self._counts[state] = Count(old.uploads + uploads, old.reports + reports)


def _packed(counters: dict[int, int]) -> bytes:
    width = max(counters) + 1
    return struct.pack(f">{width}q", *(counters[index] for index in range(width)))


class MemorySuspicions:
    """The SuspicionStore protocol."""

    def __init__(self) -> None:
        self.found: dict[bytes, WatchRecord] = {}

    def put(self, metric: bytes, record: WatchRecord) -> None:
        self.found[metric] = record

    def records(self) -> dict[bytes, WatchRecord]:
        return dict(self.found)
