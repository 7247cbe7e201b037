"""Exact limits of a probability from a count: Clopper and Pearson, in the standard library.

Source: Clopper, Pearson, Biometrika 1934: the limits.  A binomial tail is an incomplete beta
    function; its continued fraction is DLMF 8.17.22, evaluated by Lentz's method.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, lgamma, log, log1p
from typing import Final

_TINY: Final = 1e-300  # stands for 0 in a denominator
_CLOSE: Final = 1e-15  # relative; where the continued fraction stops
_TERMS: Final = 100_000  # far more than the root of the trials of any audit
_HALVINGS: Final = 60  # of [0, 1]; the limit is then known to the last bit of a double


def lower_limit(hits: int, trials: int, alpha: float) -> float:
    """Return the p below which *hits* or more of *trials* have a chance of less than *alpha*."""
    if hits == 0:
        return 0.0
    return _bisect(lambda p: upper_tail(hits, trials, p) < alpha)


def upper_limit(hits: int, trials: int, alpha: float) -> float:
    """Return the p above which *hits* or fewer of *trials* have a chance of less than *alpha*."""
    return 1 - lower_limit(trials - hits, trials, alpha)


def upper_tail(hits: int, trials: int, p: float) -> float:
    """Return Pr[X >= hits] of a binomial X, for 0 < hits <= trials and 0 < p < 1."""
    a, b = float(hits), float(trials - hits + 1)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(p) + b * log1p(-p))
    if p < (a + 1) / (a + b + 2):
        return front * _fraction(p, a, b) / a
    return 1 - front * _fraction(1 - p, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function."""
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / _away(1 + term * d), _away(1 + term / c)
            result *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return result


def _away(x: float) -> float:
    """Keep a denominator from 0."""
    return x if abs(x) > _TINY else _TINY


def _bisect(too_low: Callable[[float], bool]) -> float:
    """Return where *too_low* changes from True to False, from below."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if too_low(middle):
            low = middle
        else:
            high = middle
    return low
