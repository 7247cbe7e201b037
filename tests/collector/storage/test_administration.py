"""What is read, set aside, counted and deleted; what is pruned does not come back."""

from __future__ import annotations

import secrets
from importlib.resources import files

import pytest

from client_sdk.registry.metric import Metric
from collector.core.cells import Cell
from collector.core.errors import NotPreparedError, StorageFullError
from collector.storage.archive_queue import RedisArchiveQueue
from collector.storage.connection import Connection
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys, member_of
from collector.storage.preparation import GROUP, LIBRARY_VERSION
from collector.storage.redis import RedisStorage
from collector.worker.fsck import fsck
from tests.support.store.servers import EVERY_STORE, REAL
from tests.support.store.stored import (
    CELL,
    DAY,
    METRIC,
    NOBODY_LEFT_IT,
    Store,
    pack,
    quarantined,
    queue_one,
    tallies,
    total,
)
from tests.support.store.stored import DAY as SEALED


@EVERY_STORE
def test_tallies_return_each_segment_and_epoch_of_the_metric_and_window(
    store: Store,
) -> None:
    other = b"\x09" * 6
    segments = ["", "platform=mac", "land=Österreich", "odd={1}:x=* y"]
    cells = [Cell(METRIC, e, s) for e in (-1, 3, 4) for s in segments] + [Cell(other, 3, "")]
    shard, entry_id = queue_one(store)
    store.fold(shard, [entry_id], {cell: [(0, 1)] for cell in cells})

    found = tallies(store, METRIC, [-1, 3])

    assert found == {Cell(METRIC, e, s): [pack(1)] for e in (-1, 3) for s in segments}


@EVERY_STORE
def test_tallies_hold_one_vector_of_each_shard(store: Store) -> None:
    for i in range(40):
        shard, entry_id = queue_one(store)
        store.fold(shard, [entry_id], {CELL: [(0, 1), (i + 1, 1)]})

    assert len(tallies(store, METRIC, [0])[CELL]) == store.shards
    assert total(store, 40) == (40, [1] * 40)


@EVERY_STORE
def test_what_is_set_aside_is_claimed_and_folded_no_more(store: Store) -> None:
    shard, entry_id = queue_one(store)

    moved = [store.quarantine(shard, entry_id, "why") for _ in range(2)]

    assert moved == [True, False]
    assert (store.backlog(), quarantined(store)) == (0, 1)
    assert store.claim(shard, "second", 1, 0) == []
    assert store.fold(shard, [entry_id], {CELL: [(0, 1)]}) == (entry_id,)
    assert tallies(store, METRIC, [0]) == {}


def test_quarantine_keeps_the_entry_with_its_reason_and_reports(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    shard, entry_id = queue_one(store, b"poison")

    store.quarantine(shard, entry_id, "why")

    [[_, fields]] = server.call("XRANGE", keys.quarantine(shard), "-", "+")
    assert fields == [b"reason", b"why", b"n", b"1", b"e", b"poison"]


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


@EVERY_STORE
def test_every_entry_is_folded_quarantined_or_in_the_backlog(store: Store) -> None:
    for _ in range(6):
        store.append(secrets.token_bytes(16), DAY, b"entry", 1)
    (first_shard, first), (second_shard, second) = queue_one(store), queue_one(store)
    store.fold(first_shard, [first], {CELL: [(0, 1)]})
    store.quarantine(second_shard, second, "why")

    assert total(store)[0] + quarantined(store) + store.backlog() == 8


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

    ours = keys.shard_count, keys.stream(0), keys.stream(1), keys.counters(0)
    assert [server.call("EXISTS", name) for name in ours] == [0] * 4
    assert server.call("GETDEL", f"{keys.prefix}-other:x") == b"theirs"


@EVERY_STORE
def test_a_store_is_ready_if_an_append_would_be_taken(store: Store) -> None:
    assert store.refusing() == {}

    assert store.append(secrets.token_bytes(16), DAY, b"entry", 1)


def test_a_store_without_the_function_library_is_not_ready(
    store: RedisStorage, server: Connection
) -> None:
    for node in server.nodes():
        node.call("FUNCTION", "FLUSH")

    refusing = store.refusing().values()

    assert [type(failure) for failure in refusing] == [NotPreparedError] * store.shards
    store.prepare()  # the server is shared with other tests


@pytest.mark.parametrize("server_kind", [REAL], indirect=True)
def test_a_store_that_is_out_of_memory_is_not_ready(
    store: RedisStorage, server: Connection
) -> None:
    server.call("CONFIG", "SET", "maxmemory", "1")
    try:
        refusing = store.refusing().values()
        assert [type(failure) for failure in refusing] == [StorageFullError] * store.shards
        with pytest.raises(StorageFullError):
            store.append(secrets.token_bytes(16), DAY, b"entry", 1)
    finally:
        server.call("CONFIG", "SET", "maxmemory", "0")


def test_a_late_start_does_not_replace_a_later_library(
    store: RedisStorage, server: Connection
) -> None:
    later = "redis.register_function('hearsay_version', function() return 999 end)"
    for node in server.nodes():
        node.call("FUNCTION", "LOAD", "REPLACE", f"#!lua name=hearsay\n{later}")
    try:
        store.prepare()

        versions = [node.call("FCALL", "hearsay_version", 0) for node in server.nodes()]
        assert set(versions) == {999}
    finally:
        for node in server.nodes():
            node.call("FUNCTION", "FLUSH")  # the server is shared with other tests
        store.prepare()


def test_the_library_and_its_loader_agree_on_version_and_group() -> None:
    text = files("collector.storage").joinpath("hearsay.lua").read_text(encoding="utf-8")

    assert f"local VERSION = {LIBRARY_VERSION}\n" in text
    assert f"local GROUP = '{GROUP}'\n" in text


NO_METRICS: dict[bytes, Metric] = {}
OLD, ALSO_OLD, NEW = (Cell(METRIC, 3, ""), Cell(METRIC, 3, "a=b", 2), Cell(METRIC, 5, ""))


@pytest.fixture
def desk(server: Connection, keys: Keys) -> RedisInspection:
    return RedisInspection(server, keys)


def fold(store: RedisStorage, shard: int, cells: dict[Cell, int]) -> None:
    """Append and fold one upload with so many reports of each cell, all of the first item."""
    upload_id = shard.to_bytes(8, "big") + secrets.token_bytes(8)
    store.append(upload_id, SEALED, b"entry", sum(cells.values()))
    [claimed] = store.claim(shard, "any", 1, NOBODY_LEFT_IT)
    increments = {cell: [(0, n), (1, n)] for cell, n in cells.items()}
    assert store.fold(shard, [claimed.id], increments) == ()


def fill(store: RedisStorage) -> None:
    for shard in range(store.shards):
        fold(store, shard, {OLD: 7, ALSO_OLD: 2, NEW: 4})


def prune(desk: RedisInspection, epoch: int = 3) -> int:
    desk.mark(METRIC, 4)
    members = [member_of(OLD), member_of(ALSO_OLD)]
    return sum(desk.prune(shard, METRIC, epoch, members) for shard in range(desk.shards))


def test_a_pruned_epoch_is_gone_and_its_reports_stay_in_the_counts(
    store: RedisStorage, desk: RedisInspection
) -> None:
    fill(store)

    deleted, again = prune(desk), prune(desk)

    assert (deleted, again) == (2 * store.shards, 0)
    assert tallies(store, METRIC, range(9)) == {NEW: [pack(4, 4)] * store.shards}
    assert store.pruned([METRIC, bytes(6)]) == desk.marks() == {METRIC: 4}
    assert [(one.folded.reports, one.pruned_reports) for one in store.counters()] == [(13, 9)] * (
        store.shards
    )
    assert list(fsck(desk, NO_METRICS)) == []


def test_a_report_that_comes_after_its_epoch_was_pruned_is_counted_and_brings_nothing_back(
    store: RedisStorage, desk: RedisInspection
) -> None:
    fill(store)
    prune(desk)

    fold(store, 0, {OLD: 3, NEW: 2})

    assert tallies(store, METRIC, [3]) == {}
    first, *_ = store.counters()
    assert (first.folded.reports, first.pruned_reports, first.held_reports) == (18, 12, 6)
    assert list(fsck(desk, NO_METRICS)) == []


def test_nothing_is_deleted_of_an_epoch_that_is_not_marked(
    store: RedisStorage, desk: RedisInspection
) -> None:
    """Otherwise a late report would bring a part of it back."""
    fill(store)
    desk.mark(METRIC, 4)

    desk.mark(METRIC, 2)

    assert desk.marks() == {METRIC: 4}
    with pytest.raises(ValueError, match="epoch: must be marked"):
        desk.prune(0, METRIC, 5, [member_of(NEW)])
    assert tallies(store, METRIC, [5]) == {NEW: [pack(4, 4)] * store.shards}


def test_counts_beyond_what_a_double_holds_are_pruned_to_the_last_report(
    store: RedisStorage, desk: RedisInspection
) -> None:
    """Scripts of the store count in doubles, which are not exact from 2^53 on."""
    huge = 2**60 + 1
    fold(store, 0, {OLD: huge, NEW: 1})

    prune(desk)

    first, *_ = store.counters()
    assert (first.pruned_reports, first.held_reports) == (huge, 1)


def test_an_epoch_that_is_marked_and_still_there_is_found(
    store: RedisStorage, desk: RedisInspection
) -> None:
    """Somebody died between mark and deletion; nobody reads it, and the next run deletes it."""
    fill(store)
    desk.mark(METRIC, 4)

    found = [str(one) for one in fsck(desk, NO_METRICS)]

    assert len(found) == 2 * store.shards
    assert all("marked as pruned" in one and "hearsay prune" in one for one in found)


def test_what_is_pruned_is_not_restored_from_an_archive(
    store: RedisStorage, desk: RedisInspection, server: Connection, keys: Keys
) -> None:
    queue = RedisArchiveQueue(server, keys)
    desk.mark(METRIC, 4)

    steps = [queue.restore(0, cell, [(0, 2)], cell.segment + "x") for cell in (OLD, NEW)]

    assert steps == [None, True]
    assert tallies(store, METRIC, range(9)) == {NEW: [pack(2)]}


def test_a_loss_is_accepted_only_as_it_was_found(
    store: RedisStorage, desk: RedisInspection, server: Connection, keys: Keys
) -> None:
    """What is folded between the look and the step would be counted as lost, too."""
    fill(store)
    then, *_ = desk.counters()
    missing = [OLD]

    there = desk.lose(0, then, missing, 7)
    server.call("DEL", keys.tally(0, OLD))
    fold(store, 0, {NEW: 1})
    moved = desk.lose(0, then, missing, 7)
    accepted = desk.lose(0, desk.counters()[0], missing, 7)

    assert (there, moved, accepted) == (False, False, True)
    assert desk.counters()[0].lost_reports == 7
    assert list(fsck(desk, NO_METRICS)) == []
