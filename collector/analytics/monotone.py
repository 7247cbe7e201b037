"""Curves that never fall: the one nearest to noisy numbers.  Pure.

In the standard library: answers are made with numpy, and drawn without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_LEAST_ERROR: Final = 1e-6  # of the largest standard error: a number known for sure weighs so much


def isotonic(
    values: Sequence[float],
    weights: Sequence[float] | None = None,
    low: float = 0.0,
    high: float = 1.0,
) -> list[float]:
    """Return the sequence nearest to *values* that never falls and stays from *low* to *high*.

    Nearest is in squares times *weights*, which are all 1 if left out; an inverse variance each
    gives the most likely sequence under normal errors.

    Args:   values: finite.  weights: positive and finite, one a value.
    Source: Ayer, Brunk, Ewing, Reid, Silverman, Annals of Mathematical Statistics 1955: pool
            adjacent violators; that cutting off at bounds afterwards gives the nearest bounded one
            is in Robertson, Wright, Dykstra, *Order Restricted Statistical Inference*, 1988.
    """
    trust = [1.0] * len(values) if weights is None else weights
    pools: list[tuple[float, float, int]] = []  # mean, weight, entries
    for pool in zip(values, trust, [1] * len(values), strict=True):
        mean, weight, size = pool
        while pools and pools[-1][0] >= mean:
            other, heavy, many = pools.pop()
            weight, size = weight + heavy, size + many
            mean += (other - mean) * (heavy / weight)
        pools.append((mean, weight, size))
    return [min(max(mean, low), high) for mean, _, size in pools for _ in range(size)]


def weights_of(std_errors: Sequence[float]) -> list[float] | None:
    """Return the inverse variances, or None for equal weights where nothing is known of them."""
    largest = max(std_errors, default=0.0)
    if not largest:
        return None
    return [(largest / max(error, _LEAST_ERROR * largest)) ** 2 for error in std_errors]
