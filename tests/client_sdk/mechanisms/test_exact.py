"""The arithmetic of channels: bounds lie on the right side of the truth, and close to it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from client_sdk.mechanisms._exact import (
    ceil_to_grid,
    exp_ceil,
    exp_floor,
    floor_to_grid,
    ln_ceil,
    parse_epsilon,
)
from tests.support.enumeration import exp_below

NARROW = Fraction(1, 10**89)  # relative


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 100), Fraction(1), Fraction(50, 7), 16, 64])
def test_e_to_the_x_lies_between_its_two_bounds(x: Fraction) -> None:
    exact = exp_below(Fraction(x))

    low, high = exp_floor(Fraction(x)), exp_ceil(Fraction(x))

    assert low < exact < high
    assert (high - low) / exact < NARROW


@pytest.mark.parametrize(
    "ratio", [Fraction(1), Fraction(3, 2), Fraction(10**6, 7), Fraction(10**25)]
)
def test_the_logarithm_is_never_understated(ratio: Fraction) -> None:
    bound = ln_ceil(ratio)

    assert exp_below(bound) >= ratio
    assert exp_below(bound - Fraction(2, 10**80)) < ratio or ratio == 1


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(5, 8), Fraction(0), Fraction(1)])
def test_the_grid_rounds_to_the_neighbours_of_a_probability(p: Fraction) -> None:
    low, high = floor_to_grid(p, 8), ceil_to_grid(p, 8)

    assert low <= p <= high
    assert high - low == (0 if p * 256 % 1 == 0 else Fraction(1, 256))
    assert (low * 256).denominator == (high * 256).denominator == 1


def test_parse_epsilon_reads_the_decimal_and_not_the_double() -> None:
    assert parse_epsilon(0.1) == parse_epsilon("0.1") == Fraction(1, 10)
    assert parse_epsilon(16) == 16
