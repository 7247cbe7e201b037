"""Short ways to put something into a store and to read what is in it."""

from __future__ import annotations

import secrets
import struct
from typing import Final

from collector.storage.redis import RedisStorage
from collector.storage.values import ClaimedEntry
from collector.tally import merge
from tests.support.fold_model import CELL, METRIC

DAY: Final = 30_000  # in 2052, so that no server forgets its ids
NOBODY_LEFT_IT: Final = 3_600_000  # milliseconds


def pack(*counters: int) -> bytes:
    return struct.pack(f">{len(counters)}q", *counters)


def queue_one(store: RedisStorage, entry: bytes = b"entry") -> tuple[int, str]:
    """Append and claim one entry; return its shard and id."""
    upload_id = secrets.token_bytes(16)
    store.append(upload_id, DAY, entry, 1)
    shard = int.from_bytes(upload_id[:8], "big") % store.shards
    claimed = store.claim(shard, "first", 10, NOBODY_LEFT_IT)
    return shard, claimed[-1].id


def claim_all(store: RedisStorage, consumer: str = "any") -> list[ClaimedEntry]:
    return [
        claimed
        for shard in range(store.shards)
        for claimed in store.claim(shard, consumer, 100, NOBODY_LEFT_IT)
    ]


def total(store: RedisStorage, size: int = 1) -> tuple[int, list[int]]:
    vectors = store.tallies(METRIC, [0]).get(CELL, [])
    n, tally = merge(vectors, size)
    return n, tally.tolist()
