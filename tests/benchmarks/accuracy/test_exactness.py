"""The table of what channels leave of ε is what its command prints, and its bar is met."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import pytest

from benchmarks.accuracy.exactness import bits_left, exceeds, met
from client_sdk.mechanisms import Channel
from client_sdk.mechanisms.items.grr import GRR


class _RoundedUp(GRR):
    """Planted fault: p is one step of the grid too large, and nobody refuses it."""

    def validate(self) -> None:
        return None

    @cached_property
    def channel(self) -> Channel:
        p = super().channel.p + Fraction(1, 1 << 128)
        return Channel(p, (1 - p) / (self.domain_size - 1))


def test_no_channel_exceeds_epsilon_or_leaves_more_than_the_bar() -> None:
    """The likelihood ratio never exceeds e^ε, and at most 2^-40 nats of ε are left."""
    assert met()


@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_a_threshold_rounded_up_by_one_step_exceeds(epsilon: str) -> None:
    """The check sees 2^-128, though ``spent`` is never shown above epsilon."""
    assert not exceeds(GRR(epsilon, 16))
    assert exceeds(_RoundedUp(epsilon, 16))


@pytest.mark.parametrize("bits", [0, 1, 7, 104])
def test_the_bits_left_are_the_largest_power_of_two_above(bits: int) -> None:
    """Exact powers keep their own exponent; anything more drops to the next."""
    assert bits_left(Fraction(1, 1 << bits)) == bits
    assert bits_left(Fraction(3, 1 << (bits + 2))) == bits
    assert bits_left(Fraction(5, 1 << (bits + 2))) == bits - 1
