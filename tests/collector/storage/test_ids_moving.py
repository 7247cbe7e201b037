"""Slots of a cluster that move: entries are folded once, and no repeat is taken."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress

import pytest
from redis.crc import key_slot

from client_sdk.core.epoch import ONCE
from client_sdk.mechanisms.items.grr import GRR
from collector.core.config import STANDARD
from collector.core.entry import AcceptedColumn, encode
from collector.core.errors import StorageUnavailableError
from collector.storage import cluster as followed
from collector.storage.connect import open_connection
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from collector.worker.worker import MAX_DELIVERIES, Pace, Worker
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
from tests.support.store.stored import CELL, DAY, total

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


ENTRY = encode([AcceptedColumn(CELL, bytes([0]))])
TRIES = 2 * MAX_DELIVERIES


@pytest.mark.parametrize("first", ["nothing", "tally", "stream"])
def test_entries_of_a_slot_on_its_way_are_folded_once_it_has_arrived(
    store: RedisStorage, cluster_nodes: list[Node], keys: Keys, first: str
) -> None:
    """Also where every key of the step is there, but not one that only some shards have."""
    pace = Pace(min_idle_ms=0)
    worker = Worker(store, {CELL.metric: GRR("1", 3)}, {CELL.metric: ONCE}, pace=pace)
    store.append(secrets.token_bytes(16), DAY, ENTRY, 1)
    worker.step()
    store.append(secrets.token_bytes(16), DAY, ENTRY, 1)
    slot = key_slot(keys.stream(0).encode())
    source = holder_of(cluster_nodes, slot)
    target = next(node for node in cluster_nodes if node is not source)
    target_id = begin_move(slot, source, target)
    names = {"tally": keys.tally(0, CELL), "stream": keys.stream(0)}
    if first in names:
        move_key(names[first], source, target)

    folded = 0
    for _ in range(TRIES):
        with suppress(StorageUnavailableError):
            folded += worker.step()
    while left := source.connection.call("CLUSTER", "GETKEYSINSLOT", slot, 1):
        move_key(left[0], source, target)
    for node in (target, source, *cluster_nodes):
        node.connection.call("CLUSTER", "SETSLOT", slot, "NODE", target_id)
    worker.step()

    assert folded == 0
    assert total(store, 3)[0] == 2
    assert (store.backlog(), store.counters()[0].quarantined.uploads) == (0, 0)
