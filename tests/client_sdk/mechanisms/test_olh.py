"""Facts about local hashing: the collision chance is exact, and both tallies are one."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from client_sdk.mechanisms.olh import OLH, PRIME
from tests.support.seeded import SeededRandomness


@pytest.mark.parametrize(("prime", "buckets"), [(5, 2), (7, 3), (7, 7), (11, 4), (5, 9)])
def test_the_collision_chance_is_counted_over_every_seed_and_pair_of_items(
    prime: int, buckets: int
) -> None:
    mechanism = OLH("1", prime, buckets=buckets, prime=prime)
    seeds = list(product(range(prime), repeat=2))

    for x, y in product(range(prime), repeat=2):
        same = sum((a * x + b) % prime % buckets == (a * y + b) % prime % buckets for a, b in seeds)
        assert Fraction(same, len(seeds)) == (1 if x == y else mechanism.collision)


def test_the_collision_chance_of_the_shipped_prime_is_close_to_that_of_a_random_function() -> None:
    mechanism = OLH("2", 1000)

    assert 0 < mechanism.collision - Fraction(1, mechanism.buckets) < Fraction(1, 10**14)


@pytest.mark.parametrize("reports", [9, 10, 11, 20_000])
def test_few_and_many_reports_are_tallied_as_their_supports(reports: int) -> None:
    mechanism = OLH("1.5", 10)
    randomness = SeededRandomness(b"hash")
    rows = [mechanism.randomize(i % 10, randomness) for i in range(reports)]
    supported = Counter(item for row in rows for item in mechanism.supports(row))

    tally = mechanism.tally(b"".join(rows), np)

    assert tally.dtype == np.int64
    assert tally.tolist() == [supported[item] for item in range(10)]


def test_the_largest_report_of_the_most_buckets_fits_eight_bytes() -> None:
    mechanism = OLH("16", PRIME // 16)

    last = (mechanism.reports - 1).to_bytes(8, "big")

    assert mechanism.buckets == 256
    assert mechanism.payload_size == 8
    assert mechanism.reason(last) is None
    assert mechanism.reason(b"\xff" * 8) == "seed_out_of_range"
