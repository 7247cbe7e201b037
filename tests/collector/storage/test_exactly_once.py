"""Exactly once: replays, thieves and rewound groups never count an entry twice, or not at all."""

from __future__ import annotations

import random

import pytest

from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.fold_model import CELL, FoldModel
from tests.support.servers import REAL, AcknowledgingStorage, own_keys, profile_of
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


# Steps of a life; fakeredis takes a millisecond for each.
LIVES = {"fake": 300, "real": 3_000, "cluster": 3_000}


@pytest.fixture
def steps(server_kind: str) -> int:
    """Return how long a life is on this kind of server."""
    return LIVES[server_kind]


def test_three_workers_fold_each_acknowledged_upload_once_in_any_life(
    store: RedisStorage, server: Connection, keys: Keys, steps: int
) -> None:
    """Deaths before the fold, replays and rewinds leave the tally of the acknowledged uploads."""
    model = FoldModel(store, server, keys, random.Random(1))

    model.live(steps)

    assert len(model.ids) > steps / 5
    assert model.found() == model.expected()
    assert (store.backlog(), sum(one.drift for one in store.counters())) == (0, 0)


def test_a_life_with_a_fold_guarded_by_acknowledgement_is_caught(
    server: Connection, server_kind: str, steps: int
) -> None:
    """The control: the same life finds the fold that takes the acknowledgement for its token."""
    keys = own_keys()
    control = AcknowledgingStorage(server, keys, profile_of(server_kind))
    control.prepare()
    model = FoldModel(control, server, keys, random.Random(1))

    model.live(steps)

    assert model.found()[0] > model.expected()[0]
    control.destroy()


@pytest.mark.slow
@pytest.mark.parametrize("server_kind", [REAL], indirect=True)
def test_no_upload_of_a_hundred_thousand_steps_is_lost_or_counted_twice(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """The same law over 10^5 steps."""
    model = FoldModel(store, server, keys, random.Random(2))

    model.live(100_000)

    assert len(model.ids) > 30_000
    assert model.found() == model.expected()
    assert (store.backlog(), sum(one.drift for one in store.counters())) == (0, 0)
