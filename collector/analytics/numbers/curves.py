"""Parts of a population of numbers between two ends, from the reports of a distribution.  Pure.

All are differences of one linear estimate of F, so neighbouring ranges add up exactly, and so do
the weights that their noise and their bias follow from.  A range is missed by the norm of the
difference of what its two ends miss, which is less than the sum of the two.

Numbers are those of the grid: "up to x" takes x in, and so ends half a step behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from client_sdk.domains import NumberDomain
from client_sdk.mechanisms import DistributionMechanism
from client_sdk.metric import Metric

from ...estimate import Estimate
from .quantiles import THRESHOLDS, LinearCDF, bias_aware_reach, linear_cdf

NO_DISTRIBUTION = (
    'tells a mean only; declare it with mechanism = "square_wave", or as a category of ranges'
)


def refusal(metric: Metric) -> str | None:
    """Return why the distribution of *metric* cannot be told, or None."""
    if not isinstance(metric.domain, NumberDomain):
        return "has no numbers of its own; ask for frequency, top_k or key_values"
    return None if isinstance(metric.mechanism, DistributionMechanism) else NO_DISTRIBUTION


@dataclass(frozen=True)
class Curve:
    """The reports of numbers of *domain*: shares *seen* of the symbols among *n* of them."""

    mechanism: DistributionMechanism
    domain: NumberDomain
    linear: LinearCDF
    seen: Any
    n: int

    @classmethod
    def of(cls, metric: Metric, tally: Any, n: int) -> Curve:
        """Take the tally of *n* > 0 reports of a metric without a ``refusal``.

        Raises: InvalidTallyError: the tally cannot have come from n reports.
        """
        domain, mechanism = metric.domain, metric.mechanism
        assert isinstance(domain, NumberDomain)  # noqa: S101 - see refusal
        assert isinstance(mechanism, DistributionMechanism)  # noqa: S101 - see refusal
        seen = mechanism.require_counts(tally, n, np) / n
        return cls(mechanism, domain, linear_cdf(mechanism, n), seen, n)

    def up_to(self, numbers: Sequence[Fraction], alpha: float) -> list[Estimate]:
        """Return the share of devices up to and including each of *numbers*."""
        return self._estimates(np.array([self._ends(number) for number in numbers]), alpha)

    def between(
        self, ranges: Sequence[tuple[Fraction | None, Fraction]], alpha: float
    ) -> list[Estimate]:
        """Return the share above the first and up to the second end of each; None: from the least.

        So ranges of which one ends where the other begins hold no number twice, and add up.
        """
        ends = [self._ends(high) - (0 if low is None else self._ends(low)) for low, high in ranges]
        return self._estimates(np.array(ends), alpha)

    def _ends(self, number: Fraction) -> Any:
        """Return the weight of each threshold of F in the share up to *number*."""
        place = floor((number - self.domain.minimum) / self.domain.step)  # on the grid
        weights = np.zeros(self.linear.bias.size)
        if place < 0:
            return weights
        if place >= self.mechanism.top:
            weights[-1] = 1.0
            return weights
        bin_width = self.mechanism.top / (self.mechanism.bins - 1)
        below, rest = divmod(((place + 0.5) / bin_width + 0.5) * THRESHOLDS, 1)
        weights[int(below)], weights[int(below) + 1] = 1 - rest, rest
        return weights

    def _estimates(self, ends: Any, alpha: float) -> list[Estimate]:
        """Return weighted sums of F at its thresholds: unbiased, so they may be below 0.

        The variance is estimated as that of F is, and at least that of the calmest bin.
        """
        weights, response = ends @ self.linear.weights, ends @ self.linear.response
        noise = self.mechanism.gather(weights**2, np) - response**2
        scatter = weights**2 @ self.seen - response**2 @ (self.linear.shares @ self.seen)
        errors = np.sqrt(np.maximum(scatter, noise.min(axis=1)).clip(min=0) / self.n)
        known = errors < 1e-12  # all or nothing: no noise, and nothing that could be missed
        bias = np.linalg.norm(ends @ self.linear.missed, axis=1)
        reach = np.where(known, 0, bias_aware_reach(bias, np.where(known, 1, errors), alpha))
        values = weights @ self.seen
        values = np.where(known, np.rint(values), values)
        columns = values, errors, values - reach, values + reach
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [Estimate(*row) for row in rows]
