"""Laws of binomials of many sizes at once, to 13 digits.  Pure.

Source: Loader, Fast and accurate computation of binomial probabilities, 2000.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_TABLE: Final = 1 << 18  # numbers whose factorials are kept: 4 MB


def binomial(size: Floats | float, count: Floats, chance: float) -> Floats:
    """Return Pr[Bin(size, chance) = count], 0 where the count is none."""
    n = np.broadcast_to(np.asarray(size, dtype=np.float64), count.shape)
    within = (count >= 0) & (count <= n)
    law = np.zeros(count.shape)
    if chance in (0.0, 1.0):
        law[count == (n if chance else 0)] = 1.0
        return law
    with np.errstate(divide="ignore"):
        at_none, at_all = n * math.log1p(-chance), n * math.log(chance)
    law[within & (count == 0)] = np.exp(at_none[within & (count == 0)])
    ends = within & (count == n) & (count > 0)
    law[ends] = np.exp(at_all[ends])
    inner = within & (count > 0) & (count < n)
    n, k = n[inner], count[inner]
    rest = n - k
    exponent = (
        _correction(n) - _correction(k) - _correction(rest)
        - _deviance(k, n * chance) - _deviance(rest, n * (1 - chance))
    )  # fmt: skip
    law[inner] = np.exp(exponent) * np.sqrt(n / (2 * math.pi * k * rest))
    return law


def halves(size: Floats, count: Floats) -> Floats:
    """Return Pr[Bin(size, 1/2) = count], 0 where the count is none; the same by a table."""
    if size.max(initial=0) >= _TABLE:
        return binomial(size, count, 0.5)
    within = (count >= 0) & (count <= size)
    n, logs = size.astype(np.int64), _log_factorials()
    k = np.where(within, count, 0).astype(np.int64)
    nats = (logs[n] - logs[k] - logs[n - k]).astype(np.float64) - n * math.log(2)
    return np.where(within, np.exp(nats), 0.0)


@lru_cache(maxsize=1)
def _log_factorials() -> NDArray[Any]:
    """Return ln(n!) of the first numbers, by Stirling's formula and its correction."""
    n = np.arange(_TABLE, dtype=np.longdouble)
    n[0] = 1
    nats: NDArray[Any] = (
        np.log(2 * np.pi * n) / 2 + n * np.log(n) - n + _correction(n.astype(np.float64))
    )
    nats[0] = 0
    return nats


def _deviance(count: Floats, mean: Floats) -> Floats:
    """Return count ln(count/mean) + mean - count, without cancellation where both are close."""
    x = (count - mean) / (count + mean)
    exact = count * np.log(count / mean) + mean - count
    series, power = np.zeros_like(x), 2 * count * x
    square = x * x
    for j in range(1, 12):
        power = power * square
        series = series + power / (2 * j + 1)
    return np.where(np.abs(x) < 0.1, (count - mean) * x + series, exact)


def _correction(n: Floats) -> Floats:
    """Return ln(n!) less Stirling's formula."""
    inverse = 1 / np.maximum(n, 1.0)
    s = inverse * inverse
    series = inverse * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188))))
    return np.where(n < 16, _FEW[np.minimum(n, 15).astype(np.int64)], series)


def _stirling(n: int) -> float:
    return 0.5 * math.log(2 * math.pi * n) + n * math.log(n) - n


_FEW: Final = np.array([math.lgamma(i + 1) - _stirling(i) if i else 0.0 for i in range(16)])
