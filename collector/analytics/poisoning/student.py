"""The tails of Student's law, in the standard library.

With x = v/(v+t^2) of v degrees of freedom, the tails beyond ±t are sqrt(1-x) times the rest of the
series of 1/sqrt(1-x) from the power v/2 on, if v is even; if it is odd, 2/pi sqrt(1-x) times the
rest of that of asin(sqrt(x))/sqrt(1-x).  All terms are positive, so no digit is lost.

Source: Abramowitz and Stegun 26.7.3 and 26.7.4, whose finite sums are the beginnings.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count
from math import exp, log, pi, sqrt
from typing import Final

_CLOSE: Final = 1e-15  # relative; where the series stops
_BISECTIONS: Final = 80  # beyond the digits of a float


def both_tails(value: float, freedom: int) -> float:
    """Return the chance that Student's t of *freedom* > 0 degrees is beyond ±*value*, above 0."""
    x = freedom / (freedom + value * value)
    odd = freedom % 2
    term = _first(freedom // 2, odd, x)
    total = term
    for j in count(freedom // 2):
        term *= x * (2 * j + 1 + odd) / (2 * j + 2 + odd)
        total += term
        if term < _CLOSE * total * (1 - x):
            break
    return total * sqrt(1 - x) * (2 / pi if odd else 1)


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


def _first(power: int, odd: int, x: float) -> float:
    """Return the first term of the rest."""
    term = sqrt(x) if odd else 1.0
    for j in range(power):
        term *= x * (2 * j + 1 + odd) / (2 * j + 2 + odd)
    return term
