"""The ratio of two numbers of different reports, with an interval that holds however it is.  Pure.

A ratio r of a to b is inside if a - r b is within z standard errors of 0, taken at r itself.
Errors of different reports are independent, so its variance is A + r^2 B.  The true values behind
them may go together: if devices are drawn, both numbers scatter with the same draw.  How much is in
no report; with A' and B' the variances that the draw gives, the covariance is at most sqrt(A' B').
With the worst of these the interval is a bound, at least as wide as its level asks for.

If b may be 0 there are ratios of any size inside, and so there is no interval but that reason.

Source: Fieller, JRSS B 1954: the interval; what two drawn numbers share is bounded by
    Cauchy-Schwarz, derived here.
"""

from __future__ import annotations

from math import sqrt

from ...estimation.estimate import Estimate, normal_quantile
from .numbers import Number


def ratio_of(first: Number, second: Number, alpha: float, shared: float = 0.0) -> Estimate | None:
    """Return *first* over *second*; None where *second* may be 0, so that nothing bounds it.

    Args: shared: the most that the covariance of both may be, either way.
    """
    a, b = first.value, second.value
    z = normal_quantile(alpha)
    if abs(b) <= z * sqrt(second.variance):
        return None
    if b < 0:
        a, b = -a, -b
    value = a / b
    law = first.variance, second.variance
    error = sqrt(law[0] + law[1] * value**2 + 2 * shared * abs(value)) / b
    low, high = (_end(a, b, law, shared * z * z, z, side) for side in (-1, 1))
    return Estimate(value, error, low, high)


def _end(a: float, b: float, law: tuple[float, float], shared: float, z: float, side: int) -> float:
    """Return the lower end, *side* -1, or the upper one, 1: a root of a quadratic.

    What is shared widens the variance by 2 |r| of it, so it counts by the sign of the end itself.
    """
    square = b * b - z * z * law[1]
    alone = z * z * (law[0] * square + law[1] * a * a)
    for sign in (1, -1):
        root = sqrt(max(alone + 2 * sign * a * b * shared + shared**2, 0.0))
        end = (a * b + sign * shared + side * root) / square
        if sign * end >= 0:
            return end
    return 0.0
