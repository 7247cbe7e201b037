"""What was found of closed epochs, on every kind of server."""

from __future__ import annotations

import pytest

from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.records import RedisSuspicions, SuspicionStore, WatchRecord
from collector.storage.redis import RedisStorage
from tests.support.store.memory_storage import MemorySuspicions
from tests.support.store.servers import EVERY_STORE, MEMORY

FIRST = WatchRecord(1_700_000_000, 19_675, 7, {"2023-11-13": ["'a' changed"]})
LATER = WatchRecord(1_700_090_000, 19_676, 7, {})


@pytest.fixture
def suspicions(server_kind: str, keys: Keys, request: pytest.FixtureRequest) -> SuspicionStore:
    """A store in which nothing was found yet."""
    if server_kind == MEMORY:
        return MemorySuspicions()
    request.getfixturevalue("store")  # which is prepared, and deleted at the end
    return RedisSuspicions(request.getfixturevalue("server"), keys.prefix)


@EVERY_STORE
def test_what_was_found_is_kept_in_place_of_what_was_before(suspicions: SuspicionStore) -> None:
    assert suspicions.records() == {}

    for metric, record in ((b"a" * 6, FIRST), (b"b" * 6, FIRST), (b"b" * 6, LATER)):
        suspicions.put(metric, record)

    assert suspicions.records() == {b"a" * 6: FIRST, b"b" * 6: LATER}


def test_what_is_not_ours_is_passed_over(
    server: Connection, keys: Keys, store: RedisStorage
) -> None:
    suspicions = RedisSuspicions(server, keys.prefix)
    suspicions.put(b"a" * 6, FIRST)
    server.call("HSET", f"{keys.prefix}:suspicions", b"\xff", "x", "0a", "{}", "zz", "[]")

    assert suspicions.records() == {b"a" * 6: FIRST}
