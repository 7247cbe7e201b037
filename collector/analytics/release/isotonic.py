"""The nearest sequence that never falls, such as a cumulative distribution must be.  Pure.

Source: Ayer, Brunk, Ewing, Reid, Silverman, Annals of Mathematical Statistics 1955: pool adjacent
    violators; that cutting off at bounds afterwards gives the nearest bounded one is in Robertson,
    Wright, Dykstra, *Order Restricted Statistical Inference*, 1988.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def isotonic(values: Any, weights: Any = None, low: float = 0.0, high: float = 1.0) -> Any:
    """Return the sequence nearest to *values* that never falls and stays from *low* to *high*.

    Nearest is in squares times *weights*, which are all 1 if left out; an inverse variance each
    gives the most likely sequence under normal errors.

    Args: values: finite, shape (k,).  weights: positive and finite, shape (k,).
    """
    given = np.asarray(values, dtype=np.float64)
    trust = np.ones(given.size) if weights is None else np.asarray(weights, dtype=np.float64)
    pools: list[tuple[float, float, int]] = []  # mean, weight, entries
    for pool in zip(given.tolist(), trust.tolist(), [1] * given.size, strict=True):
        mean, weight, size = pool
        while pools and pools[-1][0] >= mean:
            other, heavy, many = pools.pop()
            weight, size = weight + heavy, size + many
            mean += (other - mean) * (heavy / weight)
        pools.append((mean, weight, size))
    means, _, sizes = zip(*pools, strict=True) if pools else ((), (), ())
    return np.clip(np.repeat(np.array(means), np.array(sizes, dtype=np.int64)), low, high)
