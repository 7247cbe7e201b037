"""Exactly once: replays, thieves and rewound groups never count an entry twice, or not at all."""

from __future__ import annotations

import random

import pytest

from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.fold_model import CELL, FoldModel
from tests.support.servers import AcknowledgingStorage, own_keys, profile_of
from tests.support.stored import NOBODY_LEFT_IT, queue_one, total


def test_fold_replayed_counts_once(store: RedisStorage) -> None:
    shard, entry_id = queue_one(store)

    replies = [store.fold(shard, [entry_id], {CELL: [(0, 1)]}) for _ in range(3)]

    assert replies == [(), (entry_id,), (entry_id,)]
    assert total(store) == (1, [0])


def test_fold_by_two_workers_of_the_same_claim_counts_once(store: RedisStorage) -> None:
    shard, entry_id = queue_one(store)
    [stolen] = store.claim(shard, "second", 1, 0)

    replies = [store.fold(shard, [i], {CELL: [(0, 1)]}) for i in (entry_id, stolen.id)]

    assert replies == [(), (entry_id,)]
    assert total(store) == (1, [0])


def test_fold_after_a_rewound_group_counts_once(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    fold_rewind_fold(store, server, keys)

    assert total(store) == (1, [0])


def test_a_fold_guarded_by_acknowledgement_counts_twice_in_the_same_scenario(
    server: Connection, server_kind: str
) -> None:
    keys = own_keys()
    control = AcknowledgingStorage(server, keys, profile_of(server_kind))
    control.prepare()
    fold_rewind_fold(control, server, keys)

    assert total(control) == (2, [0])
    control.destroy()


def test_claim_after_a_rewound_group_hands_an_entry_over_once(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    shard, entry_id = queue_one(store)
    server.call("XGROUP", "SETID", keys.stream(shard), "workers", "0")

    claimed = store.claim(shard, "second", 10, 0)

    assert [one.id for one in claimed] == [entry_id]


def test_fold_refuses_an_entry_given_twice(store: RedisStorage) -> None:
    shard, entry_id = queue_one(store)

    with pytest.raises(ValueError, match="ids: must differ"):
        store.fold(shard, [entry_id, entry_id], {CELL: [(0, 2)]})

    assert store.backlog() == 1


def fold_rewind_fold(store: RedisStorage, server: Connection, keys: Keys) -> None:
    shard, entry_id = queue_one(store)
    store.fold(shard, [entry_id], {CELL: [(0, 1)]})
    server.call("XGROUP", "SETID", keys.stream(shard), "workers", "0")
    for claimed in store.claim(shard, "second", 10, NOBODY_LEFT_IT):
        store.fold(shard, [claimed.id], {CELL: [(0, 1)]})


@pytest.mark.parametrize("seed", range(4))
def test_two_workers_fold_each_acknowledged_upload_once_in_any_life(
    store: RedisStorage, server: Connection, keys: Keys, seed: int
) -> None:
    model = FoldModel(store, server, keys, random.Random(seed))

    model.live(steps=300)

    n = len(model.acknowledged)
    assert n > 50
    assert total(store) == (n, [2 * n])
    assert store.backlog() == 0
