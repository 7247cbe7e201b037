"""Many comparisons at once: intervals that hold together, and p-values that count them.  Pure.

Source: Šidák, JASA 1967: intervals of normal estimates around them, each of level (1-α)^(1/m), hold
    together with at least 1-α, however the estimates depend on each other.
    Holm, Scandinavian Journal of Statistics 1979: the step-down correction, under any dependence.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, log1p


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
