"""Estimates are the published formulas, and their intervals cover at the stated rate."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, sqrt

import numpy as np
import pytest
from msgspec import structs

from client_sdk.core.errors import InvalidTallyError
from client_sdk.mechanisms import FrequencyOracle, load
from client_sdk.mechanisms.numbers.discrete_laplace import DiscreteLaplace
from client_sdk.registry.types.numbers import NumberDomain
from collector.estimation.estimate import (
    Estimate,
    expected_half_width,
    mean,
    normal_quantile,
    shares,
    shares_of_each,
)
from tests.support.crowds.uploads import registry
from tests.support.enumeration.coverage import fits_rate

TRIALS = 20_000  # a coverage 1 point off is seen
ALPHA = 0.05
PEOPLE = 3_000
HOLDERS = (600, 900, 1_500)  # of PEOPLE, by item
AGE = registry().metric("age")

Bend = Callable[[Estimate], Estimate]


def grr(epsilon: str, domain_size: int) -> FrequencyOracle:
    mechanism = load("grr")(epsilon, domain_size)
    assert isinstance(mechanism, FrequencyOracle)
    return mechanism


def age_parts() -> tuple[DiscreteLaplace, NumberDomain]:
    mechanism, domain = AGE.mechanism, AGE.domain
    assert isinstance(mechanism, DiscreteLaplace)
    assert isinstance(domain, NumberDomain)
    return mechanism, domain


def halved_variance(estimate: Estimate) -> Estimate:
    half_width = (estimate.ci_high - estimate.value) / sqrt(2)
    low, high = estimate.value - half_width, estimate.value + half_width
    return structs.replace(estimate, ci_low=low, ci_high=high)


def covers(estimate: Estimate, truth: float) -> bool:
    return estimate.ci_low <= truth <= estimate.ci_high


def share_coverage(bend: Bend) -> int:
    """Return in how many trials the interval of the first item holds its true share."""
    mechanism, chance = grr("1.0", len(HOLDERS)), np.random.default_rng(20260304)
    p, q = float(mechanism.channel.p), float(mechanism.channel.q)
    law = np.full((3, 3), q) + np.eye(3) * (p - q)
    tallies = sum(
        chance.multinomial(held, law[item], size=TRIALS) for item, held in enumerate(HOLDERS)
    )
    truth = HOLDERS[0] / PEOPLE
    return sum(
        covers(bend(shares(mechanism, tally, PEOPLE, ALPHA)[0]), truth)
        for tally in np.asarray(tallies, dtype=np.int64)
    )


def mean_coverage(bend: Bend) -> int:
    """Return in how many trials the interval holds the true mean, everybody being 40.

    Noise is the difference of two geometric numbers, so that of all is one of two negative
    binomial ones.
    """
    mechanism, domain = age_parts()
    chance = np.random.default_rng(20260305)
    stop = 1 - exp(-1 / mechanism.scale)
    position = int((40 - domain.minimum) / domain.step)
    up, down = (chance.negative_binomial(PEOPLE, stop, size=TRIALS) for _ in range(2))
    sums = PEOPLE * position + up - down
    squares = PEOPLE * 10**8 >> 32  # more than enough for any of these sums
    return sum(
        covers(bend(mean(mechanism, domain, np.array([total, 0, squares]), PEOPLE, ALPHA)), 40.0)
        for total in sums.tolist()
    )


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("said_yes", [0, 400, 500, 731, 1_000])
def test_a_binary_share_is_debiased_as_warner_did(epsilon: float, said_yes: int) -> None:
    n, observed = 1_000, said_yes / 1_000

    no, yes = shares(grr(str(epsilon), 2), np.array([n - said_yes, said_yes]), n, ALPHA)

    expected = 1 / 2 + (observed - 1 / 2) * (exp(epsilon) + 1) / (exp(epsilon) - 1)
    assert yes.value == pytest.approx(expected, abs=1e-12)
    assert no.value == pytest.approx(1 - expected, abs=1e-12)


def test_the_error_of_a_binary_share_is_that_of_its_coins() -> None:
    n, p = 1_000, exp(1) / (exp(1) + 1)

    _, yes = shares(grr("1.0", 2), np.array([500, 500]), n, ALPHA)

    assert yes.std_error == pytest.approx(sqrt(p * (1 - p) / n) / (2 * p - 1), rel=1e-12)


@pytest.mark.parametrize("tally", [[0, 0, 0, 700], [700, 0, 0, 0], [100, 200, 300, 100]])
def test_unbiased_shares_of_one_answer_per_device_sum_to_one(tally: list[int]) -> None:
    found = shares(grr("1.5", 4), np.array(tally), 700, ALPHA)

    assert sum(estimate.value for estimate in found) == pytest.approx(1, abs=1e-12)


def test_shares_are_not_clipped() -> None:
    found = shares(grr("0.5", 3), np.array([0, 0, 300]), 300, ALPHA)

    assert found[0].value < 0 < 1 < found[2].value


def test_a_mean_is_in_the_unit_of_its_domain() -> None:
    mechanism, domain = age_parts()
    position = 61  # 10 + 61 * 0.5 = 40.5 years
    n = 200
    tally = np.array([position * n, position**2 * n, 0])

    found = mean(mechanism, domain, tally, n, ALPHA)

    steps = sqrt((mechanism.worst_variance) / n)
    assert found.value == pytest.approx(40.5, abs=1e-12)
    assert found.std_error == pytest.approx(0.5 * steps, rel=1e-12)


@pytest.mark.parametrize(("alpha", "z"), [(0.05, 1.959964), (0.01, 2.575829), (0.3173105, 1.0)])
def test_an_interval_reaches_the_normal_quantile_of_its_level(alpha: float, z: float) -> None:
    _, yes = shares(grr("1.0", 2), np.array([400, 600]), 1_000, alpha)

    assert normal_quantile(alpha) == pytest.approx(z, abs=1e-6)
    assert (yes.ci_high - yes.value) / yes.std_error == pytest.approx(z, abs=0.02)
    assert (yes.value - yes.ci_low) / yes.std_error == pytest.approx(z, abs=0.02)
    assert (yes.ci_high - yes.ci_low) / yes.std_error == pytest.approx(2 * z, rel=5e-3)


def test_the_expected_half_width_falls_with_the_root_of_the_devices() -> None:
    few, many = (expected_half_width(grr("1.0", 5), n, ALPHA, 1.0) for n in (1_000, 4_000))

    assert few == pytest.approx(2 * many)


def test_a_tally_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidTallyError):
        shares(grr("1.0", 2), np.array([5, 5]), 4, ALPHA)


def test_intervals_of_shares_cover_at_their_level() -> None:
    assert fits_rate(share_coverage(lambda estimate: estimate), TRIALS, 1 - ALPHA)


def test_intervals_of_means_cover_at_their_level() -> None:
    assert fits_rate(mean_coverage(lambda estimate: estimate), TRIALS, 1 - ALPHA)


@pytest.mark.parametrize("coverage", [share_coverage, mean_coverage])
def test_a_variance_of_half_its_size_would_be_noticed(coverage: Callable[[Bend], int]) -> None:
    assert not fits_rate(coverage(halved_variance), TRIALS, 1 - ALPHA)


@pytest.mark.parametrize("name", ["grr", "oue"])
def test_shares_of_many_slices_at_once_are_those_of_each(name: str) -> None:
    """Bit for bit, also where some limits are near at once and others are not."""
    mechanism = load(name)("1", 6)
    assert isinstance(mechanism, FrequencyOracle)
    chance = np.random.default_rng(5)
    slices = [
        (chance.multinomial(n, np.full(6, 1 / 6)).astype(np.int64), n)
        for n in (20, 300, 5_000, 2_000_000)
    ]

    together = shares_of_each(mechanism, slices, ALPHA)

    assert together == [shares(mechanism, tally, n, ALPHA) for tally, n in slices]
    assert len({estimate.value for estimates in together for estimate in estimates}) > 6
