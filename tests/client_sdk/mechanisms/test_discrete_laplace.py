"""Facts about discrete Laplace noise: its exact law at every epsilon, its clamp and its limits."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms.numbers.discrete_laplace import (
    TAIL,
    DiscreteLaplace,
    bernoulli_exp,
    discrete_laplace,
)
from tests.support.enumeration.enumeration import distribution
from tests.support.enumeration.runs import RunPath, one_pass_law
from tests.support.enumeration.seeded import SeededRandomness

EXACT: Final = Context(prec=60)
CLOSE: Final = Decimal("1e-13")  # of probability; the mass that stays unreached is below it
SCALES: Final = [(1, 1), (1, 16), (3, 2), (10, 1), (21, 5), (30, 1)]  # t and s


@cache
def noise_law(t: int, s: int) -> dict[int, Fraction]:
    """Return the law of the noise of scale t/s, up to the mass of very long runs."""
    law = one_pass_law(lambda randomness: discrete_laplace(t, s, randomness), Fraction(1, 10**18))
    return {int(str(noise)): mass for noise, mass in law.pmf.items()}


def textbook(t: int, s: int, noise: int) -> Decimal:
    """Return (1-a)/(1+a) a^|x| with a = e^(-s/t)."""
    a = EXACT.exp(EXACT.divide(Decimal(-s), Decimal(t)))
    return EXACT.multiply(EXACT.divide(1 - a, 1 + a), EXACT.power(a, abs(noise)))


@pytest.mark.parametrize(("t", "s"), SCALES)
def test_the_noise_has_exactly_the_textbook_law(t: int, s: int) -> None:
    law = noise_law(t, s)

    total = sum(law.values(), Fraction(0))
    assert abs(total - 1) < Fraction(CLOSE)
    for noise, mass in law.items():
        assert (
            abs(Decimal(mass.numerator) / Decimal(mass.denominator) - textbook(t, s, noise)) < CLOSE
        )


@pytest.mark.parametrize(("t", "s"), SCALES)
def test_the_noise_is_exactly_symmetric(t: int, s: int) -> None:
    law = noise_law(t, s)

    assert law == {-noise: mass for noise, mass in law.items()}


def test_noise_that_counts_minus_zero_would_not_have_the_textbook_law() -> None:
    law = noise_law(1, 1)

    doubled = {noise: mass * (2 if noise == 0 else 1) for noise, mass in law.items()}
    zero = doubled[0] / sum(doubled.values())
    assert abs(Decimal(zero.numerator) / Decimal(zero.denominator) - textbook(1, 1, 0)) > CLOSE


@pytest.mark.parametrize(("n", "d"), [(0, 1), (1, 1), (1, 2), (99, 100), (7, 101)])
def test_the_coin_is_e_to_the_minus_gamma(n: int, d: int) -> None:
    law = distribution(lambda rnd: bernoulli_exp(n, d, rnd), Fraction(1, 10**40))

    exact = Fraction(EXACT.exp(EXACT.divide(Decimal(-n), Decimal(d))))
    assert law.rest < Fraction(1, 10**40)
    assert law.pmf[True] - Fraction(1, 10**50) <= exact <= law.pmf[True] + law.rest


@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 2), (99, 100)])
def test_a_run_taken_as_one_choice_has_the_law_of_its_tosses(n: int, d: int) -> None:
    tossed = distribution(lambda rnd: bernoulli_exp(n, d, rnd), Fraction(1, 10**40))

    chosen = distribution(lambda rnd: bernoulli_exp(n, d, rnd), Fraction(1, 10**40), RunPath)

    for outcome in (True, False):
        assert abs(tossed.pmf[outcome] - chosen.pmf[outcome]) <= tossed.rest + chosen.rest


def test_an_extreme_report_is_clamped_forty_scales_beyond_the_range() -> None:
    mechanism = DiscreteLaplace("0.5", 11)

    lowest, highest = bytes([0, 0]), (mechanism.payload_count - 1).to_bytes(2, "big")

    assert mechanism.margin == 20 * TAIL
    assert mechanism.decode(lowest) == -20 * TAIL
    assert mechanism.decode(highest) == 10 + 20 * TAIL
    assert mechanism.reason(mechanism.payload_count.to_bytes(2, "big")) == "number_out_of_range"


def test_a_position_between_two_grid_points_goes_to_either_in_proportion() -> None:
    mechanism = DiscreteLaplace("1", 5)

    law = distribution(lambda rnd: mechanism.round_to_steps(Fraction(11, 4), mechanism.last, rnd))

    assert law.pmf == {2: Fraction(1, 4), 3: Fraction(3, 4)}


def test_a_grid_whose_noise_would_not_fit_a_tally_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"^domain_size=.*take a larger step"):
        DiscreteLaplace("0.001", 1 << 20)


def test_95_percent_intervals_cover_94_to_96_percent() -> None:
    mechanism, replications = DiscreteLaplace("1", 101), 20_000
    positions = np.repeat([0, 30, 100], 60)
    dice = np.random.default_rng(11)
    stop = 1 - np.exp(-1 / float(mechanism.scale))
    shape = (replications, len(positions))
    reports = positions + dice.geometric(stop, shape) - dice.geometric(stop, shape)
    squares = (reports**2).sum(axis=1)  # below 2^32, so the high half stays 0
    tallies = np.stack([reports.sum(axis=1), squares, np.zeros_like(squares)], axis=1)

    found = [mechanism.debias(tally, len(positions), np) for tally in tallies]

    hits = sum(abs(t[0] - positions.sum()) <= 1.959964 * v[0] ** 0.5 for t, v in found)
    assert 0.94 <= hits / replications <= 0.96


def test_the_widest_accepted_grid_still_fits_the_tally() -> None:
    mechanism = DiscreteLaplace("1", (1 << 24) - 1)

    payload = mechanism.randomize(Fraction(mechanism.top), SeededRandomness(b"wide"))

    assert mechanism.payload_size == 4
    assert abs(mechanism.decode(payload)) < 1 << 31
