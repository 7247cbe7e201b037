"""Ids of a slot that is half moved: no order of its keys makes an upload count twice."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress

import pytest
from redis.crc import key_slot

from collector.core.config import STANDARD
from collector.core.errors import StorageUnavailableError
from collector.storage import cluster as followed
from collector.storage.connect import open_connection
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from tests.support.store.cluster import (
    Node,
    begin_move,
    holder_of,
    move_key,
    move_slot,
    url_of,
)
from tests.support.store.ids import LIBRARY, remembered
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.stored import DAY

pytestmark = [pytest.mark.real, needs_real]

IDS = 12
MARKED = "if is_new and redis.call('HGET', seen, number) then return elsewhere() end"


@pytest.fixture
def server(cluster_nodes: list[Node], monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """A connection that does not wait long for a slot to arrive."""
    monkeypatch.setattr(followed, "PATIENCE", 0.05)
    connection = open_connection(url_of(cluster_nodes))
    yield connection
    connection.close()


@pytest.fixture
def keys() -> Keys:
    return own_keys(shards=1)


@pytest.fixture
def store(server: Connection, keys: Keys) -> Iterator[RedisStorage]:
    storage = RedisStorage(server, keys, STANDARD)
    storage.prepare()
    yield storage
    storage.destroy()


def taken_half_way(
    store: RedisStorage, nodes: list[Node], keys: Keys, *, buckets_first: bool
) -> tuple[list[bool], list[bytes]]:
    """Move all ids' buckets first, or last; return what repeats are told half way, and the ids."""
    ids = [secrets.token_bytes(16) for _ in range(IDS)]
    assert all(store.append_many([SealedUpload(one, DAY, b"e", 1) for one in ids]))
    slot = key_slot(keys.stream(0).encode())
    source = holder_of(nodes, slot)
    target = next(node for node in nodes if node is not source)
    begin_move(slot, source, target)
    told = []
    try:
        names = source.connection.call("CLUSTER", "GETKEYSINSLOT", slot, 1_000)
        head = f"{keys.seen(0, DAY)}:".encode()
        for name in names:
            if name.startswith(head) == buckets_first:
                move_key(name, source, target)
        for upload in ids:
            with suppress(StorageUnavailableError):
                told.append(store.append(upload, DAY, b"e", 1))
    finally:
        move_slot(nodes, slot, source, target, "REPLACE")  # of what the control has doubled
    return told, ids


@pytest.mark.parametrize("buckets_first", [True, False])
def test_a_repeat_that_finds_its_day_and_not_its_bucket_is_not_taken(
    store: RedisStorage,
    server: Connection,
    keys: Keys,
    cluster_nodes: list[Node],
    buckets_first: bool,
) -> None:
    """On the server that the slot leaves, and on that to which it goes."""
    told, ids = taken_half_way(store, cluster_nodes, keys, buckets_first=buckets_first)

    assert True not in told
    assert [store.append(upload, DAY, b"e", 1) for upload in ids] == [False] * IDS
    assert remembered(server, keys, 0, DAY) == IDS
    assert sum(one.accepted.uploads for one in store.counters()) == IDS


def test_a_bucket_that_is_not_asked_whether_it_is_there_is_caught(
    store: RedisStorage, keys: Keys, cluster_nodes: list[Node]
) -> None:
    """The control: without its mark, what has not arrived yet is taken for empty."""
    assert LIBRARY.count(MARKED) == 1
    for node in cluster_nodes:
        node.connection.call("FUNCTION", "LOAD", "REPLACE", LIBRARY.replace(MARKED, ""))
    try:
        told, _ = taken_half_way(store, cluster_nodes, keys, buckets_first=False)
    finally:
        for node in cluster_nodes:
            node.connection.call("FUNCTION", "LOAD", "REPLACE", LIBRARY)

    assert True in told
