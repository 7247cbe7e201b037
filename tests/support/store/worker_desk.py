"""Entries and stores for tests of the worker."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from client_sdk.core.epoch import ONCE
from client_sdk.mechanisms.items.grr import GRR
from collector.core.cells import Cell
from collector.core.entry import AcceptedColumn, encode
from collector.core.errors import RefusedByStoreError, TallyOverflowError
from collector.estimation.tally import merge
from collector.storage.redis import RedisStorage
from collector.storage.values import Increments
from collector.worker.worker import Pace
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.stored import tallies

METRIC, NEWER = b"\x01" * 6, b"\x02" * 6
CELL = Cell(METRIC, 3, "")
MECHANISMS = {METRIC: GRR("1", 5)}
EVERY = {METRIC: ONCE, NEWER: ONCE}
DAY = 30_000
NO_WAIT = Pace(min_idle_ms=0, idle_s=0, first_retry_s=0, last_retry_s=0)
ITEM_2 = encode([AcceptedColumn(CELL, bytes([2]))])
OUT_OF_RANGE = encode([AcceptedColumn(CELL, bytes([99]))])
OF_NEWER_REGISTRY = encode(
    [AcceptedColumn(CELL, bytes([2])), AcceptedColumn(Cell(NEWER, 3, ""), b"\0")]
)


def put(store: RedisStorage | MemoryStorage, *entries: bytes) -> None:
    for entry in entries:
        store.append(secrets.token_bytes(16), DAY, entry, 1)


def counts(store: RedisStorage) -> list[int]:
    """Return n and the tally of CELL."""
    n, tally = merge(tallies(store, METRIC, [3]).get(CELL, []), 5)
    return [n, *tally.tolist()]


class DyingBeforeFold:
    """A store whose worker is killed between claim and fold."""

    def __init__(self, inner: RedisStorage) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def fold(
        self, shard: int, ids: Sequence[str], increments: Increments, ending: int | None = None
    ) -> tuple[str, ...]:
        raise SystemExit


class Interfering(MemoryStorage):
    """A store in which a colleague folds entries before us."""

    def __init__(self, taken: int) -> None:
        super().__init__()
        self.taken = taken
        self.asked: list[list[str]] = []

    def fold(
        self, shard: int, ids: Sequence[str], increments: Increments, ending: int | None = None
    ) -> tuple[str, ...]:
        self.asked.append(list(ids))
        for name in list(self.entries)[: self.taken]:
            del self.entries[name]
        self.taken = 0
        return super().fold(shard, ids, increments, ending)


class Overflowing(MemoryStorage):
    """A store in which one counter is full."""

    def __init__(self, full: Cell) -> None:
        super().__init__()
        self.full = full

    def fold(
        self, shard: int, ids: Sequence[str], increments: Increments, ending: int | None = None
    ) -> tuple[str, ...]:
        if self.full in increments:
            raise TallyOverflowError("store: a counter would leave its range")
        return super().fold(shard, ids, increments, ending)


class Refusing(Overflowing):
    """A store that answers every fold with an error of its own."""

    def __init__(self, code: str) -> None:
        super().__init__(full=CELL)
        self.code = code

    def fold(
        self, shard: int, ids: Sequence[str], increments: Increments, ending: int | None = None
    ) -> tuple[str, ...]:
        raise RefusedByStoreError(self.code)


class AtMidnight(MemoryStorage):
    """A store whose clock goes on by a second whenever it is asked."""

    def now(self, shard: int) -> int:
        self.clock += 1
        return self.clock - 1
