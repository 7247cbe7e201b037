"""How much the numbers of the devices differ: their variance, and in words the deviation."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, Final

from client_sdk.mechanisms import DistributionMechanism
from client_sdk.registry.metric import Metric

from ...estimation.estimate import Estimate
from ..items.tables import refused_rows, rows_of
from ..numbers.spread import population_variance
from ..rows import Findings, Row
from ..slices import Asked, Slice
from ..verb import Verb
from . import mean

MEAN_ONLY: Final = (
    "has reports that tell the mean, not how numbers differ; "
    'declare it with mechanism = "square_wave"'
)


def answer(slices: Sequence[Slice], asked: Asked) -> Findings:
    """Answer with one row a slice, in the square of the unit.

    It is the variance of the devices that reported, without the noise of their reports.
    """
    return Findings(tuple(row for one in slices for row in _rows(one, asked.alpha)))


def _rows(one: Slice, alpha: float) -> list[Row]:
    unit = one.metric.domain.unit
    if one.refusal is not None:
        return refused_rows(one, [{}], alpha, f"{unit}²")
    mechanism: Any = one.metric.mechanism
    domain: Any = one.metric.domain
    found = population_variance(mechanism, domain, one.tally, one.n, alpha)
    return rows_of(one, [{}], [found], alpha, f"{unit}²", note=_deviation(found, unit))


def _deviation(found: Estimate, unit: str) -> str:
    value, low, high = (
        f"{sqrt(max(number, 0)):.3g}" for number in (found.value, found.ci_low, found.ci_high)
    )
    return f"standard deviation {value} {unit}, interval {low} to {high}"


def refusal(metric: Metric) -> str | None:
    """Answer metrics whose reports tell of a distribution."""
    if metric.domain.grid is None:
        return mean.refusal(metric)
    return None if isinstance(metric.mechanism, DistributionMechanism) else MEAN_ONLY


VERB = Verb(answer, refusal, most_slices=400)
