"""Facts about local hashing: the collision chance is exact, and reports fit their bytes."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from benchmarks.accuracy.accuracy import optimum
from client_sdk.mechanisms.items.olh import OLH, PRIME


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


@pytest.mark.parametrize(
    ("epsilon", "buckets"), [("5", 149), ("6", 404), ("8", 2982), ("10", 22027)]
)
def test_the_buckets_follow_e_to_the_epsilon_and_leave_64_bits_to_the_seed(
    epsilon: str, buckets: int
) -> None:
    """Capped at 256, the error at ε = 8 would be 3.5 times the optimum."""
    mechanism = OLH(epsilon, 200_000)

    assert mechanism.buckets == buckets
    assert (mechanism.prime == PRIME) == (buckets <= 256)
    assert mechanism.predict(1) ** 2 < 1.06 * optimum(float(epsilon), 200_000)
    assert OLH("8", 200_000, buckets=256).predict(1) ** 2 > 3 * optimum(8, 200_000)


@pytest.mark.parametrize("domain_size", [2, 10_000, PRIME // 16])
@pytest.mark.parametrize("epsilon", ["5", "8", "16"])
def test_the_largest_report_of_the_best_buckets_fits_eight_bytes(
    epsilon: str, domain_size: int
) -> None:
    mechanism = OLH(epsilon, domain_size)

    last = (mechanism.payload_count - 1).to_bytes(8, "big")

    assert mechanism.payload_size == 8
    assert mechanism.prime >= domain_size
    assert mechanism.reason(last) is None
    assert mechanism.reason(b"\xff" * 8) == "seed_out_of_range"
