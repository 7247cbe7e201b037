"""Facts about the block design: it is balanced, and ``auto`` takes it where it errs less."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from client_sdk.mechanisms.items.block_design import BlockDesign
from client_sdk.mechanisms.items.subset_selection import SubsetSelection


def blocks(mechanism: BlockDesign) -> list[list[int]]:
    """Return the items of every block."""
    size = mechanism.payload_size
    payloads = (number.to_bytes(size, "big") for number in range(mechanism.payload_count))
    return [sorted(mechanism.supports(payload)) for payload in payloads]


@pytest.mark.parametrize(("prime", "size"), [(2, 1), (3, 1), (5, 2), (7, 3), (7, 6), (11, 4)])
def test_any_two_points_are_in_the_same_number_of_blocks(prime: int, size: int) -> None:
    """So many: blocks times pairs of a block over all pairs."""
    every = blocks(BlockDesign("1", prime, block_size=size))
    pairs = Counter(pair for block in every for pair in combinations(block, 2))
    points = Counter(point for block in every for point in block)

    assert {len(block) for block in every} == {size}
    assert set(points.values()) == {size * (prime - 1)}
    assert all(pairs[pair] == size * (size - 1) for pair in combinations(range(prime), 2))


@pytest.mark.parametrize(("epsilon", "prime"), [("0.5", 11), ("2", 61), ("8", 24_001)])
def test_the_channel_is_that_of_subset_selection_among_as_many_points(
    epsilon: str, prime: int
) -> None:
    mechanism, subsets = BlockDesign(epsilon, prime), SubsetSelection(epsilon, prime)

    assert mechanism.block_size == subsets.subset_size
    assert mechanism.channel == subsets.channel


def test_the_largest_products_of_a_fold_fit_their_integers() -> None:
    """The last block of the largest domain, at three places."""
    mechanism = BlockDesign("16", 1 << 24, block_size=3)
    last = (mechanism.payload_count - 1).to_bytes(mechanism.payload_size, "big")

    tally = mechanism.tally(last, np)

    assert mechanism.payload_size == 8
    assert np.flatnonzero(tally).tolist() == sorted(mechanism.supports(last))


@pytest.mark.parametrize(
    ("epsilon", "items", "block_size"), [("4", 1_009, 18), ("7", 10_007, 9), ("1", 211, 57)]
)
def test_groups_of_items_vary_as_in_subset_selection(
    epsilon: str, items: int, block_size: int
) -> None:
    """Of every third item, of ranges, and of weights that rise: the means over all devices."""
    mechanism = BlockDesign(epsilon, items)
    weights = np.zeros((4, items))
    weights[0, ::3] = weights[1, : items // 4] = weights[2, 5:9] = 1
    weights[3] = np.arange(items) / items

    subsets = SubsetSelection(epsilon, items).sum_laws(weights, np)
    laws = mechanism.sum_laws(weights, np)

    assert mechanism.block_size == block_size
    assert laws is not None
    assert subsets is not None
    assert laws.mean(axis=1) == pytest.approx(subsets.mean(axis=1), rel=0.05)
