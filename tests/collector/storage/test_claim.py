"""Claim: every entry reaches a worker, however many of them die."""

from __future__ import annotations

import secrets

import pytest

from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import ClaimedEntry
from tests.support.store.servers import EVERY_STORE
from tests.support.store.stored import CELL, DAY, NOBODY_LEFT_IT, Store, queue_one


@EVERY_STORE
def test_claim_returns_at_most_count_and_nothing_twice(store: Store) -> None:
    for i in range(5):
        store.append(bytes(15) + bytes([2 * i]), DAY, b"%d" % i, 1)

    first = store.claim(0, "one", 3, NOBODY_LEFT_IT)
    second = store.claim(0, "two", 3, NOBODY_LEFT_IT)

    assert len(first) <= 3
    assert len(second) <= 3
    entries = [one.entry for one in (*first, *second)]
    assert sorted(entries) == [b"0", b"1", b"2", b"3", b"4"]


@EVERY_STORE
def test_claim_takes_what_a_dead_consumer_left_before_what_is_new(store: Store) -> None:
    shard, left_id = queue_one(store, b"left")
    store.append(shard.to_bytes(8, "big") + bytes(8), DAY, b"new", 1)

    [left] = store.claim(shard, "second", 1, 0)
    [new] = store.claim(shard, "second", 1, NOBODY_LEFT_IT)

    assert left == ClaimedEntry(left_id, b"left", 2)
    assert new.entry == b"new"
    assert new.deliveries == 1


@EVERY_STORE
def test_claim_counts_deliveries(store: Store) -> None:
    shard, _ = queue_one(store)

    deliveries = [store.claim(shard, name, 1, 0)[0].deliveries for name in "abcd"]

    assert deliveries == [2, 3, 4, 5]


@EVERY_STORE
def test_claim_reaches_every_left_entry_behind_many_that_stay_pending(store: Store) -> None:
    for i in range(60):
        store.append(bytes(8) + i.to_bytes(8, "big"), DAY, b"%d" % i, 1)
    store.claim(0, "dead", 60, NOBODY_LEFT_IT)

    seen = {one.entry for _ in range(60) for one in store.claim(0, "alive", 2, 0)}

    assert seen == {b"%d" % i for i in range(60)}


def test_claim_hands_an_entry_of_another_form_over_as_empty(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    server.call("XADD", keys.stream(0), "1-*", "foreign", "x")

    [claimed] = store.claim(0, "one", 1, NOBODY_LEFT_IT)

    assert claimed.entry == b""


def test_claim_raises_the_alarm_when_unfolded_entries_are_gone(
    store: RedisStorage, server: Connection, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    shard, entry_id = queue_one(store)
    server.call("XDEL", keys.stream(shard), entry_id)

    claimed = store.claim(shard, "second", 1, 0)

    assert claimed == []
    assert "1 acknowledged entries are gone" in caplog.text


@EVERY_STORE
def test_claim_stops_once_its_bytes_are_reached(store: Store) -> None:
    """So large entries cannot fill a worker's memory, whatever came before: new ones or left."""
    for i in range(6):
        store.append(bytes(15) + bytes([2 * i]), DAY, bytes(100), 1)

    new = [len(store.claim(0, "one", 9, NOBODY_LEFT_IT, size)) for size in (250, 1, 100)]
    left = [len(store.claim(0, "two", 9, 0, size)) for size in (250, 1, 100)]

    assert new == [3, 1, 1]
    assert left == [3, 1, 1]


@EVERY_STORE
def test_claim_hands_over_what_was_left_twice_last_and_one_at_a_time(store: Store) -> None:
    """An entry that kills its workers must not count as a try of those beside it."""
    for i in range(4):
        store.append(bytes(15) + bytes([2 * i]), DAY, b"%d" % i, 1)
    for consumer in ("one", "two"):
        store.claim(0, consumer, 9, 0)
    store.append(bytes(15) + bytes([8]), DAY, b"new", 1)

    claims = [store.claim(0, "three", 9, 0) for _ in range(2)]

    assert [[one.deliveries for one in claim] for claim in claims] == [[3, 1], [3]]


@EVERY_STORE
def test_spared_entries_are_as_if_delivered_never(store: Store) -> None:
    """They are claimed again, however often they were spared."""
    shard, entry_id = queue_one(store)
    for _ in range(7):
        [claimed] = store.claim(shard, "second", 9, 0)
        store.spare(shard, "second", [claimed.id])

    assert claimed == ClaimedEntry(entry_id, b"entry", 1)


@EVERY_STORE
def test_sweep_counts_each_worker_that_holds_nothing_once(store: Store) -> None:
    """One that has left by itself is forgotten already."""
    shard, _ = queue_one(store)
    for consumer in ("killed", "retired"):
        store.append(shard.to_bytes(8, "big") + secrets.token_bytes(8), DAY, b"entry", 1)
        [claimed] = store.claim(shard, consumer, 1, NOBODY_LEFT_IT)
        store.fold(shard, [claimed.id], {CELL: [(0, 1)]})
    store.retire("retired")
    store.retire("first")  # which holds an entry, and so stays

    assert [store.sweep(idle_ms) for idle_ms in (NOBODY_LEFT_IT, 0, 0)] == [0, 1, 0]
    assert [one.deliveries for one in store.claim(shard, "second", 1, 0)] == [2]


def test_sweep_forgets_workers_that_are_gone_and_hold_nothing(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """One that holds entries stays, or these would never be claimed."""
    shard, _ = queue_one(store)
    store.append(shard.to_bytes(8, "big") + bytes(8), DAY, b"entry", 1)
    [folded] = store.claim(shard, "empty", 1, NOBODY_LEFT_IT)
    store.fold(shard, [folded.id], {CELL: [(0, 1)]})

    swept = [store.sweep(NOBODY_LEFT_IT), store.sweep(0)]

    consumers = server.call("XINFO", "CONSUMERS", keys.stream(shard), "workers")
    assert swept == [0, 1]
    assert [one[1] for one in consumers] == [b"first"]
