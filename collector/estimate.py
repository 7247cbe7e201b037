"""From a tally to numbers with intervals.  Pure.

An interval is for the devices that reported (a fixed population): it says how far the noise of the
mechanism may have moved the number.  It says nothing about devices that did not report.  That of an
item's share is the score interval, which keeps its level for rare items and few reports; others
are normal ones around the unbiased estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeGuard

import numpy as np

from client_sdk.mechanisms import Channel, Debiased, FrequencyOracle, Mechanism, SetMechanism
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
    if not is_pure(mechanism):
        return _estimates(debiased, 1 / n, 0.0, alpha)
    low, high = score_limits(mechanism.channel, debiased.totals, n, alpha)
    return _rows(debiased.totals / n, np.sqrt(debiased.variances) / n, low / n, high / n)


def is_pure(mechanism: Mechanism[Any]) -> TypeGuard[FrequencyOracle | SetMechanism]:
    """Whether counts are debiased by p and q alone, so that their variance is linear in them."""
    if isinstance(mechanism, SetMechanism):
        return True
    return isinstance(mechanism, FrequencyOracle) and mechanism.pure


def score_limits(channel: Channel, totals: Any, n: int, alpha: float) -> tuple[Any, Any]:
    """Return the limits of counts whose unbiased estimates are *totals*, any shape.

    A count c is inside if the estimate lies within z standard errors of c, taken at c itself:
    (t - c)^2 <= z^2 Var(c), with Var(c) = n w + c s linear in c, so the limits solve a quadratic.

    Source: Wilson, JASA 1927: the score interval; derived here for supports with p and q.
    """
    p, q = float(channel.p), float(channel.q)
    z = normal_quantile(alpha)
    w, s = q * (1 - q) / (p - q) ** 2, (1 - p - q) / (p - q)
    shift = z * z * s / 2
    reach = z * np.sqrt(np.maximum(n * w + totals * s + shift * s / 2, 0))
    return totals + shift - reach, totals + shift + reach


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
    return _rows(values, errors, values - reach, values + reach)


def _rows(*columns: Any) -> list[Estimate]:
    """Return arrays of values, errors, lower and upper ends as one Estimate an entry."""
    return [Estimate(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
