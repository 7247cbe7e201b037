"""Facts about dBitFlip: the estimate and its variance against the enumerated law."""

from __future__ import annotations

import math

import numpy as np
import pytest

from client_sdk.mechanisms.deployed.dbitflip import DBitFlip
from client_sdk.mechanisms.items.sue import SUE
from tests.support.enumeration.linear import moments
from tests.support.enumeration.seeded import SeededRandomness

every_small = pytest.mark.parametrize(
    "small",
    [DBitFlip(e, k, sampled=d) for e in ("0.5", "2", "8") for k, d in ((2, 1), (5, 2), (4, 4))],
    ids=lambda m: f"{m.epsilon}-{m.domain_size}-{m.sampled}",
)


@every_small
def test_the_estimate_is_unbiased(small: DBitFlip) -> None:
    for value in range(small.domain_size):
        mean, _ = moments(small, value)

        assert mean == pytest.approx(
            [float(i == value) for i in range(small.domain_size)], abs=1e-9
        )


@every_small
def test_the_variance_is_that_of_the_enumerated_law(small: DBitFlip) -> None:
    p, q = float(small.channel.p), float(small.channel.q)
    spread = small.domain_size / small.sampled
    others = spread * q * (1 - q) / (p - q) ** 2
    held = others + spread - 1

    _, variances = moments(small, 0)

    expected = [held] + [others] * (small.domain_size - 1)
    assert variances == pytest.approx(expected, rel=1e-9)
    assert small.predict(100) == pytest.approx(math.sqrt(np.mean(variances) / 100), rel=1e-9)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
def test_the_variance_of_an_item_nobody_holds_is_the_published_one(epsilon: str) -> None:
    mechanism = DBitFlip(epsilon, 32, sampled=4)
    root = math.exp(float(epsilon) / 2)

    _, variances = mechanism.debias(_tally_without_holders(mechanism, 32_000), 32_000, np)

    assert variances[-1] / 32_000 == pytest.approx(32 / 4 * root / (root - 1) ** 2, rel=1e-3)


def _tally_without_holders(mechanism: DBitFlip, n: int) -> np.ndarray:
    drawn = np.full(mechanism.domain_size, n * mechanism.sampled // mechanism.domain_size)
    ones = (drawn * float(mechanism.channel.q)).astype(int)  # rounded down: an estimate below 0
    return np.concatenate((drawn, ones))


def test_drawing_every_item_is_symmetric_unary_encoding() -> None:
    everything, sue = DBitFlip("2", 6, sampled=6), SUE("2", 6)

    assert everything.channel == sue.channel
    assert everything.predict(1000) == pytest.approx(sue.predict(1000))


def test_one_item_a_report_spends_its_epsilon_on_one_bit() -> None:
    single, two = DBitFlip("2", 6, sampled=1), DBitFlip("2", 6, sampled=2)

    assert float(single.channel.p) == pytest.approx(math.exp(2) / (math.exp(2) + 1))
    assert float(two.channel.p) == pytest.approx(math.exp(1) / (math.exp(1) + 1))


def test_the_tally_is_the_draws_and_the_ones_of_each_item() -> None:
    mechanism, randomness = DBitFlip("1", 9, sampled=3), SeededRandomness(b"tally")
    rows = [mechanism.randomize(i % 9, randomness) for i in range(500)]
    drawn, ones = [0] * 9, [0] * 9
    for row in rows:
        for cell in row:
            drawn[cell >> 1] += 1
            ones[cell >> 1] += cell & 1

    tally = mechanism.tally(b"".join(rows), np)

    assert tally.tolist() == drawn + ones
    assert sorted(x for row in rows for x in mechanism.supports(row)) == sorted(
        x for x, count in enumerate(ones) for _ in range(count)
    )
