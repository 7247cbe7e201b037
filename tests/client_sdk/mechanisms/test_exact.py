"""The arithmetic of channels: bounds lie on the right side of the truth, and close to it."""

from __future__ import annotations

from fractions import Fraction

import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms.exact import (
    LEAST_EPSILON,
    ceil_to_grid,
    exp_ceil,
    exp_floor,
    floor_to_grid,
    ln_ceil,
    parse_epsilon,
    spent_by,
)
from tests.support.enumeration.enumeration import exp_below

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


@pytest.mark.parametrize(
    "epsilon", ["1_0", " 1 ", "1 ", "\n1", "１", "٣", "+1", ".5", "1.", "1e", "e1", "1e0000"]
)
def test_parse_epsilon_refuses_what_a_registry_would_not_take(epsilon: str) -> None:
    """Only ASCII digits, one point and an exponent are read, as other languages read them too."""
    with pytest.raises(InvalidParameterError):
        parse_epsilon(epsilon)


def test_parse_epsilon_ends_at_the_unit_of_the_ledger() -> None:
    """An epsilon below 1e-9 would be charged more than it is."""
    assert parse_epsilon("1e-9") == parse_epsilon("0.000000001") == LEAST_EPSILON
    for epsilon in ("9e-10", "1e-90", "0.0000000009", Fraction(1, 10**10)):
        with pytest.raises(InvalidParameterError):
            parse_epsilon(epsilon)


def test_a_ratio_above_e_to_the_epsilon_is_refused_and_never_cut_to_it() -> None:
    """What is spent is a bound of the channel, or there is no number."""
    epsilon, limit = Fraction(1), exp_floor(Fraction(1))

    assert spent_by(limit, epsilon) == epsilon
    assert spent_by(Fraction(2), epsilon) < epsilon
    for ratio in (exp_ceil(epsilon), limit * (1 + Fraction(1, 10**100)), Fraction(100)):
        with pytest.raises(InvalidParameterError, match="at least what the channel spends"):
            spent_by(ratio, epsilon)


def test_parse_epsilon_reads_the_decimal_and_not_the_double() -> None:
    assert parse_epsilon(0.1) == parse_epsilon("0.1") == Fraction(1, 10)
    assert parse_epsilon(16) == 16
