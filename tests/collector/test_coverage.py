"""Intervals of shares cover at 94 to 96 %, for every frequency oracle, for head and tail items.

Supports are simulated as what they are, c·Bernoulli(p) + (n-c)·Bernoulli(q), so the randomizers
need not run.  20,000 replications have a standard error of 0.15 points.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np
import pytest

from client_sdk.errors import InvalidParameterError
from client_sdk.mechanisms import FrequencyOracle, SetMechanism, load, names
from collector.estimate import normal_quantile, score_limits

Oracle: TypeAlias = FrequencyOracle | SetMechanism

REPLICATIONS = 20_000
LOW, HIGH = 0.94, 0.96
EXPECTED_SUPPORTS = 50  # n·q and n·(1-p) of it; below, counts are too coarse for any exact level

SHARES = (0.0, 0.002, 0.05, 0.4)  # of the devices
SETTINGS = [("0.5", 4), ("1", 16), ("1", 128), ("2", 256), ("4", 64)]


def oracles() -> list[Oracle]:
    """Return every oracle with the pure estimator, at every setting that it can have."""
    found = []
    for name in names():
        kind = load(name)
        if not (
            issubclass(kind, SetMechanism) or (issubclass(kind, FrequencyOracle) and kind.pure)
        ):
            continue
        for epsilon, size in SETTINGS:
            try:
                found.append(kind(epsilon, size))
            except InvalidParameterError:
                continue
    return found


def estimates(oracle: Oracle, holders: int, n: int) -> Any:
    """Return the unbiased count of an item in REPLICATIONS runs."""
    chance = np.random.default_rng([n, holders, oracle.domain_size])
    p, q = float(oracle.channel.p), float(oracle.channel.q)
    supports = chance.binomial(holders, p, REPLICATIONS)
    supports += chance.binomial(n - holders, q, REPLICATIONS)
    return (supports - n * q) / (p - q)


def enough(oracle: Oracle) -> int:
    """Return the least reports that expect EXPECTED_SUPPORTS from devices without the item."""
    q = float(oracle.channel.q)
    return max(1_000, round(EXPECTED_SUPPORTS / min(q, 1 - q)))


def label(oracle: Oracle) -> str:
    return f"{oracle.name}-{float(oracle.epsilon):g}-{oracle.domain_size}"


@pytest.mark.parametrize("oracle", oracles(), ids=label)
@pytest.mark.parametrize("share", SHARES)
def test_an_interval_covers_at_its_level(oracle: Oracle, share: float) -> None:
    n = enough(oracle)
    holders = round(share * n)

    low, high = score_limits(oracle.channel, estimates(oracle, holders, n), n, 0.05)

    covered = float(np.mean((low <= holders) & (holders <= high)))
    assert LOW <= covered <= HIGH


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
