"""The laws of Storage, on every kind of server."""

from __future__ import annotations

import random
import secrets
import struct

import pytest

from collector.errors import TallyOverflowError
from collector.storage import Cell, Claimed
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import SEEN_TTL, RedisStorage
from collector.tally import merge
from tests.support.fold_model import CELL, METRIC, FoldModel
from tests.support.servers import AcknowledgingStorage, own_keys, profile_of

DAY = 20_000
NOBODY_LEFT_IT = 3_600_000  # milliseconds


def pack(*counters: int) -> bytes:
    return struct.pack(f">{len(counters)}q", *counters)


def queue_one(store: RedisStorage, entry: bytes = b"entry") -> tuple[int, str]:
    """Append and claim one entry; return its shard and id."""
    upload_id = secrets.token_bytes(16)
    store.append(upload_id, DAY, entry)
    shard = int.from_bytes(upload_id[:8], "big") % store.shards
    claimed = store.claim(shard, "first", 10, NOBODY_LEFT_IT)
    return shard, claimed[-1].id


def claim_all(store: RedisStorage, consumer: str = "any") -> list[Claimed]:
    return [
        claimed
        for shard in range(store.shards)
        for claimed in store.claim(shard, consumer, 100, NOBODY_LEFT_IT)
    ]


def total(store: RedisStorage, size: int = 1) -> tuple[int, list[int]]:
    vectors = store.tallies(METRIC, [0]).get((0, ""), [])
    n, tally = merge(vectors, size)
    return n, tally.tolist()


def test_append_queues_an_upload_once_however_often_it_is_sent(store: RedisStorage) -> None:
    first = [store.append(b"a" * 16, DAY, b"entry") for _ in range(3)]

    assert first == [True, False, False]
    assert [one.entry for one in claim_all(store)] == [b"entry"]


def test_append_many_equals_appending_one_by_one(store: RedisStorage) -> None:
    ids = [secrets.token_bytes(16) for _ in range(5)]

    first = store.append_many([(i, DAY, i) for i in (*ids, ids[0], ids[4])])

    assert first == [True] * 5 + [False] * 2
    assert sorted(one.entry for one in claim_all(store)) == sorted(ids)


def test_append_remembers_ids_by_day_of_sealing(store: RedisStorage) -> None:
    store.append(b"a" * 16, DAY, b"entry")

    assert store.append(b"a" * 16, DAY + 1, b"entry")
    assert not store.append(b"a" * 16, DAY, b"entry")


def test_append_remembers_ids_for_the_horizon_from_the_first(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    upload_id = b"\0" * 16
    store.append(upload_id, DAY, b"entry")
    key = keys.seen(0, DAY)
    first = server.call("TTL", key)
    server.call("EXPIRE", key, 1_000)
    store.append(b"\0" * 15 + b"\1", DAY, b"entry")

    assert SEEN_TTL - 5 <= first <= SEEN_TTL
    assert server.call("TTL", key) <= 1_000


def test_append_keeps_no_time_of_arrival(store: RedisStorage, server: Connection) -> None:
    for _ in range(20):
        store.append(secrets.token_bytes(16), DAY, b"entry")

    assert {one.id.split("-")[0] for one in claim_all(store)} == {"1"}


def test_append_that_cannot_queue_remembers_nothing(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    server.call("DEL", keys.stream(0))
    server.call("SET", keys.stream(0), "not a stream")

    with pytest.raises(OSError, match="store"):
        store.append(b"\0" * 16, DAY, b"entry")

    assert server.call("EXISTS", keys.seen(0, DAY)) == 0


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


def test_fold_adds_and_deletes_in_one_step(store: RedisStorage) -> None:
    shard, entry_id = queue_one(store)

    missing = store.fold(shard, [entry_id], {CELL: [(0, 3), (2, -7)]})

    assert missing == ()
    assert total(store, 2) == (3, [0, -7])
    assert store.backlog() == 0


def test_fold_of_missing_entries_changes_nothing_and_names_them(store: RedisStorage) -> None:
    shard, entry_id = queue_one(store)

    missing = store.fold(shard, [entry_id, "1-999", "1-998"], {CELL: [(0, 3)]})

    assert missing == ("1-999", "1-998")
    assert store.tallies(METRIC, [0]) == {}
    assert store.backlog() == 1


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


@pytest.mark.parametrize("preset", [(1 << 63) - 3, 1 << 62, -(1 << 63), -(1 << 62) - 1])
def test_fold_into_a_counter_near_its_end_is_refused_and_changes_nothing(
    store: RedisStorage, server: Connection, keys: Keys, preset: int
) -> None:
    shard, entry_id = queue_one(store)
    full = keys.tally(shard, CELL)
    server.call("SET", full, pack(5, 6, preset))
    other = Cell(METRIC, 0, "platform=mac")

    with pytest.raises(TallyOverflowError, match="range"):
        store.fold(shard, [entry_id], {other: [(0, 10)], CELL: [(0, 10), (1, 1), (2, 10)]})

    assert server.call("GET", full) == pack(5, 6, preset)
    assert server.call("EXISTS", keys.tally(shard, other), keys.cells(shard, METRIC, 0)) == 0
    assert store.backlog() == 1


@pytest.mark.parametrize("pairs", [[(1, 1 << 62)], [(1, 1 << 61), (1, 1 << 61)], [(1, -(1 << 62))]])
def test_fold_refuses_to_add_more_than_a_counter_can_take(
    store: RedisStorage, pairs: list[tuple[int, int]]
) -> None:
    shard, entry_id = queue_one(store)

    with pytest.raises(TallyOverflowError, match="2\\^62"):
        store.fold(shard, [entry_id], {CELL: pairs})

    assert store.backlog() == 1


@pytest.mark.parametrize("start", [(1 << 53) + 1, (1 << 62) - 5, -(1 << 62)])
def test_fold_is_exact_above_what_a_double_holds(
    store: RedisStorage, server: Connection, keys: Keys, start: int
) -> None:
    shard, entry_id = queue_one(store)
    server.call("SET", keys.tally(shard, CELL), pack(start, start))

    store.fold(shard, [entry_id], {CELL: [(0, 9_007_199_254_740_993), (1, 2)]})

    assert total(store) == (start + 9_007_199_254_740_993, [start + 2])


def test_fold_adds_thousands_of_counters_in_any_order(store: RedisStorage) -> None:
    shard, entry_id = queue_one(store)
    indexes = [20_000, *range(2_100), 9_000, 2_500]  # more than a command takes, and far apart
    pairs = [(i, i + 1) for i in indexes]

    store.fold(shard, [entry_id], {CELL: pairs})

    n, tally = total(store, 20_000)
    assert {i: c for i, c in enumerate([n, *tally]) if c} == dict(pairs)


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
