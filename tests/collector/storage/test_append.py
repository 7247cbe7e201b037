"""Append: an upload is queued once, durably, and without its time of arrival."""

from __future__ import annotations

import secrets

import pytest

from collector.core.errors import ForgottenUploadError
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import SEEN_DAYS, RedisStorage
from collector.storage.values import SealedUpload
from tests.support.store.servers import EVERY_STORE
from tests.support.store.stored import DAY, Store, claim_all


@EVERY_STORE
def test_append_queues_an_upload_once_however_often_it_is_sent(store: Store) -> None:
    first = [store.append(b"a" * 16, DAY, b"entry", 1) for _ in range(3)]

    assert first == [True, False, False]
    assert [one.entry for one in claim_all(store)] == [b"entry"]


@EVERY_STORE
def test_append_many_equals_appending_one_by_one(store: Store) -> None:
    ids = [secrets.token_bytes(16) for _ in range(5)]

    first = store.append_many([SealedUpload(i, DAY, i, 1) for i in (*ids, ids[0], ids[4])])

    assert first == [True] * 5 + [False] * 2
    assert sorted(one.entry for one in claim_all(store)) == sorted(ids)


@EVERY_STORE
def test_append_remembers_ids_by_day_of_sealing(store: Store) -> None:
    store.append(b"a" * 16, DAY, b"entry", 1)

    assert store.append(b"a" * 16, DAY + 1, b"entry", 1)
    assert not store.append(b"a" * 16, DAY, b"entry", 1)


def test_no_key_of_ids_expires_by_the_clock_of_the_store(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """A clock that is wrong for a second would make them forgotten for ever."""
    for last in range(3):
        store.append(bytes(15) + bytes([last]), DAY, b"entry", 1)
        store.append(bytes(15) + bytes([last]), DAY, b"entry", 1)
    times = {
        server.call("TTL", keys.seen(shard, DAY))
        for shard in range(store.shards)
        if server.call("EXISTS", keys.seen(shard, DAY))
    }

    assert times == {-1}


@EVERY_STORE
def test_append_refuses_an_id_that_would_be_forgotten_at_once(store: Store) -> None:
    """A clock is days off: accepted, the upload would be counted again by each repeat."""
    for _ in range(2):
        with pytest.raises(ForgottenUploadError):
            store.append(b"a" * 16, 20_000 - SEEN_DAYS, b"entry", 1)

    assert claim_all(store) == []
    assert [one.accepted.uploads for one in store.counters()] == [0] * store.shards


@EVERY_STORE
def test_append_keeps_no_time_of_arrival(store: Store) -> None:
    for _ in range(20):
        store.append(secrets.token_bytes(16), DAY, b"entry", 1)

    assert {one.id.split("-")[0] for one in claim_all(store)} == {"1"}


def test_append_that_cannot_queue_remembers_nothing(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    server.call("DEL", keys.stream(0))
    server.call("SET", keys.stream(0), "not a stream")

    with pytest.raises(OSError, match="store"):
        store.append(b"\0" * 16, DAY, b"entry", 1)

    assert server.call("EXISTS", keys.seen(0, DAY)) == 0
