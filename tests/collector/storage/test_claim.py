"""Claim: every entry reaches a worker, however many of them die."""

from __future__ import annotations

import pytest

from collector.storage import Claimed
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.stored import DAY, NOBODY_LEFT_IT, queue_one


def test_claim_returns_at_most_count_and_nothing_twice(store: RedisStorage) -> None:
    for i in range(5):
        store.append(bytes(15) + bytes([2 * i]), DAY, b"%d" % i)

    first = store.claim(0, "one", 3, NOBODY_LEFT_IT)
    second = store.claim(0, "two", 3, NOBODY_LEFT_IT)

    assert len(first) <= 3
    assert len(second) <= 3
    entries = [one.entry for one in (*first, *second, *store.claim(1, "one", 9, NOBODY_LEFT_IT))]
    assert sorted(entries) == [b"0", b"1", b"2", b"3", b"4"]


def test_claim_takes_what_a_dead_consumer_left_before_what_is_new(store: RedisStorage) -> None:
    shard, left_id = queue_one(store, b"left")
    store.append(shard.to_bytes(8, "big") + bytes(8), DAY, b"new")

    [left] = store.claim(shard, "second", 1, 0)
    [new] = store.claim(shard, "second", 1, NOBODY_LEFT_IT)

    assert left == Claimed(left_id, b"left", 2)
    assert new.entry == b"new"
    assert new.deliveries == 1


def test_claim_counts_deliveries(store: RedisStorage) -> None:
    shard, _ = queue_one(store)

    deliveries = [store.claim(shard, name, 1, 0)[0].deliveries for name in "abcd"]

    assert deliveries == [2, 3, 4, 5]


def test_claim_reaches_every_left_entry_behind_many_that_stay_pending(store: RedisStorage) -> None:
    for i in range(60):
        store.append(bytes(8) + i.to_bytes(8, "big"), DAY, b"%d" % i)
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
