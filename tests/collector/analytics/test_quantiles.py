"""Intervals of quantiles cover at rates that 800 replications cannot tell from 94 to 96 %.

A check of one quantile fails by chance with probability 1e-9 at most, if its rate is within the
band; so it passes 87.9 % to 99.5 %, and sees a planted bug.  The benchmark ``distribution`` looks
closer.  Tallies are simulated; the randomizers need not run.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.errors import InvalidTallyError
from client_sdk.mechanisms.numbers.square_wave import SquareWave
from collector.analytics.quantiles import bias_aware_reach, linear_cdf, quantile_limits, quantiles
from collector.estimation.estimate import quantile_positions
from tests.support.enumeration.coverage import fits_rate

LEVELS: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
ALPHA: Final = 0.05
LOW, HIGH = 0.94, 0.96
REPLICATIONS: Final = 800
BINS: Final = 48


def bells(*centers: float) -> Any:
    """Return bells of a tenth of the range, each lower than the one before."""
    x = (np.arange(BINS) + 0.5) / BINS
    shapes = [0.7**i * np.exp(-0.5 * ((x - c) / 0.1) ** 2) for i, c in enumerate(centers)]
    return np.sum(shapes, axis=0)


def waits() -> Any:
    """Return a tail that falls from the lowest bin, with more at either end than fits a curve."""
    falling = np.exp(-np.arange(BINS) / 12)
    falling[[0, -1]] += 0.02 * falling.sum()
    return falling


SETTINGS: Final = [
    ("1", 10_000, bells(0.35)),
    ("2", 10_000, bells(0.3, 0.75)),
    ("2", 100_000, waits()),
]


def hits(
    epsilon: str,
    devices: int,
    law: Any,
    *,
    claimed: float = 1.0,
    levels: tuple[float, ...] = LEVELS,
) -> Any:
    """Return how often each interval holds the truth, made for *claimed* times the reports."""
    mechanism = SquareWave(epsilon, BINS)
    held = np.rint(law * devices / law.sum()).astype(int)
    n = int(held.sum())
    generator = np.random.default_rng(20260501)
    laws = mechanism.spread(np.eye(BINS), np)
    laws /= laws.sum(axis=1, keepdims=True)
    drawn = [generator.multinomial(k, row, REPLICATIONS) for k, row in zip(held, laws, strict=True)]
    tallies = np.sum(drawn, axis=0)
    linear, truth = linear_cdf(mechanism, n), quantile_positions(held / n, levels)
    limits = np.array(
        [quantile_limits(linear, seen, round(claimed * n), levels, ALPHA) for seen in tallies / n]
    )
    return ((limits[:, 0] <= truth) & (truth <= limits[:, 2])).sum(axis=0)


def within_band(found: int) -> bool:
    """Return whether *found* of REPLICATIONS may come from a rate of LOW to HIGH."""
    nearest = min(max(found / REPLICATIONS, LOW), HIGH)
    return fits_rate(found, REPLICATIONS, nearest)


@pytest.mark.parametrize(("epsilon", "devices", "law"), SETTINGS)
def test_the_interval_of_each_quantile_covers_at_a_rate_like_its_level(
    epsilon: str, devices: int, law: Any
) -> None:
    """The rate of every single quantile may be one of the band, whatever the shape."""
    assert all(within_band(found) for found in hits(epsilon, devices, law))


def test_an_interval_of_half_the_variance_would_be_seen() -> None:
    """Were twice the reports claimed, every quantile would fail the check."""
    assert not any(within_band(found) for found in hits(*SETTINGS[0], claimed=2))


def starts() -> Any:
    """Return times with a long tail, flat over half of the range."""
    x = (np.arange(BINS) + 0.5) * 5_000 / BINS
    return np.exp(-0.5 * (np.log(x / 800) / 0.5) ** 2) / x


@pytest.mark.parametrize("devices", [2_280, 20_000])
def test_a_quantile_far_out_in_a_tail_is_covered(devices: int) -> None:
    """Many thresholds of a tail have nearly one level, and each is far off by chance."""
    (found,) = hits("2", devices, starts(), levels=(0.99,))

    assert fits_rate(found, REPLICATIONS, max(found / REPLICATIONS, LOW))


def test_a_tail_whose_other_thresholds_are_as_sure_would_be_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control: as many thresholds as there are then exclude the truth too often."""
    monkeypatch.setattr("collector.analytics.quantiles.OTHERS", 1)

    (found,) = hits("2", 2_280, starts(), levels=(0.99,))

    assert not fits_rate(found, REPLICATIONS, LOW)


@pytest.mark.parametrize("alpha", [0.99, 0.9, 0.5, 0.2, 0.05, 1e-4, 1e-6])
def test_the_reach_covers_whatever_the_bias_is(alpha: float) -> None:
    """An interval off by up to its bias keeps its level; half the widening would not do."""
    unit = NormalDist()

    def rate(reach: float, bias: float) -> float:
        return unit.cdf(reach - bias) - unit.cdf(-reach - bias)

    plain = float(bias_aware_reach(0.0, 1.0, alpha))
    for bias in np.linspace(0.05, 6, 120).tolist():
        reach = float(bias_aware_reach(bias, 1.0, alpha))
        assert rate(reach, bias) >= 1 - alpha
    small = float(bias_aware_reach(0.1, 1.0, ALPHA))
    assert rate((small + float(bias_aware_reach(0.0, 1.0, ALPHA))) / 2, 0.1) < 1 - ALPHA
    assert rate(plain, 0) == pytest.approx(1 - alpha)


def test_weights_meet_a_straight_density_with_any_share_at_the_ends_exactly() -> None:
    """What does not curve is not missed, and what does is missed by no more than stated."""
    mechanism = SquareWave("1", BINS)
    linear = linear_cdf(mechanism, 10_000)
    straight = np.linspace(1, 3, BINS)
    straight[[0, -1]] += 20, 40
    straight /= straight.sum()

    reached = linear.weights[::2] @ mechanism.spread(straight, np)

    assert reached == pytest.approx([0, *np.cumsum(straight)], abs=1e-9)


def test_the_stated_bias_is_what_the_worst_bell_is_missed_by_at_most() -> None:
    """A bell as narrow as assumed is missed by no more than the bias, and by some of it."""
    mechanism = SquareWave("1", BINS)
    linear = linear_cdf(mechanism, 10_000)
    bell = np.exp(-0.5 * (((np.arange(BINS) + 0.5) / BINS - 0.5) / 0.06) ** 2)
    bell /= bell.sum()

    missed = abs(linear.weights[::2] @ mechanism.spread(bell, np) - [0, *np.cumsum(bell)])

    assert (missed <= linear.bias[::2] + 1e-9).all()
    assert (missed / np.maximum(linear.bias[::2], 1e-9)).max() > 0.2


@pytest.mark.parametrize("bins", [2, 3, 5])
def test_a_few_bins_are_decoded_without_any_bias(bins: int) -> None:
    """Where too few bins remain between the ends to curve, nothing is assumed of them."""
    linear = linear_cdf(SquareWave("1", bins), 1_000)

    assert linear.bias == pytest.approx(0, abs=0 if bins < 5 else 1e-3)


def test_values_lie_within_their_limits_and_rise_with_their_levels() -> None:
    """Few reports are noisy enough for limits to cross; none do in the answer."""
    mechanism = SquareWave("0.5", BINS)
    generator = np.random.default_rng(7)
    for _ in range(50):
        tally = generator.multinomial(200, np.full(mechanism.symbols, 1 / mechanism.symbols))
        found = quantiles(mechanism, tally, 200, LEVELS, ALPHA)

        assert all(0 <= q.ci_low <= q.value <= q.ci_high <= BINS - 1 for q in found)
        assert [q.value for q in found] == sorted(q.value for q in found)


def test_a_tally_of_another_number_of_reports_is_refused() -> None:
    """A tally that cannot be is an error, not quantiles."""
    mechanism = SquareWave("1", BINS)

    with pytest.raises(InvalidTallyError, match="add up to n=5"):
        quantiles(mechanism, np.ones(mechanism.symbols, dtype=np.int64), 5, LEVELS, ALPHA)
