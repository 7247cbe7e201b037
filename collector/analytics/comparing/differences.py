"""Two numbers of different reports: their difference, their ratio, and what it takes to see it.

Pure.  Errors of different reports are independent, so variances add.
"""

from __future__ import annotations

from math import ceil, erfc, isfinite, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from client_sdk.registry.metric import Metric

from ...estimation.estimate import Estimate, normal_quantile, ratio_limits
from ..poisoning.influence import Side, fakes_to_flip
from .measure import Number, reach_of

POWER: Final = 0.8  # the chance with which an effect is to be seen
NO_CHANGE: Final = "no detectable change"
MOST_REPORTS: Final = 10**12  # needed; beyond, it is as good as never


def difference(first: Number, second: Number, alpha: float) -> Estimate:
    """Return *first* less *second*."""
    value, error = first.value - second.value, sqrt(first.variance + second.variance)
    reach = normal_quantile(alpha) * error
    return Estimate(value, error, value - reach, value + reach)


def p_value(found: Estimate) -> float:
    """Return the chance to be as far from 0 as *found*, were the truth 0."""
    return erfc(abs(found.value) / found.std_error / sqrt(2)) if found.std_error else 1.0


def covers_zero(found: Estimate) -> bool:
    """Return whether the truth may be 0."""
    return found.ci_low <= 0 <= found.ci_high


def lift(first: Number, second: Number, alpha: float) -> Estimate | None:
    """Return by which part of *second*, which must be above 0, *first* is more.

    None where the interval of *second* reaches 0: the ratio then has no bounds.

    Source: Fieller, JRSS B 1954: the interval; the standard error is that of the ratio at itself.
    """
    if second.value <= normal_quantile(alpha) * sqrt(second.variance):
        return None
    law = np.float64(first.variance), np.float64(second.variance)
    low, high = ratio_limits(first.value, second.value, *law, alpha)
    ratio = first.value / second.value
    error = sqrt(first.variance + second.variance * ratio**2) / second.value
    return Estimate(ratio - 1, error, float(low) - 1, float(high) - 1)


def smallest_seen(error: float, alpha: float) -> float:
    """Return the difference that a test at *alpha* finds with POWER, given its standard *error*."""
    return (normal_quantile(alpha) + NormalDist().inv_cdf(POWER)) * error


def reports_needed(found: Estimate, n: int, alpha: float) -> int | None:
    """Return how many reports would show a difference such as *found* of *n* with POWER.

    None: it is so small that no number of reports that anybody has would.
    """
    if not found.value:
        return None
    needed = n * (smallest_seen(found.std_error, alpha) / found.value) ** 2
    return ceil(needed) if isfinite(needed) and needed <= MOST_REPORTS else None


def flipped_by(metric: Metric, item: str, first: Number, second: Number) -> int | None:
    """Return how many fake devices could turn the sign of *first* less *second*, if it is known."""
    reach = reach_of(metric, item)
    if reach is None or first.value == second.value:
        return None
    return fakes_to_flip(Side(first.value, reach, first.n), Side(second.value, reach, second.n))
