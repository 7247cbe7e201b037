"""A store in a dictionary: the Storage protocol without a server, for tests of what uses it."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Sequence

from collector.storage import Cell, Claimed, Increments, Sealed, Tallies


class MemoryStorage:
    """One shard, one process.  ``failure``, if set, is raised by every method."""

    shards = 1

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.seen: set[tuple[int, bytes]] = set()
        self.entries: dict[str, bytes] = {}
        self.counters: dict[Cell, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        self.aside: dict[str, str] = {}
        self._appended = 0

    def prepare(self) -> None:
        self.ping()

    def append(self, upload_id: bytes, sealed_day: int, entry: bytes) -> bool:
        self.ping()
        if (sealed_day, upload_id) in self.seen:
            return False
        self.seen.add((sealed_day, upload_id))
        self._appended += 1
        self.entries[f"1-{self._appended}"] = entry
        return True

    def append_many(self, uploads: Sequence[Sealed]) -> list[bool]:
        return [self.append(*upload) for upload in uploads]

    def claim(self, shard: int, consumer: str, count: int, min_idle_ms: int) -> list[Claimed]:
        self.ping()
        return [Claimed(name, entry, 1) for name, entry in list(self.entries.items())[:count]]

    def fold(self, shard: int, ids: Sequence[str], increments: Increments) -> tuple[str, ...]:
        self.ping()
        missing = tuple(name for name in ids if name not in self.entries)
        if missing:
            return missing
        for name in ids:
            del self.entries[name]
        for cell, pairs in increments.items():
            for index, delta in pairs:
                self.counters[cell][index] += delta
        return ()

    def tallies(self, metric: bytes, epochs: Iterable[int]) -> Tallies:
        self.ping()
        wanted = set(epochs)
        return {
            (cell.epoch, cell.segment): [_packed(counters)]
            for cell, counters in self.counters.items()
            if cell.metric == metric and cell.epoch in wanted
        }

    def quarantine(self, shard: int, entry_id: str, reason: str) -> bool:
        self.ping()
        self.aside[entry_id] = reason
        return self.entries.pop(entry_id, None) is not None

    def retire(self, consumer: str) -> None:
        self.ping()

    def backlog(self) -> int:
        self.ping()
        return len(self.entries)

    def quarantined(self) -> int:
        return len(self.aside)

    def ping(self) -> None:
        if self.failure:
            raise self.failure

    def destroy(self) -> None:
        self.__init__()  # type: ignore[misc]  # forget everything, as a new store


def _packed(counters: dict[int, int]) -> bytes:
    width = max(counters) + 1
    return struct.pack(f">{width}q", *(counters[index] for index in range(width)))
