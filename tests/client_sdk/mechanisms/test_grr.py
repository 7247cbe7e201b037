"""Facts about generalized randomized response."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from client_sdk.mechanisms.items.grr import GRR


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
