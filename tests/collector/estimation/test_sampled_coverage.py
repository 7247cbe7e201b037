"""Intervals of shares of sampled items cover at 94 to 96 %, also for items that few reports name.

Drawn as what they are: how many holders and others are asked about the item, and which of them say
yes.  20,000 replications have a standard error of 0.15 points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.accuracy.coverage import ALPHA, EXPECTED_SUPPORTS, HIGH, LOW, REPLICATIONS, SETTINGS
from client_sdk.mechanisms.composite.sampled_item import SampledItem
from collector.estimation.estimate import normal_quantile, sampled_limits, shares
from tests.support.enumeration.seeded import SeededRandomness

SHARES = (0.0, 0.002, 0.05, 0.4, 1.0)  # of the devices that hold the item


def answers(mechanism: SampledItem, share: float, n: int) -> tuple[Any, Any]:
    """Return the noes and yeses about one item, REPLICATIONS of each."""
    chance = np.random.default_rng([n, round(1_000 * share), mechanism.domain_size])
    flip, holders = float(mechanism.flip), round(share * n)
    held, lacked = (
        chance.binomial(devices, 1 / mechanism.domain_size, REPLICATIONS)
        for devices in (holders, n - holders)
    )
    yeses = chance.binomial(held, 1 - flip) + chance.binomial(lacked, flip)
    return held + lacked - yeses, yeses


def coverage(mechanism: SampledItem, share: float, narrower: float = 1.0) -> float:
    """Return in which part of the replications the interval holds the share."""
    n = round(EXPECTED_SUPPORTS * mechanism.domain_size / float(mechanism.flip))
    noes, yeses = answers(mechanism, share, n)
    flip, asked = float(mechanism.flip), noes + yeses
    cells = np.stack([noes, yeses], axis=1).reshape(-1)
    level, bend = mechanism.share_variance(cells, n, np)
    found = (yeses / asked - flip) / (1 - 2 * flip)
    low, high = sampled_limits(found, level * narrower, bend * narrower, ALPHA)
    truth = round(share * n) / n
    return float(np.mean((low <= truth) & (truth <= high)))


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("share", SHARES)
def test_an_interval_covers_at_its_level(setting: tuple[str, int], share: float) -> None:
    """For items held by nobody, by few, by many and by all."""
    assert LOW <= coverage(SampledItem(*setting), share) <= HIGH


def test_an_interval_of_half_the_variance_would_be_seen() -> None:
    """The band is narrow enough to tell."""
    assert coverage(SampledItem("1", 16), 0.05, narrower=0.5) < LOW


def test_a_share_at_a_limit_is_z_standard_errors_from_the_estimate() -> None:
    """Taken at the limit itself, whatever the estimate."""
    found, level, bend = np.array([-0.1, 0.0, 0.3, 1.05]), 0.01, 0.002
    z = normal_quantile(ALPHA)

    for limit in sampled_limits(found, level, bend, ALPHA):
        variance = level + bend * limit * (1 - limit)
        assert (found - limit) ** 2 == pytest.approx(z * z * variance)


def test_the_shares_of_a_column_have_these_limits() -> None:
    """One row an item, each with its own sample."""
    mechanism, randomness = SampledItem("1", 3), SeededRandomness(b"limits")
    column = b"".join(mechanism.randomize(frozenset({1}), randomness) for _ in range(600))
    tally = mechanism.tally(column, np)
    debiased = mechanism.debias(tally, 600, np)

    rows = shares(mechanism, tally, 600, ALPHA)

    limits = sampled_limits(debiased.totals / 600, *mechanism.share_variance(tally, 600, np), ALPHA)
    assert [[row.ci_low for row in rows], [row.ci_high for row in rows]] == [
        limit.tolist() for limit in limits
    ]
    assert [row.std_error for row in rows] == pytest.approx(np.sqrt(debiased.variances) / 600)
