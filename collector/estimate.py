"""From a tally to numbers with intervals.  Pure.

An interval is a normal one around the unbiased estimate, for the devices that reported (a fixed
population): it says how far the noise of the mechanism may have moved the number.  It says nothing
about devices that did not report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from client_sdk.mechanisms import Debiased, Mechanism
from client_sdk.metric import NumberDomain


@dataclass(frozen=True)
class Estimate:
    """An unbiased value with its standard error and pointwise interval, all in the same unit."""

    value: float
    std_error: float
    ci_low: float
    ci_high: float


def normal_quantile(alpha: float) -> float:
    """Return z so that a standard normal lies within ±z with probability 1 - *alpha*."""
    return NormalDist().inv_cdf(1 - alpha / 2)


def shares(mechanism: Mechanism[Any], tally: Any, n: int, alpha: float) -> list[Estimate]:
    """Return the share of each item among *n* > 0 reports: unbiased, so it may be below 0.

    Args:   tally: int64, shape (mechanism.tally_size,).  alpha: 1 - level of the intervals.
    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    debiased = mechanism.debias(tally, n, np)
    return _estimates(debiased, 1 / n, 0.0, alpha)


def mean(
    mechanism: Mechanism[Any], domain: NumberDomain, tally: Any, n: int, alpha: float
) -> Estimate:
    """Return the mean of *n* > 0 numbers in the unit of *domain*.

    Args:   tally: int64, shape (mechanism.tally_size,).  alpha: 1 - level of the interval.
    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    debiased = mechanism.debias(tally, n, np)
    (estimate,) = _estimates(debiased, float(domain.step) / n, float(domain.minimum), alpha)
    return estimate


def expected_half_width(mechanism: Mechanism[Any], n: int, alpha: float, unit: float) -> float:
    """Return the half-width to expect from *n* reports; *unit* is what a predicted 1.0 means."""
    return normal_quantile(alpha) * mechanism.predict(n) * unit


def _estimates(debiased: Debiased, factor: float, offset: float, alpha: float) -> list[Estimate]:
    values = debiased.totals * factor + offset
    errors = np.sqrt(debiased.variances) * factor
    reach = errors * normal_quantile(alpha)
    columns: Sequence[Any] = (values, errors, values - reach, values + reach)
    return [Estimate(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
