"""The planner of buckets weighs what a bucket smears against the noise of its share."""

from __future__ import annotations

from fractions import Fraction
from math import pi, sqrt
from statistics import fmean, stdev
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.errors import InvalidParameterError
from client_sdk.mechanisms import ItemMechanism
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.registry.keys import AUTO
from client_sdk.registry.selection import choose
from client_sdk.registry.types.numbers import NumberDomain
from collector.planning.buckets import (
    BELL,
    MOST_BUCKETS,
    bell,
    best_buckets,
    bias_of,
    noise_of,
    sizes,
)

DOMAIN: Final = NumberDomain(Fraction(0), Fraction(1000), Fraction(1), "ms")
FALSE_ALARM_Z: Final = 6.11  # a normal is beyond it, either side, with a chance below 1e-9
RUNS: Final = 400


def cumulative(shape: Any) -> Any:
    return np.concatenate([[0.0], np.cumsum(shape) / np.sum(shape)])


@pytest.mark.parametrize("buckets", [16, 32, 64, 128])
def test_the_bias_of_a_smooth_shape_is_its_slope_squared_over_twelve(buckets: int) -> None:
    """The integral of f'^2 over 12 k^2; of a bell it is known in closed form."""
    deviation = 0.1
    slopes = 1 / (4 * sqrt(pi) * deviation**3)

    found = bias_of(cumulative(bell(deviation)), buckets)

    assert found == pytest.approx(slopes / (12 * buckets**2), rel=0.05)


def test_buckets_that_fit_the_shape_have_no_bias() -> None:
    """Four steps are told by 4 and by 8 buckets exactly, and not by 3."""
    steps = cumulative([0.4, 0.1, 0.3, 0.2])

    assert [bias_of(steps, k) for k in (4, 8)] == pytest.approx([0, 0], abs=1e-12)
    assert bias_of(steps, 3) > 0.01


def test_the_predicted_error_is_what_histograms_have() -> None:
    """Of 400 histograms by GRR, within 6.11 standard errors; a noise short of a factor k is not."""
    shape = np.array([1, 2, 4, 7, 9, 7, 4, 3, 2, 2, 1, 1], dtype=float)
    parts, k, n = shape.size, 4, 5_000
    oracle = choose(AUTO, ItemMechanism, "2", k)[1]
    assert isinstance(oracle, GRR)
    held = np.rint(n * shape / shape.sum()).astype(int)
    chance = np.random.default_rng(1)
    p, q = float(oracle.channel.p), float(oracle.channel.q)
    of_bucket = held.reshape(k, -1).sum(axis=1)
    laws = np.full((k, k), q) + (p - q) * np.eye(k)
    laws /= laws.sum(axis=1, keepdims=True)

    errors = []
    for _ in range(RUNS):
        tally = sum(chance.multinomial(m, law) for m, law in zip(of_bucket, laws, strict=True))
        found = oracle.debias(tally, int(of_bucket.sum()), np).totals / of_bucket.sum()
        density = np.repeat(found * k, parts // k)
        errors.append(float(np.mean((density - parts * held / held.sum()) ** 2)))

    bias, noise = bias_of(cumulative(held), k), noise_of("2", k, int(held.sum()))
    reach = FALSE_ALARM_Z * stdev(errors) / sqrt(RUNS)
    assert abs(fmean(errors) - (bias + noise)) < reach
    assert abs(fmean(errors) - (bias + noise / k)) > reach


def test_more_devices_or_privacy_spent_deserve_more_buckets() -> None:
    """The best number grows as the fourth root of the reports."""
    few, many = (best_buckets(DOMAIN, "1", n)[0].buckets for n in (10_000, 160_000))
    spent = best_buckets(DOMAIN, "4", 10_000)[0].buckets

    assert many == pytest.approx(2 * few, abs=1)
    assert spent > few


def test_the_best_comes_first_and_its_parts_add_up() -> None:
    """Sorted by the whole error, which is bias and noise."""
    found = best_buckets(DOMAIN, "1", 10_000)

    assert [one.total for one in found] == sorted(one.total for one in found)
    assert all(one.total == one.bias + one.noise for one in found)
    assert min(found).buckets == 2


def test_a_reference_moves_the_choice() -> None:
    """A sharp peak needs more than a bell that fills the range; an even spread needs the fewest."""
    peak, plain, even = (
        best_buckets(DOMAIN, "1", 50_000, reference)[0].buckets
        for reference in (bell(BELL / 4), None, [1.0] * 100)
    )

    assert even == 2 < plain < peak


def test_a_domain_has_no_more_buckets_than_numbers() -> None:
    """Nor more than a chart can show."""
    months = NumberDomain(Fraction(1), Fraction(12), Fraction(1), "months")

    assert max(best_buckets(months, "8", 10**9)).buckets == 12
    assert list(sizes(5)) == [2, 3, 4, 5]
    assert max(sizes(10**6)) <= MOST_BUCKETS


def test_noise_grows_with_the_number_of_buckets() -> None:
    """So the search may end where noise alone is above the best."""
    for epsilon in ("0.1", "2"):
        noises = [noise_of(epsilon, k, 1_000) for k in sizes(80)]

        assert noises == sorted(noises)


def test_an_epsilon_without_a_mechanism_is_refused() -> None:
    """By the mechanisms themselves."""
    with pytest.raises(InvalidParameterError, match="epsilon"):
        best_buckets(DOMAIN, "0", 10_000)
