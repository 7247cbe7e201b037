"""An upload is queued once, reaches a worker however many die, and is folded whole and exact."""

from __future__ import annotations

import secrets

import pytest

from collector.core.cells import Cell
from collector.core.errors import ClassEndedError, ForgottenUploadError, TallyOverflowError
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import SEEN_DAYS, RedisStorage
from collector.storage.values import ClaimedEntry, SealedUpload
from tests.support.store.servers import EVERY_STORE
from tests.support.store.stored import (
    CELL,
    DAY,
    METRIC,
    NOBODY_LEFT_IT,
    Store,
    claim_all,
    pack,
    queue_one,
    queue_one_in,
    tallies,
    total,
)


@EVERY_STORE
def test_append_many_equals_appending_one_by_one(store: Store) -> None:
    """Of several days and shards, each has its own place in the answer."""
    ids = [secrets.token_bytes(16) for _ in range(5)]
    uploads = [SealedUpload(i, DAY + number % 2, i, 1) for number, i in enumerate(ids)]

    first = store.append_many([uploads[number] for number in (0, 1, 0, 2, 3, 1, 4)])

    assert first == [True, True, False, True, True, False, True]
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


@EVERY_STORE
def test_fold_adds_and_deletes_in_one_step(store: Store) -> None:
    shard, entry_id = queue_one(store)

    missing = store.fold(shard, [entry_id], {CELL: [(0, 3), (2, -7)]})

    assert missing == ()
    assert total(store, 2) == (3, [0, -7])
    assert store.backlog() == 0


@EVERY_STORE
def test_fold_of_no_entries_adds_nothing(store: Store) -> None:
    """Law: what is added is paid for with an entry, so that it is added once."""
    assert store.fold(0, [], {CELL: [(0, 3)]}) == ()
    assert tallies(store, METRIC, [0]) == {}


@EVERY_STORE
def test_fold_of_missing_entries_changes_nothing_and_names_them(store: Store) -> None:
    shard, entry_id = queue_one(store)

    missing = store.fold(shard, [entry_id, "1-999", "1-998"], {CELL: [(0, 3)]})

    assert missing == ("1-999", "1-998")
    assert tallies(store, METRIC, [0]) == {}
    assert store.backlog() == 1


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


@EVERY_STORE
@pytest.mark.parametrize("pairs", [[(1, 1 << 62)], [(1, 1 << 61), (1, 1 << 61)], [(1, -(1 << 62))]])
def test_fold_refuses_to_add_more_than_a_counter_can_take(
    store: Store, pairs: list[tuple[int, int]]
) -> None:
    shard, entry_id = queue_one(store)

    with pytest.raises(TallyOverflowError, match="2\\^62"):
        store.fold(shard, [entry_id], {CELL: pairs})

    assert store.backlog() == 1


@EVERY_STORE
def test_fold_into_a_counter_that_is_full_is_refused_and_changes_nothing(store: Store) -> None:
    """Law: no counter leaves its range, and neither does any other cell of the same fold change."""
    most, other = (1 << 62) - 2, Cell(METRIC, 0, "platform=mac")
    shard, entry_id = queue_one(store)
    for _ in range(2):
        assert store.fold(shard, [entry_id], {CELL: [(0, 1), (1, most)]}) == ()
        shard, entry_id = queue_one_in(store, shard)
    before = store.counters()

    with pytest.raises(TallyOverflowError, match="range"):
        store.fold(shard, [entry_id], {other: [(0, 1)], CELL: [(0, 1), (1, 1)]})

    assert tallies(store, METRIC, [0]) == {CELL: [pack(2, 2 * most)]}
    assert store.counters() == before


@pytest.mark.parametrize("start", [(1 << 53) + 1, (1 << 62) - 5, -(1 << 62)])
def test_fold_is_exact_above_what_a_double_holds(
    store: RedisStorage, server: Connection, keys: Keys, start: int
) -> None:
    shard, entry_id = queue_one(store)
    server.call("SET", keys.tally(shard, CELL), pack(start, start))

    store.fold(shard, [entry_id], {CELL: [(0, 9_007_199_254_740_993), (1, 2)]})

    assert total(store) == (start + 9_007_199_254_740_993, [start + 2])


@EVERY_STORE
def test_fold_adds_thousands_of_counters_in_any_order(store: Store) -> None:
    shard, entry_id = queue_one(store)
    indexes = [20_000, *range(2_100), 9_000, 2_500]  # more than a command takes, and far apart
    pairs = [(i, i + 1) for i in indexes]

    store.fold(shard, [entry_id], {CELL: pairs})

    n, tally = total(store, 20_000)
    assert {i: c for i, c in enumerate([n, *tally]) if c} == dict(pairs)


@EVERY_STORE
def test_fold_of_a_class_that_has_ended_changes_nothing(store: Store) -> None:
    """The store's own clock decides, in the same step as the fold."""
    shard, entry_id = queue_one(store)
    before = store.counters()

    with pytest.raises(ClassEndedError):
        store.fold(shard, [entry_id], {CELL: [(0, 1)]}, ending=store.now(shard))

    assert store.counters() == before
    assert tallies(store, METRIC, [0]) == {}
    assert store.fold(shard, [entry_id], {CELL: [(0, 1)]}, ending=store.now(shard) + 60) == ()


@EVERY_STORE
def test_tallies_of_each_class_are_kept_apart(store: Store) -> None:
    """A query takes the classes of its version, and no others."""
    cells = [Cell(METRIC, 0, "a:b", lateness) for lateness in range(5)]
    for cell in cells:
        shard, entry_id = queue_one(store)
        store.fold(shard, [entry_id], {cell: [(0, 1 + cell.lateness)]})

    found = {latest: tallies(store, METRIC, [0], latest) for latest in (0, 2, None)}

    assert found[0] == {cells[0]: [pack(1)]}
    assert found[2] == {cell: [pack(1 + cell.lateness)] for cell in cells[:3]}
    assert found[None] == {cell: [pack(1 + cell.lateness)] for cell in cells}
