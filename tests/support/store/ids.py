"""What a store remembers of upload ids, read key by key, and where each belongs, computed anew."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib.resources import files
from typing import Final

from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.store.servers import fake_connection, own_keys, profile_of

LIBRARY: Final = files("collector.storage").joinpath("hearsay.lua").read_text(encoding="utf-8")
CONSTANTS: Final = "FEWEST, MOST_BUCKETS, PLANNED, FULL, SAMPLE = "
SMALL: Final = (CONSTANTS + "16, 2 ^ 24, 288, 384, 16", CONSTANTS + "2, 2 ^ 24, 6, 8, 1")


def traces(secret: bytes, upload_id: bytes) -> tuple[int, int]:
    """Return place and member of an id, by the definition in docs/design/data-model.md."""
    digest = hashlib.sha1(secret + upload_id).digest()  # noqa: S324  # keyed, and as Redis has it
    return int.from_bytes(digest[:4], "big"), member_of(int.from_bytes(digest[4:12], "big"))


def member_of(bits: int) -> int:
    """Return 64 *bits* as a signed integer: the first is the sign of the rest, -1 that of 0."""
    rest = bits & (1 << 63) - 1
    return -1 - rest if bits >> 63 else rest


def secret_of(server: Connection, keys: Keys, shard: int = 0) -> bytes:
    secret: bytes = server.call("HGET", keys.state(shard), "secret")
    return secret


def day_of_ids(server: Connection, keys: Keys, shard: int, day: int) -> dict[str, int]:
    """Return the fields of a day of buckets, empty if there is none."""
    flat = server.call("HGETALL", keys.seen(shard, day))
    return {k.decode(): int(v) for k, v in zip(flat[::2], flat[1::2], strict=True)}


def buckets(server: Connection, keys: Keys, shard: int, day: int) -> dict[int, set[int]]:
    """Return the members of each bucket of a day, without its mark."""
    numbers = [int(name) for name in day_of_ids(server, keys, shard, day) if name.isdigit()]
    found = {}
    for number in numbers:
        members = {int(m) for m in server.call("SMEMBERS", f"{keys.seen(shard, day)}:{number}")}
        assert 0 in members
        found[number] = members - {0}
    return found


def remembered(server: Connection, keys: Keys, shard: int, day: int) -> int:
    """Return how many ids of a day a shard remembers."""
    return sum(map(len, buckets(server, keys, shard, day).values()))


def changed_store(*changes: tuple[str, str]) -> tuple[RedisStorage, Connection, Keys]:
    """Return a store of one shard on a stand-in whose library has each *change*, old and new."""
    server, keys = fake_connection(), own_keys(1)
    storage = RedisStorage(server, keys, profile_of("fake"))
    storage.prepare()
    library = LIBRARY
    for old, new in changes:
        assert library.count(old) == 1, old
        library = library.replace(old, new)
    server.call("FUNCTION", "LOAD", "REPLACE", library)
    return storage, server, keys


Law = Callable[[RedisStorage, Connection, Keys], None]
