"""The answer to how a number is distributed: five quantiles, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from client_sdk.domains import NumberDomain
from client_sdk.mechanisms import DistributionMechanism
from client_sdk.metric import Metric

from ...distribution import quantile_positions
from ...estimate import Estimate
from ..rows import LOWER_END, UPPER_END, Row
from .quantiles import quantiles

QUANTILES: Final = {"p10": 0.1, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9}


def quantile_items(metric: Metric) -> tuple[str, ...]:
    """Return the names of the quantiles that *metric* answers with, if any."""
    return tuple(QUANTILES) if isinstance(metric.mechanism, DistributionMechanism) else ()


def quantile_estimates(metric: Metric, tally: Any, n: int, alpha: float) -> dict[str, Estimate]:
    """Return the quantiles of *n* > 0 numbers in the unit of the domain, by name.

    Intervals are pointwise and cut off at the range.
    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    domain, mechanism = metric.domain, metric.mechanism
    if not isinstance(domain, NumberDomain) or not isinstance(mechanism, DistributionMechanism):
        return {}
    found = quantiles(mechanism, tally, n, tuple(QUANTILES.values()), alpha)
    return {
        item: in_unit(estimate, domain) for item, estimate in zip(QUANTILES, found, strict=True)
    }


def quantile_truth(metric: Metric, values: Mapping[object, int]) -> dict[str, float]:
    """Return the true quantiles from how many devices hold each value; for demos and tests."""
    domain, mechanism = metric.domain, metric.mechanism
    if not isinstance(domain, NumberDomain) or not isinstance(mechanism, DistributionMechanism):
        return {}
    shares = np.zeros(mechanism.bins)
    step = mechanism.top / (mechanism.bins - 1)
    for value, devices in values.items():
        below, rest = divmod(float(domain.encode(value, metric.name)) / step, 1)
        shares[int(below)] += devices * (1 - rest)
        if rest:
            shares[int(below) + 1] += devices * rest
    found = quantile_positions(shares / shares.sum(), tuple(QUANTILES.values())) * step
    numbers = float(domain.minimum) + found * float(domain.step)
    return dict(zip(QUANTILES, numbers.tolist(), strict=True))


def in_unit(estimate: Estimate, domain: NumberDomain) -> Estimate:
    """Return *estimate*, in grid steps from the lowest, in the unit of *domain*."""
    step, low, high = float(domain.step), float(domain.minimum), float(domain.maximum)
    return Estimate(
        low + step * estimate.value,
        step * estimate.std_error,
        max(low, low + step * estimate.ci_low),
        min(high, low + step * estimate.ci_high),
    )


def with_end(row: Row, metric: Metric) -> Row:
    """Return the row of a quantile, with a note if its whole interval is an end of the range."""
    domain = metric.domain
    if row.value is None or row.ci_low != row.ci_high or not isinstance(domain, NumberDomain):
        return row
    return replace(row, note=UPPER_END if row.value > float(domain.minimum) else LOWER_END)
