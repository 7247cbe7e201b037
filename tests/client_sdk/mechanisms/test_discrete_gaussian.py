"""Discrete noise, Gaussian and Laplace: its exact law, its limits, and how little will do."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
import pytest

from benchmarks.tables.numbers_table import analytic_sigma
from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms import load, names
from client_sdk.mechanisms.numbers.discrete_gaussian import (
    NOISE_UNIT,
    DiscreteGaussian,
    bernoulli_exp_any,
    discrete_gaussian,
    tail_loss,
)
from client_sdk.mechanisms.numbers.discrete_laplace import (
    TAIL,
    DiscreteLaplace,
    bernoulli_exp,
    discrete_laplace,
)
from tests.support.enumeration.coverage import covered
from tests.support.enumeration.enumeration import distribution, exp_below
from tests.support.enumeration.runs import RunPath, one_pass_law
from tests.support.enumeration.seeded import SeededRandomness

EXACT: Final = Context(prec=60)
CLOSE: Final = Decimal("1e-8")  # of probability; the mass that stays unreached is below it
VARIANCES: Final = [(1, 3), (1, 1), (5, 2), (9, 1)]  # n and d of σ^2


def weight(n: int, d: int, x: int) -> Decimal:
    """Return e^(-x^2/2σ^2)."""
    return EXACT.exp(EXACT.divide(Decimal(-x * x * d), Decimal(2 * n)))


def textbook(n: int, d: int) -> dict[int, Decimal]:
    """Return the law of the noise, summed over all that counts."""
    weights = {x: weight(n, d, x) for x in range(-100, 101)}
    total = sum(weights.values())
    return {x: EXACT.divide(w, total) for x, w in weights.items()}


@pytest.mark.parametrize(("n", "d"), VARIANCES)
def test_the_noise_has_exactly_the_textbook_law(n: int, d: int) -> None:
    law = one_pass_law(lambda rnd: discrete_gaussian(n, d, rnd), Fraction(1, 10**12))

    expected = textbook(n, d)
    assert law.rest < Fraction(CLOSE)
    assert len(law.pmf) > 4
    for noise, mass in law.pmf.items():
        found = Decimal(mass.numerator) / Decimal(mass.denominator)
        assert abs(found - expected[int(str(noise))]) < CLOSE


@pytest.mark.parametrize(("n", "d"), [(0, 1), (1, 2), (1, 1), (5, 2), (3, 1)])
def test_the_coin_is_e_to_the_minus_gamma_above_one_too(n: int, d: int) -> None:
    law = distribution(lambda rnd: bernoulli_exp_any(n, d, rnd), Fraction(1, 10**40), RunPath)

    exact = Fraction(EXACT.exp(EXACT.divide(Decimal(-n), Decimal(d))))
    assert abs(law.pmf[True] - exact) < Fraction(1, 10**38)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
@pytest.mark.parametrize("delta_exponent", [1, 6, 12])
def test_delta_is_a_sum_over_all_reports_of_what_exceeds_e_to_the_epsilon(
    epsilon: str, delta_exponent: int
) -> None:
    mechanism = DiscreteGaussian(epsilon, 5, delta_exponent=delta_exponent)
    noise, shift = mechanism.noise, mechanism.steps
    reach = range(-20 * mechanism.margin // 9, 20 * mechanism.margin // 9)
    ratio = EXACT.exp(EXACT.create_decimal(epsilon))

    over = (
        weight(noise, NOISE_UNIT, x) - ratio * weight(noise, NOISE_UNIT, x - shift) for x in reach
    )
    total = sum(weight(noise, NOISE_UNIT, x) for x in reach)
    delta = sum(max(Decimal(0), w) for w in over) / total

    bound = tail_loss(mechanism.epsilon, shift, noise)
    assert float(bound) == pytest.approx(float(delta), rel=1e-12)
    assert bound <= mechanism.delta


@pytest.mark.parametrize("epsilon", ["0.1", "1", "8", "16"])
@pytest.mark.parametrize("delta_exponent", [1, 6, 12])
def test_the_noise_is_the_least_on_its_grid_and_near_the_analytic_one(
    epsilon: str, delta_exponent: int
) -> None:
    mechanism = DiscreteGaussian(epsilon, 5, delta_exponent=delta_exponent)

    deviation = (mechanism.noise / NOISE_UNIT) ** 0.5 / mechanism.steps
    analytic = analytic_sigma(float(epsilon), 10.0**-delta_exponent)
    assert deviation == pytest.approx(analytic, rel=2e-3)
    with pytest.raises(InvalidParameterError, match=r"^noise=.*must be more for epsilon"):
        DiscreteGaussian(
            epsilon,
            5,
            delta_exponent=delta_exponent,
            steps=mechanism.steps,
            noise=mechanism.noise - 1,
        )


def test_a_smaller_shift_loses_less() -> None:
    losses = [tail_loss(Fraction(1), shift, 40 * NOISE_UNIT) for shift in range(1, 12)]

    assert losses == sorted(losses)
    assert losses[0] < losses[-1]


def test_delta_of_no_epsilon_at_all_is_the_distance_of_the_two_laws() -> None:
    tiny = Fraction(1, 10**30)

    law = textbook(9, 1)
    distance = sum(max(Decimal(0), p - law.get(x - 2, Decimal(0))) for x, p in law.items())
    assert float(tail_loss(tiny, 2, 9 * NOISE_UNIT)) == pytest.approx(float(distance))
    assert exp_below(tiny) <= 1 + 2 * tiny


def test_the_rounding_adds_little_to_the_noise() -> None:
    for epsilon in ("0.1", "1", "4", "16"):
        mechanism = DiscreteGaussian(epsilon, 101)
        assert mechanism.worst_variance <= 1.005 * mechanism.noise_variance


def test_parameters_that_are_pinned_make_the_same_mechanism() -> None:
    mechanism = DiscreteGaussian("1", 101, delta_exponent=5)

    assert DiscreteGaussian("1", 101, **mechanism.parameters) == mechanism
    assert set(mechanism.parameters) == {"delta_exponent", "steps", "noise"}


def test_95_percent_intervals_cover_94_to_96_percent() -> None:
    mechanism, replications = DiscreteGaussian("1", 101), 20_000
    steps = np.repeat([0, mechanism.steps], 60)
    law = {x: float(p) for x, p in textbook(mechanism.noise, NOISE_UNIT).items()}
    dice = np.random.default_rng(11)
    chances = np.array(list(law.values())) / sum(law.values())
    reports = steps + dice.choice(list(law), p=chances, size=(replications, len(steps)))
    squares = (reports**2).sum(axis=1)  # below 2^32, so the high half stays 0
    tallies = np.stack([reports.sum(axis=1), squares, np.zeros_like(squares)], axis=1)

    (share,) = covered(mechanism, tallies, len(steps), float(steps.sum() * mechanism.unit))

    assert 0.94 <= share <= 0.96


def test_a_mechanism_with_a_delta_is_never_taken_by_auto() -> None:
    loose = [name for name in names() if load(name)("1", 5).delta]

    assert loose == ["discrete_gaussian"]
    assert not any(load(name).automatic for name in loose)


VERY_CLOSE: Final = Decimal("1e-13")  # of probability; the mass that stays unreached is below it
SCALES: Final = [(1, 1), (1, 16), (3, 2), (10, 1), (21, 5), (30, 1)]  # t and s


@cache
def noise_law(t: int, s: int) -> dict[int, Fraction]:
    """Return the law of the noise of scale t/s, up to the mass of very long runs."""
    law = one_pass_law(lambda randomness: discrete_laplace(t, s, randomness), Fraction(1, 10**18))
    return {int(str(noise)): mass for noise, mass in law.pmf.items()}


def laplace_textbook(t: int, s: int, noise: int) -> Decimal:
    """Return (1-a)/(1+a) a^|x| with a = e^(-s/t)."""
    a = EXACT.exp(EXACT.divide(Decimal(-s), Decimal(t)))
    return EXACT.multiply(EXACT.divide(1 - a, 1 + a), EXACT.power(a, abs(noise)))


@pytest.mark.parametrize(("t", "s"), SCALES)
def test_laplace_noise_has_exactly_the_textbook_law(t: int, s: int) -> None:
    law = noise_law(t, s)

    total = sum(law.values(), Fraction(0))
    assert abs(total - 1) < Fraction(VERY_CLOSE)
    for noise, mass in law.items():
        assert (
            abs(Decimal(mass.numerator) / Decimal(mass.denominator) - laplace_textbook(t, s, noise))
            < VERY_CLOSE
        )


@pytest.mark.parametrize(("t", "s"), SCALES)
def test_the_noise_is_exactly_symmetric(t: int, s: int) -> None:
    law = noise_law(t, s)

    assert law == {-noise: mass for noise, mass in law.items()}


def test_noise_that_counts_minus_zero_would_not_have_the_textbook_law() -> None:
    law = noise_law(1, 1)

    doubled = {noise: mass * (2 if noise == 0 else 1) for noise, mass in law.items()}
    zero = doubled[0] / sum(doubled.values())
    assert (
        abs(Decimal(zero.numerator) / Decimal(zero.denominator) - laplace_textbook(1, 1, 0))
        > VERY_CLOSE
    )


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


def test_95_percent_intervals_of_laplace_noise_cover_94_to_96_percent() -> None:
    mechanism, replications = DiscreteLaplace("1", 101), 20_000
    positions = np.repeat([0, 30, 100], 60)
    dice = np.random.default_rng(11)
    stop = 1 - np.exp(-1 / float(mechanism.scale))
    shape = (replications, len(positions))
    reports = positions + dice.geometric(stop, shape) - dice.geometric(stop, shape)
    squares = (reports**2).sum(axis=1)  # below 2^32, so the high half stays 0
    tallies = np.stack([reports.sum(axis=1), squares, np.zeros_like(squares)], axis=1)

    (share,) = covered(mechanism, tallies, len(positions), positions.sum())

    assert 0.94 <= share <= 0.96


def test_the_widest_accepted_grid_still_fits_the_tally() -> None:
    mechanism = DiscreteLaplace("1", (1 << 24) - 1)

    payload = mechanism.randomize(Fraction(mechanism.top), SeededRandomness(b"wide"))

    assert mechanism.payload_size == 4
    assert abs(mechanism.decode(payload)) < 1 << 31
