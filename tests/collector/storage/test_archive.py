"""Laws of what a fold keeps for the archive: with the fold or not at all."""

from __future__ import annotations

import pytest

from collector.core.cells import Cell
from collector.core.errors import ClassEndedError, TallyOverflowError
from collector.storage.archive_queue import RedisArchiveQueue
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import ArchivedFold
from tests.support.store.servers import profile_of
from tests.support.store.stored import CELL, METRIC, queue_one, total

LATE = Cell(METRIC, 7, "a:b", 3)


@pytest.fixture
def keeping(store: RedisStorage, server: Connection, keys: Keys, server_kind: str) -> RedisStorage:
    """The store as a worker with an archive sees it."""
    return RedisStorage(server, keys, profile_of(server_kind), archived=True)


@pytest.fixture
def queue(server: Connection, keys: Keys) -> RedisArchiveQueue:
    return RedisArchiveQueue(server, keys)


def kept(queue: RedisArchiveQueue) -> list[ArchivedFold]:
    return [
        fold for shard in range(queue.shards) for fold in queue.waiting(shard, queue.last(shard))
    ]


def test_a_fold_keeps_the_entries_it_folds_and_their_classes(
    keeping: RedisStorage, queue: RedisArchiveQueue
) -> None:
    """With the day of the fold, by the store's clock."""
    shard, entry_id = queue_one(keeping, b"an entry\n of bytes \0\xff")
    day = keeping.now(shard) // 86_400

    keeping.fold(shard, [entry_id], {CELL: [(0, 1), (1, 1)], LATE: [(0, 1)]})

    [fold] = kept(queue)
    assert fold.entries == (b"an entry\n of bytes \0\xff",)
    assert fold.classes == {(METRIC, 0): 0, (METRIC, 7): 3}
    assert fold.day in (day, day + 1)
    assert total(keeping) == (1, [1])


def test_a_fold_of_many_entries_keeps_all_of_them_in_order(
    keeping: RedisStorage, queue: RedisArchiveQueue
) -> None:
    """Also of more than one command can take."""
    shard = 0
    for number in range(1_100):
        keeping.append(bytes(8) + number.to_bytes(8, "big"), 30_000, str(number).encode(), 1)
    ids = [one.id for one in keeping.claim(shard, "one", 1_100, 0)]

    keeping.fold(shard, ids, {CELL: [(0, 1_100)]})

    entries = [entry for fold in kept(queue) for entry in fold.entries]
    assert entries == [str(number).encode() for number in range(1_100)]
    assert [one.archived for one in queue.archiving()][shard] == 1_100


def test_a_fold_that_is_refused_keeps_nothing(
    keeping: RedisStorage, queue: RedisArchiveQueue
) -> None:
    """Be it late, done by somebody else, or about to overflow."""
    shard, entry_id = queue_one(keeping)

    missing = keeping.fold(shard, [entry_id, "1-999"], {CELL: [(0, 1)]})
    with pytest.raises(ClassEndedError):
        keeping.fold(shard, [entry_id], {CELL: [(0, 1)]}, ending=1)
    with pytest.raises(TallyOverflowError):
        keeping.fold(shard, [entry_id], {CELL: [(0, 1 << 62)]})

    assert missing == ("1-999",)
    assert kept(queue) == []
    assert all(one.waiting == one.archived == 0 for one in queue.archiving())


def test_a_repeated_fold_is_kept_once(keeping: RedisStorage, queue: RedisArchiveQueue) -> None:
    """As when its answer was lost."""
    shard, entry_id = queue_one(keeping)

    for _ in range(2):
        keeping.fold(shard, [entry_id], {CELL: [(0, 1)]})

    assert len(kept(queue)) == 1


def test_a_fold_without_archive_keeps_nothing_and_is_counted_apart(
    store: RedisStorage, queue: RedisArchiveQueue
) -> None:
    """So that a refold knows what cannot be in the archive."""
    shard, entry_id = queue_one(store)

    store.fold(shard, [entry_id], {CELL: [(0, 1)]})

    found = queue.archiving()[shard]
    assert (found.folded, found.archived, found.waiting) == (1, 0, 0)


def test_what_is_forgotten_is_gone_and_numbers_count_on(
    keeping: RedisStorage, queue: RedisArchiveQueue
) -> None:
    """Numbers are never used twice, or a file would stand for folds that it does not hold."""
    numbers: list[int] = []
    for _ in range(3):
        keeping.append(bytes(8) + len(numbers).to_bytes(8, "big"), 30_000, b"entry", 1)
        [claimed] = keeping.claim(0, "one", 1, 0)
        keeping.fold(0, [claimed.id], {CELL: [(0, 1)]})
        numbers.append(queue.last(0))
        queue.forget(0, numbers[-1])

    assert numbers == list(range(numbers[0], numbers[0] + 3))
    assert numbers[0] > 0
    assert (queue.last(0), kept(queue)) == (0, [])


@pytest.mark.usefixtures("keeping")
@pytest.mark.parametrize("sign", [1, -1])
def test_a_restored_number_is_below_the_bound_of_a_fold(
    queue: RedisArchiveQueue, sign: int
) -> None:
    with pytest.raises(TallyOverflowError):
        queue.restore(0, CELL, [(0, 1), (1, sign << 62)], "token")

    assert queue.restore(0, CELL, [(0, 1), (1, (1 << 62) - 1)], "token") is not None


def test_a_store_has_one_archive_for_life(queue: RedisArchiveQueue) -> None:
    """One that holds files already is none of a store that knows none."""
    refused = queue.bind("old", fresh=False)
    bound = queue.bind("new", fresh=True)
    others = queue.bind("another", fresh=True)

    assert (refused, bound, others, queue.bind("new", fresh=False)) == (False, True, False, True)
