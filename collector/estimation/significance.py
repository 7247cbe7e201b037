"""Tails of three laws, and many comparisons at once, in the standard library.  Pure.

Binomial: exact limits of a probability from a count.  Chi-square and Student: the tails that tests
of variances and means need.  Many comparisons: intervals that hold together, and p-values that
count all of them.

Source: Clopper, Pearson, Biometrika 1934: the limits of a probability.  A binomial tail is an
    incomplete beta function; its continued fraction is DLMF 8.17.22.  DLMF 8.7.1 for the series and
    8.9.2 for the continued fraction of the incomplete gamma function.  Both fractions are evaluated
    by Lentz's method.
    Abramowitz and Stegun 26.7.1: both tails of Student's law as an incomplete beta function.
    Šidák, JASA 1967: intervals of normal estimates around them, each of level (1-α)^(1/m), hold
    together with at least 1-α, however the estimates depend on each other.
    Holm, Scandinavian Journal of Statistics 1979: the step-down correction, under any dependence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import exp, expm1, lgamma, log, log1p
from typing import Final

_TINY: Final = 1e-300  # stands for 0 in a denominator
_CLOSE: Final = 1e-15  # relative; where the continued fraction stops
_TERMS: Final = 100_000  # far more than the root of the trials of any audit
_HALVINGS: Final = 60  # of [0, 1]; the limit is then known to the last bit of a double
_BISECTIONS: Final = 80  # beyond the digits of a float


def lower_limit(hits: int, trials: int, alpha: float) -> float:
    """Return the p below which *hits* or more of *trials* have a chance of less than *alpha*."""
    if hits == 0:
        return 0.0
    return _bisect(lambda p: binomial_tail(hits, trials, p) < alpha)


def upper_limit(hits: int, trials: int, alpha: float) -> float:
    """Return the p above which *hits* or fewer of *trials* have a chance of less than *alpha*."""
    return 1 - lower_limit(trials - hits, trials, alpha)


def binomial_tail(hits: int, trials: int, p: float) -> float:
    """Return Pr[X >= hits] of a binomial X, for 0 < hits <= trials and 0 < p < 1."""
    return _beta(float(hits), float(trials - hits + 1), p, 1 - p)


def _beta(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularised incomplete beta function at 0 < x < 1; *rest* is 1 - x, exactly."""
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * _log(x, rest) + b * _log(rest, x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(rest, b, a) / b


def _log(x: float, rest: float) -> float:
    """Return log(x), from the smaller of x and 1 - x, which has all its digits."""
    return log(x) if x < rest else log1p(-rest)


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


def chi_square_tail(value: float, freedom: int) -> float:
    """Return the chance that a chi-square of *freedom* > 0 degrees is above *value*."""
    if value <= 0:
        return 1.0
    a, x = freedom / 2, value / 2
    front = exp(a * log(x) - x - lgamma(a))
    return front * _gamma_fraction(a, x) if x > a + 1 else 1 - front * _series(a, x)


def _series(a: float, x: float) -> float:
    """Return the lower incomplete gamma function, less its front."""
    term = total = 1 / a
    for k in range(1, _TERMS):
        term *= x / (a + k)
        total += term
        if term < _CLOSE * total:
            break
    return total


def _gamma_fraction(a: float, x: float) -> float:
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


def both_tails(value: float, freedom: int) -> float:
    """Return the chance that Student's t of *freedom* > 0 degrees is beyond ±*value*, above 0."""
    whole = freedom + value * value
    return _beta(freedom / 2, 0.5, freedom / whole, value * value / whole)


@lru_cache(maxsize=4_096)
def student_quantile(alpha: float, freedom: int) -> float:
    """Return t so that Student's law of *freedom* > 0 degrees lies within ±t with 1 - *alpha*.

    Args: alpha: above 0, at most 1/2.
    """
    low, high = log(0.1), log(10.0)  # of t: the half of no law lies within 0.6
    while both_tails(exp(high), freedom) > alpha:
        high += log(10.0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if both_tails(exp(middle), freedom) > alpha else (low, middle)
    return exp(high)


def each_of(alpha: float, comparisons: int) -> float:
    """Return the α of each of *comparisons* so that all hold together with 1 - *alpha*."""
    return -expm1(log1p(-alpha) / max(comparisons, 1))


def any_of(p_value: float, comparisons: int) -> float:
    """Return the p-value of the smallest of *comparisons*, given that of it alone."""
    return -expm1(log1p(-p_value) * comparisons) if p_value < 1 else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values so that rejecting those up to α errs anywhere with at most α."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    corrected, least = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return corrected
