"""Likelier shares of what was picked for its size: nearer the truth, and never out of bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import astuple

from collector.estimation.estimate import Estimate
from collector.estimation.shrinkage import FAR, is_misleading, shrunken

ITEMS, PICKED, ERROR = 1_000, 20, 0.01


def estimates_of(shares: Any, seed: int, reach: float = 5.0) -> list[Estimate]:
    """Return unbiased estimates of *shares* with normal noise, intervals *reach* errors wide."""
    noisy = shares + ERROR * np.random.default_rng(seed).standard_normal(shares.size)
    limit = reach * ERROR
    return [Estimate(x, ERROR, x - limit, x + limit) for x in noisy.tolist()]


def largest(estimates: list[Estimate]) -> list[int]:
    """Return the places of the largest."""
    return sorted(range(len(estimates)), key=lambda place: -estimates[place].value)[:PICKED]


POPULATIONS = {
    "flat": np.full(ITEMS, 1 / ITEMS),
    "harmonic": 1 / np.arange(1, ITEMS + 1) / np.log(ITEMS),
    "a few": np.where(np.arange(ITEMS) < PICKED / 2, 0.05, 0.5 / ITEMS),
}


@pytest.mark.parametrize("name", POPULATIONS)
def test_those_picked_come_nearer_the_truth(name: str) -> None:
    """Of 40 drawn answers, with a fixed seed: at most 0.8 of the error of the unbiased shares."""
    truth, before, after = POPULATIONS[name], 0.0, 0.0
    for seed in range(40):
        estimates = estimates_of(truth, seed)
        places = largest(estimates)
        likely = np.array(shrunken(estimates, places))
        raw = np.array([estimates[place].value for place in places])
        before += float(((raw - truth[places]) ** 2).sum())
        after += float(((likely - truth[places]) ** 2).sum())

    assert after <= 0.8**2 * before


def test_a_likelier_share_is_within_its_interval_and_not_below_0() -> None:
    """So the interval, which holds the truth, is one of the likelier share, too."""
    estimates = estimates_of(POPULATIONS["flat"], 1, reach=1.0)
    places = largest(estimates)

    for place, likely in zip(places, shrunken(estimates, places), strict=True):
        assert max(estimates[place].ci_low, 0.0) <= likely <= max(estimates[place].ci_high, 0.0)
    below = [Estimate(-0.5, 0.1, -0.7, -0.3)] * 4
    assert shrunken(below, [2]) == [0.0]


def test_shares_far_above_their_errors_stay_as_they_are() -> None:
    """Noise cannot have made a tenth of them."""
    far = Estimate(FAR * ERROR, ERROR, 0.25, 0.35)
    estimates = [*estimates_of(POPULATIONS["flat"], 2), far]

    assert shrunken(estimates, [ITEMS]) == [far.value]
    assert shrunken([far, far], [1, 0]) == [far.value] * 2


@pytest.mark.parametrize(
    ("value", "likely", "misleads"),
    [(0.05, 0.04, True), (0.05, 0.046, False), (0.5, 0.46, False), (-0.02, 0.001, False)],
)
def test_half_an_error_and_a_tenth_of_the_share_mislead(
    value: float, likely: float, misleads: bool
) -> None:
    """Less is no reason to show two numbers."""
    estimate = Estimate(value, 0.01, -1.0, 1.0)

    assert is_misleading(estimate, likely) == misleads
    assert is_misleading(estimate, likely, largest=False) == (likely > value)


def test_in_percent_they_are_a_hundred_times_what_they_are_as_parts() -> None:
    estimates = estimates_of(POPULATIONS["harmonic"], 3)
    places = largest(estimates)
    percent = [Estimate(*(100 * number for number in astuple(each))) for each in estimates]

    assert shrunken(percent, places) == pytest.approx(
        [100 * likely for likely in shrunken(estimates, places)]
    )
