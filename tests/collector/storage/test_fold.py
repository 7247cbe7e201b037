"""Fold: all or nothing, and exact."""

from __future__ import annotations

import pytest

from collector.core.cells import Cell
from collector.core.errors import ClassEndedError, TallyOverflowError
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.store.servers import EVERY_STORE
from tests.support.store.stored import (
    CELL,
    METRIC,
    Store,
    pack,
    queue_one,
    queue_one_in,
    tallies,
    total,
)


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
