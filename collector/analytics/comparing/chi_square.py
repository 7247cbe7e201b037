"""The upper tail of the chi-square distribution, in the standard library.

Source: DLMF 8.7.1 for the series and 8.9.2 for the continued fraction of the incomplete gamma
    function, the latter evaluated by Lentz's method.
"""

from __future__ import annotations

from math import exp, lgamma, log
from typing import Final

_CLOSE: Final = 1e-15  # relative; where series and fraction stop
_TERMS: Final = 100_000  # far more than the root of any degrees of freedom here
_TINY: Final = 1e-300  # stands for 0 in a denominator


def upper_tail(value: float, freedom: int) -> float:
    """Return the chance that a chi-square of *freedom* > 0 degrees is above *value*."""
    if value <= 0:
        return 1.0
    a, x = freedom / 2, value / 2
    front = exp(a * log(x) - x - lgamma(a))
    return front * _fraction(a, x) if x > a + 1 else 1 - front * _series(a, x)


def _series(a: float, x: float) -> float:
    """Return the lower incomplete gamma function, less its front."""
    term = total = 1 / a
    for k in range(1, _TERMS):
        term *= x / (a + k)
        total += term
        if term < _CLOSE * total:
            break
    return total


def _fraction(a: float, x: float) -> float:
    """Return the upper incomplete gamma function, less its front."""
    b = x + 1 - a
    d = result = 1 / b
    c = 1 / _TINY
    for k in range(1, _TERMS):
        step = k * (a - k)
        b += 2
        d = 1 / (step * d + b or _TINY)
        c = b + step / c or _TINY
        result *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return result
