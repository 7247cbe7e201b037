"""A store whose memory is full: workers can start and fold, which is what makes room again."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from collector.core.config import STANDARD
from collector.core.errors import StorageFullError
from collector.storage.archive_queue import RedisArchiveQueue
from collector.storage.connect import open_storage
from collector.storage.keys import Keys
from collector.storage.records import RedisCredentials
from collector.storage.redis import RedisStorage
from tests.support.store.cluster import Node, running
from tests.support.store.servers import needs_real
from tests.support.store.stored import CELL, DAY, NOBODY_LEFT_IT

pytestmark = [pytest.mark.real, needs_real]


@pytest.fixture
def node() -> Iterator[Node]:
    with running(1, [{}]) as [alone]:
        yield alone


def storage_at(node: Node) -> RedisStorage:
    return open_storage(f"redis://{node.address}/0", "full", 1, STANDARD)


def fill(node: Node) -> None:
    node.connection.call("CONFIG", "SET", "maxmemory", 1)


def test_a_worker_that_starts_while_memory_is_full_folds(node: Node) -> None:
    """A restart must not need the room that only the worker can make."""
    before = storage_at(node)
    before.prepare()
    before.append(bytes(16), DAY, b"entry", 1)
    fill(node)

    after = storage_at(node)
    after.prepare()
    [claimed] = after.claim(0, "one", 9, NOBODY_LEFT_IT)

    assert after.fold(0, [claimed.id], {CELL: [(0, 1)]}) == ()
    assert after.backlog() == 0


def test_what_waits_for_the_archive_is_drained_while_memory_is_full(node: Node) -> None:
    """Law: what fills the store can be taken out of it, also before the first file is there."""
    keys = Keys("full", 1)
    worker = RedisStorage(node.connection, keys, STANDARD, archived=True)
    worker.prepare()
    queue = RedisArchiveQueue(node.connection, keys)
    assert queue.bind("archive", fresh=True)
    worker.append(bytes(16), DAY, b"entry", 1)
    worker.fold(0, [one.id for one in worker.claim(0, "one", 9, NOBODY_LEFT_IT)], {CELL: [(0, 1)]})
    fill(node)

    assert queue.bind("archive", fresh=True)
    assert not queue.bind("another", fresh=True)
    last = queue.last(0)
    assert [fold.entries for fold in queue.waiting(0, last)] == [(b"entry",)]
    queue.forget(0, last)

    assert queue.last(0) == 0


def test_a_store_that_was_never_prepared_cannot_be_while_memory_is_full(node: Node) -> None:
    """That it can start then must not mean that it starts without its library."""
    fill(node)

    with pytest.raises(StorageFullError):
        storage_at(node).prepare()


def test_a_key_is_revoked_while_memory_is_full_and_none_is_made(node: Node) -> None:
    """A stolen key must not be good until there is room again."""
    storage_at(node).prepare()
    store = RedisCredentials(node.connection, "full")
    store.put(b"k" * 32, "good")
    fill(node)

    assert store.replace(b"k" * 32, b"good", "revoked")
    assert not store.replace(b"n" * 32, b"good", "good")

    assert store.records() == {b"k" * 32: b"revoked"}
    with pytest.raises(StorageFullError):
        store.put(b"n" * 32, "good")


def test_servers_that_change_their_settings_say_so_when_they_are_next_asked(node: Node) -> None:
    """A store that is started again with other settings is taken for the same by its clients."""
    storage = storage_at(node)
    before = storage.health()
    node.connection.call("CONFIG", "SET", "appendonly", "no", "maxmemory-policy", "allkeys-lru")

    after = storage.health()

    assert before.faults == ()
    assert [fault.partition("=")[0] for fault in after.faults] == [
        "maxmemory_policy",
        "aof_enabled",
    ]
    assert abs(after.times[0] - time.time()) < 60
