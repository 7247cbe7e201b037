"""The limits are those of exact binomial tails."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from collector.estimation.significance import binomial_tail, lower_limit, upper_limit

ALPHAS = (0.05, 1e-3, 5e-10)


def exact_tail(hits: int, trials: int, p: Fraction) -> float:
    """Return Pr[X >= hits] as the sum that it is."""
    return float(
        sum(comb(trials, x) * p**x * (1 - p) ** (trials - x) for x in range(hits, trials + 1))
    )


@pytest.mark.parametrize(
    ("hits", "trials", "p"),
    [(1, 1, "1/2"), (1, 40, "1/100"), (7, 40, "1/5"), (30, 40, "3/5"), (150, 300, "1/3")],
)
def test_a_tail_is_the_sum_of_its_binomial_terms(hits: int, trials: int, p: str) -> None:
    assert binomial_tail(hits, trials, float(Fraction(p))) == pytest.approx(
        exact_tail(hits, trials, Fraction(p)), rel=1e-10
    )


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("hits", "trials"), [(1, 20), (5, 20), (19, 20), (130, 400)])
def test_at_its_limits_a_count_has_exactly_the_stated_chance(
    hits: int, trials: int, alpha: float
) -> None:
    low, high = lower_limit(hits, trials, alpha), upper_limit(hits, trials, alpha)

    assert exact_tail(hits, trials, Fraction(low)) == pytest.approx(alpha, rel=1e-8)
    assert 1 - exact_tail(hits + 1, trials, Fraction(high)) == pytest.approx(
        alpha, rel=1e-6, abs=1e-15
    )


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("trials", [10, 1_000, 200_000])
def test_none_and_all_have_limits_in_closed_form(trials: int, alpha: float) -> None:
    assert lower_limit(0, trials, alpha) == 0
    assert upper_limit(trials, trials, alpha) == 1
    assert lower_limit(trials, trials, alpha) == pytest.approx(alpha ** (1 / trials), rel=1e-12)
    assert upper_limit(0, trials, alpha) == pytest.approx(1 - alpha ** (1 / trials), rel=1e-8)


def test_the_limits_of_many_trials_close_in_on_the_share() -> None:
    low, high = lower_limit(600_000, 2_000_000, 0.025), upper_limit(600_000, 2_000_000, 0.025)

    assert low < 0.3 < high
    assert high - low == pytest.approx(2 * 1.959964 * (0.3 * 0.7 / 2_000_000) ** 0.5, rel=1e-3)
