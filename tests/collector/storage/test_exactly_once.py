"""Exactly once: replays, thieves and rewound groups never count an entry twice, or not at all."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import Increments
from tests.support.store.fold_model import FoldModel, rewinding
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.servers import (
    EVERY_STORE,
    MEMORY,
    REAL,
    AcknowledgingStorage,
    own_keys,
    profile_of,
)
from tests.support.store.stored import CELL, NOBODY_LEFT_IT, Store, queue_one, total


@EVERY_STORE
def test_fold_replayed_counts_once(store: Store) -> None:
    shard, entry_id = queue_one(store)

    replies = [store.fold(shard, [entry_id], {CELL: [(0, 1)]}) for _ in range(3)]

    assert replies == [(), (entry_id,), (entry_id,)]
    assert total(store) == (1, [0])


@EVERY_STORE
def test_fold_by_two_workers_of_the_same_claim_counts_once(store: Store) -> None:
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


@EVERY_STORE
def test_fold_refuses_an_entry_given_twice(store: Store) -> None:
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
LIVES = {MEMORY: 3_000, "fake": 300, "real": 3_000, "cluster": 3_000}


@pytest.fixture
def steps(server_kind: str) -> int:
    """Return how long a life is on this kind of server."""
    return LIVES[server_kind]


@pytest.fixture
def rewind(server_kind: str, keys: Keys, request: pytest.FixtureRequest) -> Callable[[int], None]:
    """Return what rewinds the group of a shard; a store in memory has none."""
    if server_kind == MEMORY:
        return lambda shard: None
    return rewinding(request.getfixturevalue("server"), keys)


@EVERY_STORE
def test_three_workers_fold_each_acknowledged_upload_once_in_any_life(
    store: Store, rewind: Callable[[int], None], steps: int
) -> None:
    """Deaths before the fold, replays and rewinds leave the tally of the acknowledged uploads."""
    model = FoldModel(store, random.Random(1), rewind)

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
    model = FoldModel(control, random.Random(1), rewinding(server, keys))

    model.live(steps)

    assert model.found()[0] > model.expected()[0]
    control.destroy()


class Recounting(MemoryStorage):
    """The control in memory: a fold that does not ask whether its entries are still there."""

    def fold(
        self, shard: int, ids: Sequence[str], increments: Increments, ending: int | None = None
    ) -> tuple[str, ...]:
        self.entries |= dict.fromkeys(ids, b"")
        return super().fold(shard, ids, increments, ending)


def test_a_life_with_a_fold_in_memory_that_asks_for_no_token_is_caught() -> None:
    """The control: laws that hold of the store in memory can be broken by it."""
    model = FoldModel(Recounting(), random.Random(1), lambda shard: None)

    model.live(LIVES[MEMORY])

    assert model.found()[0] > model.expected()[0]


@pytest.mark.slow
@pytest.mark.parametrize("server_kind", [REAL], indirect=True)
def test_no_upload_of_a_hundred_thousand_steps_is_lost_or_counted_twice(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """The same law over 10^5 steps."""
    model = FoldModel(store, random.Random(2), rewinding(server, keys))

    model.live(100_000)

    assert len(model.ids) > 30_000
    assert model.found() == model.expected()
    assert (store.backlog(), sum(one.drift for one in store.counters())) == (0, 0)
