"""The answer to how a number is distributed: five quantiles, with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, Final

import numpy as np

from client_sdk.mechanisms import DistributionMechanism
from client_sdk.registry.domains import NumberDomain
from client_sdk.registry.metric import GRID, SMOOTH, Metric

from ...estimation.estimate import Estimate, normal_quantile, quantile_positions
from ..rows import LOWER_END, UPPER_END, Row
from .any_shape import AnyShape
from .curves import assumption
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
    if not isinstance(metric.mechanism, DistributionMechanism):
        return {}
    found = quantiles_at(metric, tally, n, tuple(QUANTILES.values()), alpha)
    return dict(zip(QUANTILES, found, strict=True))


def quantiles_at(
    metric: Metric, tally: Any, n: int, levels: Sequence[float], alpha: float
) -> list[Estimate]:
    """Return the quantiles of *n* > 0 numbers at ascending *levels*, in the unit of the domain.

    Of numbers on the grid they are grid points, and so are both ends of their intervals.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    domain, mechanism = metric.domain.grid, metric.mechanism
    assert domain is not None  # noqa: S101 - as the mechanism is
    assert isinstance(mechanism, DistributionMechanism)  # noqa: S101 - the caller asked
    smooth = quantiles(mechanism, tally, n, levels, alpha)
    if metric.shape == SMOOTH:
        return [_in_unit(estimate, domain) for estimate in smooth]
    seen = mechanism.require_counts(tally, n, np) / n
    population = AnyShape.of(mechanism, seen, n)
    found = [
        _limited(estimate.value, first, last, mechanism, metric.shape == GRID, alpha)
        for estimate, (first, last) in zip(
            smooth, population.quantile_bins(levels, alpha).tolist(), strict=True
        )
    ]
    return [_in_unit(estimate, domain) for estimate in found]


def _limited(
    value: float,
    first: int,
    last: int,
    mechanism: DistributionMechanism,
    on_grid: bool,
    alpha: float,
) -> Estimate:
    """Return a quantile in grid steps that may be in bins *first* to *last*.

    Numbers that report from a bin lie less than a bin away from it, or on it if each grid point has
    a bin of its own and all numbers are on the grid.
    """
    top = mechanism.top
    step = Fraction(top, mechanism.bins - 1)  # grid steps a bin
    low, high = max((first - 1) * step, Fraction(0)), min((last + 1) * step, Fraction(top))
    if on_grid:
        low = Fraction(floor((first - 1) * step) + 1 if first else 0)
        high = Fraction(min(ceil((last + 1) * step) - 1, top))
        value = round(value)
    found = min(max(value, float(low)), float(high))
    error = float(high - low) / (2 * normal_quantile(alpha))
    return Estimate(found, error, float(low), float(high))


def quantile_truth(metric: Metric, values: Mapping[object, int]) -> dict[str, float]:
    """Return the true quantiles from how many devices hold each value; for demos and tests.

    Of a smooth population they are those of its bins; of others the least number up to which so
    many of the devices are.
    """
    domain, mechanism = metric.domain, metric.mechanism
    if not domain.grid or not isinstance(mechanism, DistributionMechanism):
        return {}
    places = Counter[float]()
    for value, devices in values.items():
        places[float(domain.grid.encode(value, metric.name))] += devices
    if metric.shape == SMOOTH:
        found = _smooth_truth(mechanism, places)
    else:
        order = sorted(places)
        up_to = np.cumsum([places[place] for place in order]) / places.total()
        found = np.array(order)[np.searchsorted(up_to + 1e-12, tuple(QUANTILES.values()))]
    numbers = float(domain.grid.minimum) + found * float(domain.grid.step)
    return dict(zip(QUANTILES, numbers.tolist(), strict=True))


def _smooth_truth(mechanism: DistributionMechanism, places: Mapping[float, int]) -> Any:
    """Return the quantiles in grid steps; the share of a bin is spread evenly over it."""
    shares = np.zeros(mechanism.bins)
    step = mechanism.top / (mechanism.bins - 1)
    for place, devices in places.items():
        below, rest = divmod(place / step, 1)
        shares[int(below)] += devices * (1 - rest)
        if rest:
            shares[int(below) + 1] += devices * rest
    return quantile_positions(shares / shares.sum(), tuple(QUANTILES.values())) * step


def _in_unit(estimate: Estimate, domain: NumberDomain) -> Estimate:
    """Return *estimate*, in grid steps from the lowest, in the unit of *domain*."""
    step, low, high = float(domain.step), float(domain.minimum), float(domain.maximum)
    return Estimate(
        low + step * estimate.value,
        step * estimate.std_error,
        max(low, low + step * estimate.ci_low),
        min(high, low + step * estimate.ci_high),
    )


def with_notes(row: Row, metric: Metric) -> Row:
    """Return the row of a quantile with what it assumes, and whether it is an end of the range."""
    notes = [assumption(metric)]
    domain = metric.domain.grid
    if row.ci_low == row.ci_high and domain:
        ends = {float(domain.minimum): LOWER_END, float(domain.maximum): UPPER_END}
        notes.insert(0, ends.get(row.value or 0.0))
    return replace(row, note="; ".join(note for note in notes if note) or None)
