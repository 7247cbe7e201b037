"""Short ways to put something into a store and to read what is in it."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterable
from typing import Final, Protocol, TypeAlias

from collector.core.cells import Cell
from collector.estimation.tally import merge
from collector.storage.protocols import Intake, TallyStore, Work
from collector.storage.values import ClaimedEntry

DAY: Final = 30_000  # in 2052, so that no server forgets its ids
NOBODY_LEFT_IT: Final = 3_600_000  # milliseconds
METRIC: Final = b"\x01\x02\x03\x04\x05\x06"
CELL: Final = Cell(METRIC, 0, "")
Tallies: TypeAlias = dict[Cell, list[bytes]]  # one packed vector a shard


class Store(Intake, Work, TallyStore, Protocol):
    """What every store is, whether on a server or in memory."""


def pack(*counters: int) -> bytes:
    return struct.pack(f">{len(counters)}q", *counters)


def queue_one(store: Store, entry: bytes = b"entry") -> tuple[int, str]:
    """Append and claim one entry; return its shard and id."""
    return queue_one_in(store, secrets.randbelow(store.shards), entry)


def queue_one_in(store: Store, shard: int, entry: bytes = b"entry") -> tuple[int, str]:
    """Append and claim one entry of a *shard*; return that and its id."""
    store.append(shard.to_bytes(8, "big") + secrets.token_bytes(8), DAY, entry, 1)
    claimed = store.claim(shard, "first", 10, NOBODY_LEFT_IT)
    return shard, claimed[-1].id


def claim_all(store: Store, consumer: str = "any") -> list[ClaimedEntry]:
    return [
        claimed
        for shard in range(store.shards)
        for claimed in store.claim(shard, consumer, 100, NOBODY_LEFT_IT)
    ]


def tallies(
    store: TallyStore, metric: bytes, epochs: Iterable[int], latest: int | None = None
) -> Tallies:
    """Return the vectors of all cells of a narrow *metric*."""
    found: Tallies = {}
    for cell, vector in store.vectors(store.index(metric, epochs, latest), 1):
        found.setdefault(cell, []).append(vector)
    return found


def quarantined(store: Intake) -> int:
    """Return how many entries are set aside."""
    return sum(shard.aside for shard in store.counters())


def total(store: Store, size: int = 1) -> tuple[int, list[int]]:
    vectors = tallies(store, METRIC, [0]).get(CELL, [])
    n, tally = merge(vectors, size)
    return n, tally.tolist()
