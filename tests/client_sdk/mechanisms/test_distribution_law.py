"""A distribution mechanism reports by the law it states, and its sums are debiased without bias."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import cast

import numpy as np
import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms import DistributionMechanism
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from tests.support.enumeration.enumeration import distribution
from tests.support.enumeration.vectors import Small, every_small

every_distribution = every_small(DistributionMechanism)


def mechanism_of(small: Small) -> DistributionMechanism:
    """Return the mechanism as the distribution mechanism that it is."""
    return cast("DistributionMechanism", small.mechanism)


def enumerated(mechanism: DistributionMechanism, value: Fraction) -> list[Fraction]:
    """Return the probability of every symbol for *value*, by enumeration."""
    law = distribution(lambda randomness: mechanism.randomize(value, randomness))
    size = mechanism.payload_size
    return [
        law.pmf.get(symbol.to_bytes(size, "big"), Fraction(0))
        for symbol in range(mechanism.symbols)
    ]


@every_distribution
def test_the_stated_law_of_every_bin_is_the_enumerated_one(small: Small) -> None:
    mechanism = mechanism_of(small)
    step = Fraction(mechanism.top, mechanism.bins - 1)

    for position in range(mechanism.bins):
        law = list(mechanism.channel_law(position))
        assert law == enumerated(mechanism, position * step)
        assert sum(law) == 1


def test_a_position_between_two_bins_has_the_mixture_of_their_laws() -> None:
    mechanism = SquareWave("1", 9, bins=3, precision=8)
    value = Fraction(5)  # bins stand for 0, 4 and 8

    law = enumerated(mechanism, value)

    below, above = mechanism.channel_law(1), mechanism.channel_law(2)
    assert law == [Fraction(3, 4) * b + Fraction(1, 4) * a for b, a in zip(below, above)]  # noqa: B905  # equal lengths by construction


@every_distribution
def test_spread_and_gather_are_the_channel_matrix_and_its_transpose(small: Small) -> None:
    mechanism = mechanism_of(small)
    matrix = mechanism.channel_matrix(np)
    generator = np.random.default_rng(1)
    shares = generator.dirichlet(np.ones(mechanism.bins), size=3)
    weights = generator.random((3, mechanism.symbols))

    spread, gathered = mechanism.spread(shares, np), mechanism.gather(weights, np)

    assert spread == pytest.approx(DistributionMechanism.spread(mechanism, shares, np), rel=1e-12)
    assert gathered == pytest.approx(
        DistributionMechanism.gather(mechanism, weights, np), rel=1e-12
    )
    assert spread[0] == pytest.approx(matrix @ shares[0])
    assert matrix.sum(axis=0) == pytest.approx(np.ones(mechanism.bins))


@pytest.mark.parametrize("position", [0, 3, 9])
def test_a_tally_that_follows_the_law_exactly_gives_the_position_and_its_variance(
    position: int,
) -> None:
    mechanism = SquareWave("1", 10, precision=12)
    law = mechanism.channel_law(position)
    n = math.lcm(*(mass.denominator for mass in law))
    reports = [symbol - mechanism.reach for symbol in range(mechanism.symbols)]
    slope = float(mechanism.window * (mechanism.near - mechanism.far))
    mean = sum(p * y for p, y in zip(law, reports, strict=True))
    square = sum(p * y * y for p, y in zip(law, reports, strict=True))

    totals, variances = mechanism.debias(np.array([int(p * n) for p in law]), n, np)

    assert totals == pytest.approx([n * position], abs=n * 1e-9)
    assert variances == pytest.approx([n * (float(square - mean**2) / slope**2 + 1 / 4)])


@every_distribution
def test_no_position_has_a_larger_variance_than_the_worst(small: Small) -> None:
    mechanism = cast("SquareWave", small.mechanism)
    slope = float(mechanism.window * (mechanism.near - mechanism.far))
    reports = range(-mechanism.reach, mechanism.bins + mechanism.reach)

    found = []
    for position in range(mechanism.bins):
        law = mechanism.channel_law(position)
        mean = sum(p * y for p, y in zip(law, reports, strict=True))
        found.append(sum(p * (y - mean) ** 2 for p, y in zip(law, reports, strict=True)))

    worst = float(max(found)) / slope**2 + 1 / 4  # bins are grid steps at these sizes
    assert worst <= mechanism.worst_variance * (1 + 1e-12)
    assert mechanism.worst_variance <= worst * 1.25
    squared = (mechanism.predict(50) * mechanism.top) ** 2 * 50
    assert squared == pytest.approx(mechanism.worst_variance)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 16.0])
def test_the_half_width_is_the_optimum_of_the_source(epsilon: float) -> None:
    mechanism = SquareWave(epsilon, 1000, bins=1000)

    e = math.exp(epsilon)
    optimum = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
    assert abs(mechanism.reach - 1000 * optimum) < 0.5


def test_the_half_width_tends_to_half_the_range_as_epsilon_tends_to_0() -> None:
    assert SquareWave("0.000001", 1000, bins=1000).reach == 500


@pytest.mark.parametrize("bins", [0, 1, 11, True, 2.0, "4"])
def test_a_number_of_bins_that_the_grid_cannot_give_is_refused(bins: int) -> None:
    with pytest.raises(InvalidParameterError, match=r"^bins=.*must be from 2 to 10"):
        SquareWave("1", 10, bins=bins)


@pytest.mark.parametrize("reach", [-1, 1025, True, 2.0])
def test_a_half_width_out_of_range_is_refused(reach: int) -> None:
    with pytest.raises(InvalidParameterError, match=r"^reach="):
        SquareWave("1", 10, reach=reach)


def mean_coverage(halved: bool) -> float:
    """Return in which part of trials the 95 % interval holds the true sum of positions."""
    mechanism, chance, trials = SquareWave("2", 50), np.random.default_rng(20260603), 20_000
    people = {0: 400, 7: 900, 20: 700, 49: 100}
    truth = sum(position * held for position, held in people.items())
    laws = {i: np.array([float(p) for p in mechanism.channel_law(i)]) for i in people}
    tallies = np.sum(
        [chance.multinomial(n, laws[i] / laws[i].sum(), size=trials) for i, n in people.items()],
        axis=0,
    )
    hits = 0
    for tally in tallies:
        (total,), (variance,) = mechanism.debias(tally, sum(people.values()), np)
        hits += abs(total - truth) <= 1.959964 * math.sqrt(variance / (2 if halved else 1))
    return hits / trials


def test_intervals_of_the_mean_cover_at_the_stated_rate() -> None:
    assert 0.94 <= mean_coverage(halved=False) <= 0.96


def test_intervals_of_the_mean_with_half_the_variance_would_not_cover() -> None:
    assert mean_coverage(halved=True) < 0.9
