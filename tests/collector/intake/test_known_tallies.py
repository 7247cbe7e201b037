"""A table of known tallies knows what was added last, and nothing that was not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from collector.core.cells import Cell
from collector.intake.known_tallies import LEAST_SIZE, MOST_SIZE, KnownTallies

SHARDS, METRICS, DAYS, SEGMENTS = 4, 200, 14, 12
PLACES = [
    (shard, Cell(bytes([metric]) * 6, 20_000 + day, f'{{"platform":"p{segment}"}}'))
    for shard, metric, day, segment in product(*map(range, (SHARDS, METRICS, DAYS, SEGMENTS)))
]
SMALL = 1 << 14  # bytes: 2,048 places


def test_a_large_registry_is_known_whole_after_a_second_look() -> None:
    """All 134,400 tallies, in 16 bytes each; what the table forgot while it grew is asked again."""
    known = KnownTallies()
    assert not any(known.has(place[0], place[1:]) for place in PLACES)
    for place in PLACES * 2:
        known.add(*place)

    forgotten = sum(not known.has(place[0], place[1:]) for place in PLACES)

    assert forgotten <= len(PLACES) // 200
    assert LEAST_SIZE < known.size <= 16 * len(PLACES) <= MOST_SIZE


@pytest.mark.parametrize(
    "other",
    [
        lambda shard, cell: (shard + 1, cell),
        lambda shard, cell: (shard, cell._replace(epoch=cell.epoch + 1)),
        lambda shard, cell: (shard, cell._replace(metric=b"other.")),
        lambda shard, cell: (shard, cell._replace(segment="")),
    ],
    ids=["shard", "epoch", "metric", "segment"],
)
def test_a_tally_is_known_by_all_that_names_it(
    other: Callable[[int, Cell], tuple[int, Cell]],
) -> None:
    known = KnownTallies()
    known.add(*PLACES[0])

    shard, cell = other(*PLACES[0])

    assert known.has(PLACES[0][0], PLACES[0][1:])
    assert not known.has(shard, [cell])
    assert not known.has(shard, [PLACES[0][1], cell])


def test_what_is_used_is_kept_while_others_come_and_go() -> None:
    """Not what came first: those are the popular ones.

    A bucket that meets more new ones than half its places before it is used again forgets one: 0.05
    of the 200 in a run, so more than ten in less than one run of 10**20.
    """
    known, popular = KnownTallies(SMALL, SMALL), PLACES[:200]
    for place in popular:
        known.add(*place)

    for number, place in enumerate(PLACES[200:20_000]):
        known.add(*place)
        shard, *cells = popular[number % len(popular)]
        known.has(shard, cells)

    kept = sum(known.has(place[0], place[1:]) for place in popular)

    assert kept >= len(popular) - 10
    assert known.size == SMALL


def test_a_table_that_may_not_grow_forgets_and_is_no_larger() -> None:
    known = KnownTallies(SMALL, 2 * SMALL)
    for place in PLACES:
        known.add(*place)

    assert known.size == 2 * SMALL
    assert 0 < sum(known.has(place[0], place[1:]) for place in PLACES) <= 2 * SMALL // 8
    known.clear()
    assert not any(known.has(place[0], place[1:]) for place in PLACES)
