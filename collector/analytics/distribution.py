"""Parts of a population of numbers between two ends, from the reports of a distribution.  Pure.

All are differences of one linear estimate of F, so neighbouring ranges add up exactly, and so do
the weights that their noise and their bias follow from.  Of a metric that is declared smooth a
range is missed by the norm of the difference of what its two ends miss, which is less than the sum
of the two.  Of others nothing is assumed: limits come from ``AnyShape``, and an estimate that lies
outside of them becomes the nearer one.

The estimate is of numbers on the grid: "up to x" takes x in, and so ends half a step behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from client_sdk.mechanisms import DistributionMechanism
from client_sdk.registry.domain import NumberGrid
from client_sdk.registry.encodings import VectorEncoding
from client_sdk.registry.keys import GRID, SMOOTH
from client_sdk.registry.metric import Metric

from ..core.remarks import Code, Remark, remark
from ..estimation.arrays import Floats, Ints
from ..estimation.estimate import Estimate, normal_quantile
from .postprocess import simplex_l2
from .quantiles import THRESHOLDS, LinearCDF, bias_aware_reach, linear_cdf

_NO_DISTRIBUTION: Final = (
    'tells a mean only; declare it with ask = ["quantiles"], or as a category of ranges'
)
Part = tuple[Fraction | None, Fraction]  # from the first end to the second; None: from the least


def refusal(metric: Metric) -> str | None:
    """Return why the distribution of *metric* cannot be told, or None."""
    if metric.domain.encodes is VectorEncoding:
        return "has vectors, of which only the mean is told; ask for vector"
    if metric.domain.grid is None:
        return "has no numbers of its own; ask for frequency, top_k or key_values"
    return None if isinstance(metric.mechanism, DistributionMechanism) else _NO_DISTRIBUTION


def assumption(metric: Metric) -> tuple[Remark, ...]:
    """Return what the intervals of the distribution of *metric* assume, if anything."""
    return (remark(Code.SMOOTH),) if metric.shape == SMOOTH else ()


@dataclass(frozen=True)
class Curve:
    """The reports of numbers of *domain*: shares *seen* of the symbols among *n* of them."""

    mechanism: DistributionMechanism
    domain: NumberGrid
    linear: LinearCDF
    seen: Floats
    n: int
    shape: str  # what is assumed of the population

    @classmethod
    def of(cls, metric: Metric, tally: Ints, n: int) -> Curve:
        """Take the tally of *n* > 0 reports of a metric without a ``refusal``.

        Raises: InvalidTallyError: the tally cannot have come from n reports.
        """
        domain, mechanism = metric.domain.grid, metric.mechanism
        assert domain is not None  # noqa: S101 - see refusal
        assert isinstance(mechanism, DistributionMechanism)  # noqa: S101 - see refusal
        seen = mechanism.require_counts(tally, n, np) / n
        return cls(mechanism, domain, linear_cdf(mechanism, n), seen, n, metric.shape)

    def up_to(self, numbers: Sequence[Fraction], alpha: float) -> list[Estimate]:
        """Return the share of devices up to and including each of *numbers*."""
        return self.between([(None, number) for number in numbers], alpha)

    def between(
        self, parts: Sequence[Part], alpha: float, *, closed: bool = False
    ) -> list[Estimate]:
        """Return the share of each part, whose second end is in it; its first only if *closed*.

        So open parts of which one ends where the other begins hold no number twice, and add up.
        """
        grids = [self._on_grid(part, closed) for part in parts]
        estimates = self._estimates(np.array([self._ends(*grid) for grid in grids]), alpha)
        smooth = self.shape == SMOOTH
        if smooth and not any(self._is_in_an_end_bin(grid) for grid in grids):
            return estimates
        inner, outer = np.array(list(map(self._bins, parts, grids))).swapaxes(0, 1)
        population = AnyShape.of(self.mechanism, self.seen, self.n)
        limits = np.transpose(population.limits(inner, outer, alpha)).tolist()
        z = normal_quantile(alpha)
        return [
            share
            if smooth and not self._is_in_an_end_bin(grid)
            else _limited(
                share.value,
                min(low, share.ci_low) if smooth else low,
                max(high, share.ci_high) if smooth else high,
                z,
            )
            for share, grid, (low, high) in zip(estimates, grids, limits, strict=True)
        ]

    def _is_in_an_end_bin(self, grid: tuple[int, int]) -> bool:
        """Return whether a part begins or ends within the first or the last bin.

        A smooth population may have any share at either end; how a bin there is divided between
        that share and its neighbours is not in the reports.
        """
        top, bin_ = self.mechanism.top, Fraction(self.mechanism.top, self.mechanism.bins - 1)
        if bin_ == 1:  # then each number has a bin of its own
            return False
        cuts = (cut for cut in (grid[0] - 1, grid[1]) if 0 <= cut < top)
        return any(cut < bin_ or cut >= top - bin_ for cut in cuts)

    def _place(self, number: Fraction) -> Fraction:
        """Return where *number* is, in grid steps from the lowest."""
        return (number - self.domain.minimum) / self.domain.step

    def _on_grid(self, part: Part, closed: bool) -> tuple[int, int]:
        """Return the first and the last grid place in *part*, which may be outside the range."""
        low, high = part
        if low is None:
            return 0, floor(self._place(high))
        first = ceil(self._place(low)) if closed else floor(self._place(low)) + 1
        return first, floor(self._place(high))

    def _bins(self, part: Part, grid: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return thresholds of bins wholly in *part*, and of all that its numbers can report from.

        A number between two bins reports from either, so a bin is wholly in if no number outside of
        the part can report from it.
        """
        (first, last), (low, high) = grid, part
        if last < 0 or first > self.mechanism.top:
            return (-BEYOND, -BEYOND), (-BEYOND, -BEYOND)
        begin, end = (self._place(high if low is None else low), self._place(high))
        before, behind = begin, end  # the nearest numbers outside
        if self.shape == GRID:
            before, begin, end, behind = (
                Fraction(place) for place in (first - 1, first, last, last + 1)
            )
        bins = Fraction(self.mechanism.bins - 1, self.mechanism.top)  # a grid step
        inner = [ceil(before * bins) + 1, floor(behind * bins)]
        outer = [floor(begin * bins), ceil(end * bins) + 1]
        if first <= 0:
            inner[0] = outer[0] = -BEYOND
        if last >= self.mechanism.top:
            inner[1] = outer[1] = BEYOND
        return (inner[0], inner[1]), (outer[0], outer[1])

    def _ends(self, first: int, last: int) -> Floats:
        """Return the weight of each threshold of F in the share of grid places."""
        return self._up_to(last) - self._up_to(first - 1)

    def _up_to(self, place: int) -> Floats:
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

    def _estimates(self, ends: Floats, alpha: float) -> list[Estimate]:
        """Return weighted sums of F at its thresholds, with the limits of a smooth population.

        Values are unbiased then, so they may be below 0.  The variance is estimated as that of F
        is, and at least that of the calmest bin.
        """
        weights, response = ends @ self.linear.weights, ends @ self.linear.response
        noise = self.mechanism.gather(weights**2, np) - response**2
        scatter = weights**2 @ self.seen - response**2 @ (self.linear.shares @ self.seen)
        errors = np.sqrt(np.maximum(scatter, noise.min(axis=1)).clip(min=0) / self.n)
        certain = errors < 1e-12  # all or nothing: no noise, and nothing that could be missed
        bias = np.linalg.norm(ends @ self.linear.missed, axis=1)
        reach = np.where(certain, 0, bias_aware_reach(bias, np.where(certain, 1, errors), alpha))
        values = weights @ self.seen
        values = np.where(certain, np.rint(values), values)
        columns = values, errors, values - reach, values + reach
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [Estimate(*row) for row in rows]


def _limited(value: float, low: float, high: float, z: float) -> Estimate:
    """Return *value* within its limits, which make room for one that is no share.

    So parts still add up where noise makes one of them negative.
    """
    error = (high - low) / (2 * z)
    if value < 0 or value > 1:
        return Estimate(value, error, min(low, value), max(high, value))
    return Estimate(min(max(value, low), high), error, low, high)


CHOSEN: Final = 1 / 3  # of alpha is left to the limits of a part
BEYOND: Final = 1 << 16  # thresholds behind any bin: the open end of a part
_EXACT: Final = 1e-12  # a standard error that is none
_WIDTHS: Final = sorted({1, *(part << power for part in (2, 3) for power in range(10))})


class _Means(NamedTuple):
    """What limits of k parts are made of: rows are the widths that are tried, shape (widths, k)."""

    variances: Floats  # of one report
    guesses: Floats  # the means, were the population that of the guide


@lru_cache(maxsize=8)
def _sums(mechanism: DistributionMechanism) -> tuple[Floats, Floats]:
    """Return the weights of the bins' shares, and the sums of those of F before each threshold.

    Shapes (bins, symbols) and (bins + 2, symbols).
    """
    laws = mechanism.spread(np.eye(mechanism.bins), np)
    precision = laws / laws.mean(axis=0)  # of symbols, were all bins alike
    shares = np.linalg.solve(precision @ laws.T, precision)
    steps = np.cumsum(np.vstack([np.zeros_like(shares[:1]), shares]), axis=0)
    return shares, np.cumsum(np.vstack([np.zeros_like(steps[:1]), steps]), axis=0)


@dataclass(frozen=True)
class AnyShape:
    """Limits of parts of a population of any shape: nothing is assumed but its range.

    It has shares *seen* of symbols, and a *guide* to those of its bins.  A part of the population
    is two thresholds: the bins from the first to before the second.  Below 0 and above ``bins``
    everything is known.

    The share of every bin has one unbiased estimate that is linear in the reports and assumes
    nothing, and so has F(c), the share of the bins before c.  Its noise is large.  But F rises, so
    its mean over the last w thresholds up to c is at most F(c), and over the next w from c at least
    F(c), whatever the population is; and such a mean has less noise, the more so the larger w.  A
    limit of F(c) is the mean and z standard errors, at the w that would make the interval narrowest
    were the population that of the smooth estimate.  Of a part, both ends have such means.

    So an atom, a spike or a gap widens the interval near it and cannot make it miss.  The choice of
    w sees the same reports, which costs coverage where hardly any device is: two thirds of alpha
    pay for it.  That this is enough is measured, not proved (``python -m benchmarks rough``).

    A quantile may be any bin between the first and the last at which the limits of F do not exclude
    it.  Its own bin is excluded as seldom as its own limits fail, so whatever other bins do by
    chance can only widen the interval.  To exclude a bin by the limits of F at others would fail
    oftener: at the edge of a gap F is the same at every bin of it, and each would be one more test.
    That bins are whole pays for the choice of w here.

    Source: Dümbgen, Bernoulli 1998, and Cai, Low, Xia, Annals of Statistics 2013: limits of
        monotone curves by means of one side, and how narrow they can be.
    """

    mechanism: DistributionMechanism
    seen: Floats
    n: int
    guide: Floats  # smooth, no share below 0

    @classmethod
    def of(cls, mechanism: DistributionMechanism, seen: Floats, n: int) -> AnyShape:
        """Take the shares *seen* of the symbols among *n* > 0 reports."""
        return cls(mechanism, seen, n, simplex_l2(linear_cdf(mechanism, n).shares @ seen))

    def limits(self, inner: ArrayLike, outer: ArrayLike, alpha: float) -> tuple[Floats, Floats]:
        """Return lower and upper limits of shares, each shape (parts,), within 0 and 1.

        Args: inner, outer: thresholds, shape (parts, 2), of bins that are wholly in the part, and
              of all bins that reports of the part may come from.
        """
        low = self._limits(np.asarray(inner), CHOSEN * alpha, -1)
        high = self._limits(np.asarray(outer), CHOSEN * alpha, 1)
        return low, high

    def quantile_bins(self, levels: Sequence[float], alpha: float) -> Ints:
        """Return the first and the last bin that each quantile may be, shape (levels, 2)."""
        ends = np.arange(self.mechanism.bins + 1)
        parts = np.transpose([np.full(ends.size, -BEYOND), ends])
        low = self._limits(parts, alpha, -1)[:-1]
        high = self._limits(parts, alpha, 1)[1:]
        low[0], high[-1] = 0, 1
        bins = []
        for level in levels:
            first, last = np.argmax(high >= level), low.size - 1 - np.argmax(low[::-1] < level)
            if first > last:  # limits that cross, hardly ever: where both are nearest to it
                first = last = np.argmin(np.maximum(low - level, level - high))
            bins.append((first, last))
        return np.array(bins)

    def _limits(self, parts: Ints, alpha: float, side: int) -> Floats:
        """Return the limits of *parts* on one *side*: -1 for lower ones, 1 for upper ones."""
        most = max(self.mechanism.bins // 2, 1)
        widths = np.array([width for width in _WIDTHS if width <= most])
        means, z = self._means(parts, widths, side), normal_quantile(alpha)
        errors = np.sqrt(means.variances.clip(0) / self.n)
        best = np.argmin(side * means.guesses + z * errors, axis=0)
        symbols, bins = self._weights(parts, widths[best], side)
        least = (self.mechanism.gather(symbols**2, np) - bins**2).min(axis=1)
        variance = np.maximum(means.variances[best, np.arange(len(parts))], least).clip(0)
        middle = bins @ (_sums(self.mechanism)[0] @ self.seen)
        error = np.sqrt(variance / self.n)
        middle = np.where(error < _EXACT, np.rint(middle), middle)  # nobody, or all
        limits: Floats = (middle + side * z * error).clip(0, 1)
        return limits

    def _means(self, parts: Ints, widths: Ints, side: int) -> _Means:
        variances, guesses = [], []
        for width in widths:
            symbols, bins = self._weights(parts, np.full(len(parts), width), side)
            guesses.append(bins @ self.guide)
            squares = np.square(symbols, out=symbols), np.square(bins, out=bins)  # in their place
            variances.append(squares[0] @ self.seen - squares[1] @ self.guide)
        return _Means(np.array(variances), np.array(guesses))

    def _weights(self, parts: Ints, widths: Ints, side: int) -> tuple[Floats, Floats]:
        """Return weights of symbols and of bins, nowhere above those of the parts, or below.

        At its upper end a lower limit takes the mean of F over the *widths* thresholds up to it, at
        its lower end over those from it; an upper limit the other way round.
        """
        before, behind = (widths - 1, 0) if side < 0 else (0, widths - 1)
        upper = self._mean(parts[:, 1] - before, widths)
        if (parts[:, 0] == -BEYOND).all():
            return upper
        for weights, lower in zip(upper, self._mean(parts[:, 0] - behind, widths), strict=True):
            weights -= lower
        return upper

    def _mean(self, first: Ints, widths: Ints) -> tuple[Floats, Floats]:
        """Return weights of symbols and of bins in the mean of F over *widths* from *first* on."""
        sums, bins = _sums(self.mechanism)[1], self.mechanism.bins

        def before(threshold: Ints) -> Floats:
            rows = sums.take(threshold.clip(0, bins + 1), axis=0)
            if (beyond := threshold - bins - 1).max(initial=0) > 0:
                rows += beyond.clip(0)[:, None]  # behind the last bin F is 1 at every threshold
            return rows

        symbols = before(first + widths)  # a matrix of a megabyte: each step in its place
        symbols -= before(first)
        symbols /= widths[:, None]
        shares = (first + widths - 1)[:, None] - np.arange(bins)
        part = shares / widths[:, None]
        return symbols, np.maximum(np.minimum(part, 1, out=part), 0, out=part)
