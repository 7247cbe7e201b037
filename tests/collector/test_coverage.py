"""Intervals of shares cover at 94 to 96 %, for every frequency oracle, for head and tail items.

Supports are simulated as what they are, c·Bernoulli(p) + (n-c)·Bernoulli(q), so the randomizers
need not run.  20,000 replications have a standard error of 0.15 points.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from benchmarks.coverage import (
    HIGH,
    LOW,
    SHARES,
    Oracle,
    estimates,
    item_coverage,
    oracles,
)
from client_sdk.mechanisms import FrequencyOracle, load
from collector.estimate import normal_quantile, score_limits


def label(oracle: Oracle) -> str:
    return f"{oracle.name}-{float(oracle.epsilon):g}-{oracle.domain_size}"


@pytest.mark.parametrize("oracle", oracles(), ids=label)
@pytest.mark.parametrize("share", SHARES)
def test_an_interval_covers_at_its_level(oracle: Oracle, share: float) -> None:
    assert LOW <= item_coverage(oracle, share) <= HIGH


def test_an_interval_of_half_the_variance_would_be_seen() -> None:
    oracle = cast("FrequencyOracle", load("grr")("1", 16))
    found = estimates(oracle, 100, 10_000)

    low, high = score_limits(oracle.channel, found, 10_000, 0.05)

    middle, half = (low + high) / 2, (high - low) / 2 / np.sqrt(2)
    assert float(np.mean(abs(middle - 100) <= half)) < LOW


def test_the_normal_interval_would_miss_the_band_where_few_supports_are_chance() -> None:
    oracle, n = cast("FrequencyOracle", load("grr")("4", 64)), 1_000
    p, q = float(oracle.channel.p), float(oracle.channel.q)
    found = estimates(oracle, 0, n)

    holders = np.clip(found, 0, n)
    deviation = np.sqrt(holders * p * (1 - p) + (n - holders) * q * (1 - q)) / (p - q)

    assert float(np.mean(abs(found) <= normal_quantile(0.05) * deviation)) > HIGH


def test_a_count_at_a_limit_is_z_standard_errors_from_the_estimate() -> None:
    oracle = cast("FrequencyOracle", load("grr")("4", 64))
    p, q = float(oracle.channel.p), float(oracle.channel.q)
    totals, n = np.array([-5.0, 0.0, 80.0, 700.0]), 1_000

    for limit in score_limits(oracle.channel, totals, n, 0.05):
        variance = (limit * p * (1 - p) + (n - limit) * q * (1 - q)) / (p - q) ** 2
        assert abs(totals - limit) == pytest.approx(normal_quantile(0.05) * np.sqrt(variance))
