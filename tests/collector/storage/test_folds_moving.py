"""Folds of a slot that is half moved: each entry waits for it, and none is set aside."""

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
from collector.worker.worker import MAX_DELIVERIES, Pace, Worker
from tests.support.store.cluster import Node, begin_move, holder_of, move_key, url_of
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.stored import CELL, DAY, total

pytestmark = [pytest.mark.real, needs_real]

ENTRY = encode([AcceptedColumn(CELL, bytes([0]))])
TRIES = 2 * MAX_DELIVERIES


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
