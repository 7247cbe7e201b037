"""What is pruned goes by whole epochs, is counted, and does not come back by a late report."""

from __future__ import annotations

import secrets

import pytest

from client_sdk.registry.metric import Metric
from collector.core.cells import Cell
from collector.storage.archive_queue import RedisArchiveQueue
from collector.storage.connection import Connection
from collector.storage.inspection import RedisInspection
from collector.storage.keys import Keys, member_of
from collector.storage.redis import RedisStorage
from collector.worker.fsck import fsck
from tests.support.store.stored import DAY as SEALED
from tests.support.store.stored import METRIC, NOBODY_LEFT_IT, pack, tallies

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
