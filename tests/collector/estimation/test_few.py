"""Where few lies are expected, intervals keep their level: laws are summed up, not drawn."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from benchmarks.accuracy.coverage import (
    HOLDERS,
    LIES,
    Oracle,
    coverage,
    few_lies,
    score_without_skew,
)
from client_sdk.mechanisms import Channel
from collector.estimation.estimate import normal_quantile, score_limits
from collector.estimation.few import FEW, above, below, exact_limits

ALPHA = 0.05
CHANNELS = (
    Channel(Fraction(99, 100), Fraction(1, 100)),
    Channel(Fraction(1, 2), Fraction(1, 50)),
    Channel(Fraction(1, 20), Fraction(1, 40)),
    Channel(Fraction(98, 100), Fraction(9, 10)),
)
CASES = [pytest.param(*case, id=f"{case[0].name}-{case[0].domain_size}-{case[0].epsilon}-{case[1]}")
         for case in few_lies() if case[1] in {100, 5_000}]  # fmt: skip


def exact_law(channel: Channel, held: int, n: int) -> list[Fraction]:
    """Return the chances of 0 to n supports, as fractions."""
    laws = [
        [comb(m, k) * p**k * (1 - p) ** (m - k) for k in range(m + 1)]
        for m, p in ((held, channel.p), (n - held, channel.q))
    ]
    law = [Fraction(0)] * (n + 1)
    for i, a in enumerate(laws[0]):
        for j, b in enumerate(laws[1]):
            law[i + j] += a * b
    return law


@pytest.mark.parametrize("channel", CHANNELS)
def test_both_tails_are_sums_of_the_law(channel: Channel) -> None:
    n = 30
    for held in (0, 1, 7, 30):
        law = exact_law(channel, held, n)
        for supports in (0, 1, 5, 29, 30):
            case = np.array([supports]), np.array([held]), np.array([n])

            up_to, from_ = float(below(channel, *case)[0]), float(above(channel, *case)[0])

            assert up_to == pytest.approx(float(sum(law[: supports + 1])), rel=1e-9, abs=1e-13)
            assert from_ == pytest.approx(float(sum(law[supports:])), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_a_count_is_in_the_interval_unless_a_tail_has_half_of_alpha(
    channel: Channel, alpha: float
) -> None:
    """Every count against every number of supports, by fractions."""
    n = 24
    laws = [exact_law(channel, held, n) for held in range(n + 1)]
    supports = np.arange(n + 1)

    low, high = exact_limits(channel, supports, np.full(n + 1, n), alpha)

    for x in range(n + 1):
        inside = [
            held
            for held, law in enumerate(laws)
            if min(sum(law[: x + 1]), sum(law[x:])) > Fraction(alpha) / 2
        ]
        if inside:
            assert (low[x], high[x]) == (inside[0], inside[-1])


@pytest.mark.parametrize(("oracle", "n"), CASES)
def test_an_interval_covers_at_least_at_its_level(oracle: Oracle, n: int) -> None:
    """Whatever share of the devices holds the item, at the level of an answer and of many items."""
    for share in HOLDERS:
        for alpha in (ALPHA, 1e-4):
            assert coverage(oracle.channel, round(share * n), n, alpha=alpha).chance >= 1 - alpha


def test_limits_that_take_few_lies_for_normal_noise_would_be_seen() -> None:
    least = min(
        coverage(oracle.channel, 0, n, score_without_skew).chance for oracle, n in few_lies()
    )

    assert least < 1 - ALPHA


@pytest.mark.parametrize("lies", LIES)
@pytest.mark.parametrize("p", [None, Fraction(1, 2)])
def test_an_interval_has_its_value_inside(lies: float, p: Fraction | None) -> None:
    n = 1_000
    q = Fraction(lies) / n
    channel = Channel(1 - q if p is None else p, q)
    totals = (np.arange(n + 1) - n * float(q)) / float(channel.p - q)

    low, high = score_limits(channel, totals, n, ALPHA)

    assert (low <= totals).all()
    assert (totals <= high).all()


def test_slices_of_different_sizes_have_the_limits_that_they_have_alone() -> None:
    channel, sizes = CHANNELS[0], np.array([[90], [300], [5_000]])
    supports = np.array([[0, 3, 60], [0, 7, 300], [20, 60, 4_990]])
    totals = (supports - sizes * float(channel.q)) / float(channel.p - channel.q)

    both = score_limits(channel, totals, sizes, ALPHA)

    for row, n in enumerate(sizes[:, 0].tolist()):
        alone = score_limits(channel, totals[row], n, ALPHA)
        for together, single in zip(both, alone, strict=True):
            assert together[row] == pytest.approx(single)


def test_more_lies_leave_the_score_interval_as_it_is() -> None:
    """From FEW of either kind on a limit has its estimate as the quantile of a skewed law."""
    n = 1_000
    q = FEW / n
    totals = (np.array([0, 15, 40]) - FEW) / (1 - 2 * q)

    low, _ = score_limits(Channel(1 - Fraction(FEW, n), Fraction(FEW, n)), totals, n, ALPHA)

    held = low.clip(0, n)
    variance, z = n * q * (1 - q), normal_quantile(ALPHA)
    third = variance * (1 - 2 * q) * (1 - 2 * held / n)
    reach = z * variance**0.5 + (z * z - 1) / 6 * third / variance
    assert (totals - low) * (1 - 2 * q) == pytest.approx(reach, abs=1e-4)
