"""Stores in dictionaries, without a server, for tests of what uses them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from collector.storage.records import WatchLedger, WatchRecord, WatchSeries
from collector.testing.memory_storage import MemoryStorage as MemoryStorage


class MemorySuspicions:
    """The SuspicionStore protocol."""

    def __init__(self) -> None:
        self.found: dict[bytes, WatchRecord] = {}

    def put(self, metric: bytes, record: WatchRecord) -> None:
        self.found[metric] = record

    def records(self) -> dict[bytes, WatchRecord]:
        return dict(self.found)


class MemoryWatches:
    """The WatchStore protocol.  ``clock`` is its time; ``failure``, if set, is raised."""

    def __init__(self, clock: int = 0) -> None:
        self.clock = clock
        self.failure: Exception | None = None
        self.stored = b""
        self.kept: dict[str, WatchSeries] = {}
        self.commits = 0

    def now(self) -> int:
        self._fail()
        return self.clock

    def ledger(self) -> tuple[bytes, WatchLedger]:
        self._fail()
        if not self.stored:
            return b"", WatchLedger()
        return self.stored, msgspec.json.decode(self.stored, type=WatchLedger)

    def replace(self, read: bytes, ledger: WatchLedger) -> bytes | None:
        self._fail()
        text = msgspec.json.encode(ledger)
        if self.stored not in (read, text):
            return None
        self.stored = text
        self.commits += 1
        return text

    def series(self) -> dict[str, WatchSeries]:
        self._fail()
        return dict(self.kept)

    def put(self, series: WatchSeries) -> None:
        self._fail()
        self.kept[series.name] = series

    def forget(self, names: Sequence[str]) -> None:
        self._fail()
        for name in names:
            self.kept.pop(name, None)

    def _fail(self) -> None:
        if self.failure:
            raise self.failure
