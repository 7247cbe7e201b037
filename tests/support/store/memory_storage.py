"""Stores in memory, without a server, for tests of what uses them."""

from __future__ import annotations

from collector.storage.hashes import MemoryHashes
from collector.storage.records import WatchStore
from collector.testing.memory_storage import MemoryStorage as MemoryStorage


class MemoryWatches(WatchStore):
    """Watches in a store whose time is ``clock``."""

    def __init__(self, clock: int = 0) -> None:
        super().__init__(MemoryHashes(lambda: self.clock))
        self.clock = clock
