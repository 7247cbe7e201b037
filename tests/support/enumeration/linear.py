"""Exact means and variances of estimates that are sums over reports, from an enumerated law."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from client_sdk.mechanisms import FrequencyOracle
from tests.support.enumeration.enumeration import distribution


def moments(oracle: FrequencyOracle, value: int) -> tuple[Any, Any]:
    """Return mean and variance of what one report of *value* adds to each item's estimate."""
    law = distribution(lambda randomness: oracle.randomize(value, randomness))
    mean, square = np.zeros(oracle.domain_size), np.zeros(oracle.domain_size)
    for payload, mass in law.pmf.items():
        added = oracle.debias(oracle.tally(cast("bytes", payload), np), 1, np).totals
        mean += float(mass) * added
        square += float(mass) * added**2
    return mean, square - mean**2
