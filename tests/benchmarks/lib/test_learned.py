"""The fast device of the benchmark of rounds: the shipped mechanism's reports, byte for byte."""

from __future__ import annotations

import pytest

from benchmarks.lib.learned import FastCodebook
from client_sdk.mechanisms import UNIT
from client_sdk.mechanisms.numbers.codebook import Codebook
from tests.support.enumeration.seeded import SeededRandomness


@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_products_by_numpy_give_the_payloads_of_the_shipped_mechanism(epsilon: str) -> None:
    """Same draws, same bytes; also of vectors whose words have equal products."""
    fast, shipped = FastCodebook(epsilon, 5), Codebook(epsilon, 5)
    values = [(UNIT // 3, -UNIT // 2, 7, 0, -1), (UNIT, 0, 0, 0, 0), (0, 0, 0, 0, 0)]

    for value in values:
        ours, theirs = SeededRandomness(b"same"), SeededRandomness(b"same")
        for _ in range(15):
            assert fast.randomize(value, ours) == shipped.randomize(value, theirs)
