"""A cluster: no step touches two slots, a slot may move, a replica has what is acknowledged."""

from __future__ import annotations

import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from redis.crc import key_slot

from collector.core.cells import Cell
from collector.core.config import HA, STANDARD
from collector.core.errors import ConfigError, NotReplicatedError, StorageUnavailableError
from collector.estimation.tally import reports_of
from collector.storage.cluster import ClusterConnection
from collector.storage.connect import open_connection
from collector.storage.connection import Connection
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.store.cluster import Node, holder_of, move_slot, running, url_of, wait_for
from tests.support.store.fold_model import ITEMS, FoldModel, rewinding
from tests.support.store.servers import needs_real, own_keys
from tests.support.store.stored import CELL, DAY, METRIC, NOBODY_LEFT_IT, pack, tallies

pytestmark = [pytest.mark.real, needs_real]

METRICS = 10_000
UPLOADS_A_MOVE = 150


@pytest.fixture
def server(cluster_nodes: list[Node]) -> Iterator[Connection]:
    """A connection to the cluster, of this test alone."""
    connection = open_connection(url_of(cluster_nodes))
    yield connection
    connection.close()


@pytest.fixture
def keys() -> Keys:
    """Six shards, so that each of the three servers has some."""
    return own_keys(shards=6)


@pytest.fixture
def store(server: Connection, keys: Keys) -> Iterator[RedisStorage]:
    storage = RedisStorage(server, keys, STANDARD)
    storage.prepare()
    yield storage
    storage.destroy()


def test_ten_thousand_metrics_are_folded_without_a_step_over_two_slots(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """A server would refuse such a step; each metric is read back from all shards."""
    digests = [number.to_bytes(6, "big") for number in range(METRICS)]
    for number, first in enumerate(range(0, METRICS, 500)):
        shard = number % store.shards
        store.append(shard.to_bytes(8, "big") + first.to_bytes(8, "big"), DAY, b"entry", 500)
        [claimed] = store.claim(shard, "one", 1, NOBODY_LEFT_IT)
        cells = {Cell(m, 0, "a=b"): [(0, 1), (3, 1)] for m in digests[first : first + 500]}
        assert store.fold(shard, [claimed.id], cells) == ()

    kept = list(RedisInspection(server, keys).tallies())

    assert len(server.nodes()) == 3
    assert len(kept) == METRICS
    assert sum(reports_of(one.vector or b"") for one in kept) == METRICS
    assert tallies(store, digests[-1], [0]) == {Cell(digests[-1], 0, "a=b"): [pack(1, 0, 0, 1)]}
    assert [one.drift for one in store.counters()] == [0] * store.shards


@pytest.mark.parametrize("moves", [6, pytest.param(60, marks=pytest.mark.slow)])
def test_a_slot_that_moves_under_load_loses_nothing_and_counts_nothing_twice(
    store: RedisStorage, server: Connection, keys: Keys, cluster_nodes: list[Node], moves: int
) -> None:
    """Devices and a worker repeat what is refused meanwhile; then all tallies are equal."""
    load = Load(store, random.Random(3))
    slot = key_slot(keys.stream(0).encode())
    home = holder_of(cluster_nodes, slot)
    others = [node for node in cluster_nodes if node is not home]
    moved = 0
    with load.running():
        for number in range(moves):
            load.wait_for(UPLOADS_A_MOVE * (number + 1))
            ends = (home, others[number // 2 % 2])
            source, target = ends if number % 2 == 0 else ends[::-1]
            moved += move_slot(cluster_nodes, slot, source, target)

    model = FoldModel(store, random.Random(4), rewinding(server, keys), load.acknowledged)
    model.live(steps=0)
    n, tally = model.found()[0], model.found()[1:]
    counts = Counter(load.acknowledged.values())
    assert (n, tally) == (len(load.acknowledged), [counts[item] for item in range(ITEMS)])
    assert sum(one.accepted.uploads for one in store.counters()) == n
    assert [one.drift for one in store.counters()] == [0] * store.shards
    assert moved >= 3 * moves  # stream, counters and seen set at least: there was something to move


def test_a_connection_with_an_old_map_follows_a_slot_that_has_moved(
    store: RedisStorage, keys: Keys, cluster_nodes: list[Node]
) -> None:
    """Every kind of command: one key, several keys, a function."""
    store.append(bytes(16), DAY, b"entry", 1)
    slot = key_slot(keys.stream(0).encode())
    home = holder_of(cluster_nodes, slot)
    target = next(node for node in cluster_nodes if node is not home)
    move_slot(cluster_nodes, slot, home, target)
    try:
        [claimed] = store.claim(0, "one", 1, NOBODY_LEFT_IT)

        assert store.fold(0, [claimed.id], {CELL: [(0, 1)]}) == ()
        assert tallies(store, METRIC, [0]) == {CELL: [pack(1)]}
        assert store.backlog() == 0
    finally:
        move_slot(cluster_nodes, slot, target, home)


@pytest.mark.parametrize(
    "url",
    [
        "redis-cluster://",
        "redis-cluster://secret-host",
        "redis-cluster://user:secret@127.0.0.1:7000,secret-host",
        "redis-cluster://127.0.0.1:7000,127.0.0.1:secret",
        "redis-cluster://[secret:7000",
    ],
)
def test_an_address_that_is_none_is_refused_without_being_shown(url: str) -> None:
    """It may hold a password."""
    with pytest.raises(ConfigError, match=r"REDIS_URL=\*\*\*") as caught:
        open_connection(url)

    assert "secret" not in str(caught.value)


def test_a_cluster_that_is_away_is_told_as_such_without_the_secret() -> None:
    """Nobody listens on port 1."""
    connection = ClusterConnection.open("redis-cluster://user:secret@127.0.0.1:1,127.0.0.1:2")

    with pytest.raises(StorageUnavailableError) as caught:
        connection.call("GET", "key")

    assert "secret" not in str(caught.value)


class Load:
    """A device that uploads and a worker that folds, each in a thread, until told to stop."""

    def __init__(self, storage: RedisStorage, chance: random.Random) -> None:
        self._storage, self._chance = storage, chance
        self._stop = threading.Event()
        self._failures: list[BaseException] = []
        self.acknowledged: dict[bytes, int] = {}

    def running(self) -> Load:
        return self

    def __enter__(self) -> None:
        self._threads = [threading.Thread(target=self._repeat, args=(one,)) for one in self._jobs()]
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self._failures

    def wait_for(self, uploads: int) -> None:
        """Return once so many uploads are acknowledged."""
        while len(self.acknowledged) < uploads and not self._failures:
            self._stop.wait(0.01)

    def _jobs(self) -> tuple[Callable[[], None], Callable[[], None]]:
        return self._upload, self._fold

    def _repeat(self, job: Callable[[], None]) -> None:
        try:
            while not self._stop.is_set():
                job()
        except BaseException as error:
            self._failures.append(error)
            raise

    def _upload(self) -> None:
        upload_id = self._chance.randbytes(16)
        item = upload_id[15] % ITEMS
        while True:  # as a device does: the same bytes under the same id until they are taken
            try:
                self._storage.append(upload_id, DAY, bytes([item]), 1)
                break
            except StorageUnavailableError:
                continue
        self.acknowledged[upload_id] = item

    def _fold(self) -> None:
        for shard in range(self._storage.shards):
            try:
                claimed = self._storage.claim(shard, "one", 20, 50)
                counts = Counter(one.entry[0] for one in claimed)
                pairs = [(0, len(claimed)), *((item + 1, n) for item, n in counts.items())]
                self._storage.fold(shard, [one.id for one in claimed], {CELL: pairs})
            except StorageUnavailableError:
                continue


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
    wait_for(lambda: not store.refusing())  # it has what was written so far
    replica.stop()
    wait_for(lambda: b"connected_slaves:0" in primary.connection.call("INFO"))

    without = store.refusing()

    assert {shard: type(failure) for shard, failure in without.items()} == {0: NotReplicatedError}
