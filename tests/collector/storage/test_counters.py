"""Conservation: accepted = folded + pending + set aside + dropped, at any moment, in every step."""

from __future__ import annotations

import pytest

from collector.core.cells import Cell
from collector.core.errors import RefusedByStoreError
from collector.storage.connection import Connection
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import Count, Counters, SealedUpload
from tests.support.store.servers import EVERY_STORE
from tests.support.store.stored import CELL, DAY, METRIC, NOBODY_LEFT_IT, Store

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
    store.quarantine(0, third, "why")

    counted = state(store)

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
        server.call("HSET", keys.counters(0), "folded.uploads", value)
    before = server.call("XRANGE", keys.stream(0), "-", "+")

    with pytest.raises(RefusedByStoreError):
        store.append(bytes(15) + b"\x09", DAY, b"new", 1)
    with pytest.raises(RefusedByStoreError):
        store.fold(0, [first], {CELL: [(0, 1)]})
    with pytest.raises(RefusedByStoreError):
        store.quarantine(0, first, "why")

    assert server.call("XRANGE", keys.stream(0), "-", "+") == before
    assert server.call("SCARD", keys.seen(0, DAY)) == len(UPLOADS)
    assert server.call("EXISTS", keys.tally(0, CELL)) == 0
    assert server.call("EXISTS", keys.quarantine(0)) == 0
