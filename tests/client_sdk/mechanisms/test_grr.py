"""Facts about generalized randomized response."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from client_sdk.mechanisms.items.grr import GRR
from tests.support.enumeration.seeded import SeededRandomness


def second_implementation(p: Fraction, k: int, value: int, stream: Iterator[int]) -> int:
    """Return the item reported, from the byte layout of ``SeededRandomness`` alone."""

    def uniform(n: int) -> int:
        bits = (n - 1).bit_length()
        while True:
            size = -(-bits // 8)
            drawn = 0
            for _ in range(size):
                drawn = drawn * 256 + next(stream)
            drawn >>= 8 * size - bits
            if drawn < n:
                return drawn

    if uniform(p.denominator) < p.numerator:
        return value
    lie = uniform(k - 1)
    return lie if lie < value else lie + 1


@pytest.mark.parametrize("domain_size", [2, 3, 300])
def test_payloads_are_those_of_a_second_implementation(domain_size: int) -> None:
    mechanism = GRR("0.7", domain_size)
    randomness = SeededRandomness(b"twin")
    stream = iter(hashlib.shake_256(b"twin").digest(20_000))
    values = [i % domain_size for i in range(300)]

    payloads = [int.from_bytes(mechanism.randomize(v, randomness), "big") for v in values]

    p = mechanism.channel.p
    assert payloads == [second_implementation(p, domain_size, v, stream) for v in values]


@pytest.mark.parametrize(
    ("domain_size", "payload_size"),
    [(2, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 4), (1 << 24, 4)],
)
def test_the_payload_is_as_wide_as_the_largest_item_needs(
    domain_size: int, payload_size: int
) -> None:
    mechanism = GRR("5", domain_size)

    last = (domain_size - 1).to_bytes(payload_size, "big")

    assert mechanism.payload_size == payload_size
    assert mechanism.reason(last) is None
    assert np.flatnonzero(mechanism.tally(last, np)).tolist() == [domain_size - 1]


def test_two_items_are_warners_coin() -> None:
    mechanism = GRR("1", 2)

    totals, _ = mechanism.debias(np.array([300, 700]), 1000, np)

    ratio = 2.718281828459045
    share = 0.5 + (0.7 - 0.5) * (ratio + 1) / (ratio - 1)
    assert totals[1] == pytest.approx(1000 * share)
    assert totals.sum() == pytest.approx(1000)


def test_the_truth_is_never_certain_at_the_largest_epsilon() -> None:
    channel = GRR("16", 2).channel

    assert 0 < channel.q < Fraction(1, 1_000_000)
    assert channel.p + channel.q == 1
