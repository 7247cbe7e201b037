"""Profile ha: what is acknowledged is on a replica too, so it outlives a primary."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from collector.core.config import HA
from collector.core.errors import NotReplicatedError
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.store.cluster import Node, running, wait_for
from tests.support.store.servers import needs_real
from tests.support.store.stored import CELL, DAY, NOBODY_LEFT_IT

pytestmark = [pytest.mark.real, needs_real]

KEYS = Keys("ha", 1)


@pytest.fixture
def nodes() -> Iterator[list[Node]]:
    """A primary and its replica."""
    with running(2, [{"appendfsync": "always", "repl-diskless-sync-delay": "0"}]) as both:
        primary, replica = both
        replica.connection.call("REPLICAOF", "127.0.0.1", primary.port)
        wait_for(lambda: b"connected_slaves:1" in primary.connection.call("INFO"))
        wait_for(lambda: b"master_link_status:up" in replica.connection.call("INFO"))
        yield both


def storage(primary: Node) -> RedisStorage:
    """Return a store with a connection of its own, as another process has."""
    return RedisStorage(Connection.open(f"redis://{primary.address}/0"), KEYS, HA)


def test_an_upload_is_acknowledged_only_once_a_replica_has_it(nodes: list[Node]) -> None:
    """Neither is its repeat, over another connection; both are once the replica answers again."""
    primary, replica = nodes
    store, other = storage(primary), storage(primary)
    store.prepare()
    confirmed = store.append(bytes(16), DAY, b"entry", 1)
    on_replica = replica.connection.call("XLEN", KEYS.stream(0))
    replica.signal(signal.SIGSTOP)
    with pytest.raises(NotReplicatedError):
        store.append(b"\1" * 16, DAY, b"entry", 1)
    with pytest.raises(NotReplicatedError):
        other.append(b"\1" * 16, DAY, b"entry", 1)

    claimed = store.claim(0, "one", 9, NOBODY_LEFT_IT)
    folded = store.fold(0, [claimed[0].id], {CELL: [(0, 1)]})
    replica.signal(signal.SIGCONT)
    repeated = other.append(b"\1" * 16, DAY, b"entry", 1)

    assert (confirmed, on_replica) == (True, 1)
    assert (len(claimed), folded) == (2, ())  # a worker needs no replica
    assert repeated is False
    assert [one.drift for one in store.counters()] == [0]


def test_a_store_without_a_replica_is_not_ready(nodes: list[Node]) -> None:
    """Readiness says what the next upload would be told."""
    primary, replica = nodes
    store = storage(primary)
    store.prepare()
    store.ping()
    replica.stop()
    wait_for(lambda: b"connected_slaves:0" in primary.connection.call("INFO"))

    with pytest.raises(NotReplicatedError):
        store.ping()
