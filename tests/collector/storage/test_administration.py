"""The other methods of Storage: what is read, set aside, counted and deleted."""

from __future__ import annotations

import secrets

from collector.storage import Cell
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.fold_model import CELL, METRIC
from tests.support.stored import DAY, pack, queue_one, total


def test_tallies_return_each_segment_and_epoch_of_the_metric_and_window(
    store: RedisStorage,
) -> None:
    other = b"\x09" * 6
    segments = ["", "platform=mac", "land=Österreich", "odd={1}:x=* y"]
    cells = [Cell(METRIC, e, s) for e in (-1, 3, 4) for s in segments] + [Cell(other, 3, "")]
    shard, entry_id = queue_one(store)
    store.fold(shard, [entry_id], {cell: [(0, 1)] for cell in cells})

    found = store.tallies(METRIC, [-1, 3])

    assert found == {(e, s): [pack(1)] for e in (-1, 3) for s in segments}


def test_tallies_hold_one_vector_of_each_shard(store: RedisStorage) -> None:
    for i in range(40):
        shard, entry_id = queue_one(store)
        store.fold(shard, [entry_id], {CELL: [(0, 1), (i + 1, 1)]})

    assert len(store.tallies(METRIC, [0])[0, ""]) == store.shards
    assert total(store, 40) == (40, [1] * 40)


def test_quarantine_keeps_the_entry_and_takes_it_from_the_workers(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    shard, entry_id = queue_one(store, b"poison")

    moved = [store.quarantine(shard, entry_id, "why") for _ in range(2)]

    [[_, fields]] = server.call("XRANGE", keys.quarantine(shard), "-", "+")
    assert moved == [True, False]
    assert fields == [b"reason", b"why", b"e", b"poison"]
    assert (store.backlog(), store.quarantined()) == (0, 1)
    assert store.claim(shard, "second", 1, 0) == []


def test_retire_forgets_a_consumer_only_when_it_holds_nothing(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    shard, entry_id = queue_one(store)
    store.retire("first")
    kept = server.call("XINFO", "CONSUMERS", keys.stream(shard), "workers")
    store.fold(shard, [entry_id], {CELL: [(0, 1)]})
    store.retire("first")

    assert len(kept) == 1
    assert server.call("XINFO", "CONSUMERS", keys.stream(shard), "workers") == []


def test_every_entry_is_folded_quarantined_or_in_the_backlog(store: RedisStorage) -> None:
    for _ in range(6):
        store.append(secrets.token_bytes(16), DAY, b"entry")
    (first_shard, first), (second_shard, second) = queue_one(store), queue_one(store)
    store.fold(first_shard, [first], {CELL: [(0, 1)]})
    store.quarantine(second_shard, second, "why")

    assert total(store)[0] + store.quarantined() + store.backlog() == 8


def test_prepare_can_be_repeated_and_loses_nothing(store: RedisStorage) -> None:
    shard, entry_id = queue_one(store)
    store.prepare()

    assert store.fold(shard, [entry_id], {CELL: [(0, 1)]}) == ()


def test_destroy_leaves_the_keys_of_others(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    server.call("SET", f"{keys.prefix}-other:x", "theirs")
    queue_one(store)
    store.destroy()

    assert server.call("EXISTS", keys.shard_count, keys.stream(0), keys.stream(1)) == 0
    assert server.call("GETDEL", f"{keys.prefix}-other:x") == b"theirs"
