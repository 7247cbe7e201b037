"""Exactly once: no replay, thief or rewound group counts twice; every step conserves counts."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from collector.core.cells import Cell
from collector.core.errors import RefusedByStoreError
from collector.storage.connection import Connection
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import Count, Counters, Increments, SealedUpload
from tests.support.store.fold_model import FoldModel, rewinding
from tests.support.store.ids import remembered
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.servers import (
    EVERY_STORE,
    MEMORY,
    REAL,
    AcknowledgingStorage,
    own_keys,
    profile_of,
)
from tests.support.store.stored import CELL, DAY, METRIC, NOBODY_LEFT_IT, Store, queue_one


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


# Uploads of shard 0 and their reports.
UPLOADS = [SealedUpload(bytes(15) + bytes([i]), DAY, b"%d" % i, 10**i) for i in range(5)]


def state(store: Store) -> Counters:
    """Return the counts of shard 0; every upload of these tests goes there."""
    first, *others = store.counters()
    assert all(one.accepted == Count() for one in others)
    return first


def queue(store: Store) -> list[str]:
    """Queue and claim UPLOADS; return their ids in the stream, in order."""
    store.append_many(UPLOADS)
    claimed = store.claim(0, "first", 9, NOBODY_LEFT_IT)
    return [one.id for one in sorted(claimed, key=lambda one: one.entry)]


@EVERY_STORE
def test_every_step_of_a_worker_keeps_the_law(store: Store) -> None:
    """Append, repeat, fold, fold late, set aside: uploads and reports are conserved."""
    first, second, third, *_ = queue(store)
    store.append_many(UPLOADS[:2])
    store.fold(0, [first], {CELL: [(0, 1), (1, 1)]})
    store.fold(0, [second], {Cell(METRIC, 0, "", 2): [(0, 4), (1, 10), (0, 6)]})
    moved = [store.quarantine(0, third, "why") for _ in range(2)]

    counted = state(store)
    assert moved == [True, False]

    assert (counted.accepted, counted.folded, counted.quarantined, counted.pending) == (
        Count(5, 11_111),
        Count(2, 11),
        Count(1, 100),
        Count(2, 11_000),
    )
    assert (counted.late_reports, counted.stream, counted.aside, counted.drift) == (10, 2, 1, 0)


def test_every_step_keeps_the_law(store: RedisStorage, server: Connection, keys: Keys) -> None:
    """Append, repeat, fold, set aside, queue again, drop: uploads and reports are conserved."""
    inspection = RedisInspection(server, keys)
    ids = queue(store)
    queued = state(store)
    store.append_many(UPLOADS[:2])
    store.fold(0, ids[:1], {CELL: [(0, 1), (1, 1)]})
    store.fold(0, ids[1:2], {Cell(METRIC, 0, "", 2): [(0, 10), (1, 10)]})
    folded = state(store)
    for entry_id in ids[2:4]:
        store.quarantine(0, entry_id, "why")
    aside = state(store)
    again, gone = (one.id for one in inspection.set_aside(0))
    moved = [inspection.requeue(0, again), inspection.drop(0, gone)]
    moved += [inspection.requeue(0, again), inspection.drop(0, gone)]
    end = state(store)

    assert queued.accepted == queued.pending == Count(5, 11_111)
    assert (folded.folded, folded.pending, folded.late_reports) == (
        Count(2, 11),
        Count(3, 11_100),
        10,
    )
    assert (aside.quarantined, aside.pending, aside.aside) == (Count(2, 1_100), Count(1, 10_000), 2)
    assert moved == [True, True, False, False]
    assert (end.quarantined, end.dropped, end.pending) == (
        Count(),
        Count(1, 1_000),
        Count(2, 10_100),
    )
    assert [one.drift for one in (queued, folded, aside, end)] == [0, 0, 0, 0]
    assert {one.accepted for one in (queued, folded, aside, end)} == {Count(5, 11_111)}


def test_an_entry_queued_again_is_claimed_as_it_was_appended(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """Its bytes and its number of reports; only its deliveries are forgotten."""
    [first, *_] = queue(store)
    store.quarantine(0, first, "why")
    inspection = RedisInspection(server, keys)
    [one] = inspection.set_aside(0)
    inspection.requeue(0, one.id)

    [claimed] = store.claim(0, "second", 9, NOBODY_LEFT_IT)

    assert (one.entry, one.reports, one.reason) == (b"0", 1, "why")
    assert (claimed.entry, claimed.deliveries) == (b"0", 1)


@pytest.mark.parametrize("damage", ["not a hash", "not a number", "near the end"])
def test_counts_that_cannot_be_added_to_refuse_a_step_before_its_first_write(
    store: RedisStorage, server: Connection, keys: Keys, damage: str
) -> None:
    """Nothing of an append, a fold or a quarantine is left behind."""
    [first, *_] = queue(store)
    if damage == "not a hash":
        server.call("DEL", keys.counters(0))
        server.call("SET", keys.counters(0), "1")
    else:
        value = "many" if damage == "not a number" else (1 << 63) - 1
        for state in ("accepted", "folded"):
            server.call("HSET", keys.counters(0), f"{state}.uploads", value)
    before = server.call("XRANGE", keys.stream(0), "-", "+")

    with pytest.raises(RefusedByStoreError):
        store.append(bytes(15) + b"\x09", DAY, b"new", 1)
    with pytest.raises(RefusedByStoreError):
        store.fold(0, [first], {CELL: [(0, 1)]})
    with pytest.raises(RefusedByStoreError):
        store.quarantine(0, first, "why")

    assert server.call("XRANGE", keys.stream(0), "-", "+") == before
    assert remembered(server, keys, 0, DAY) == len(UPLOADS)
    assert server.call("EXISTS", keys.tally(0, CELL)) == 0
    assert server.call("EXISTS", keys.quarantine(0)) == 0
