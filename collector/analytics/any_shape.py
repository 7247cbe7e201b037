"""Limits of parts of a population of any shape: nothing is assumed but its range.  Pure.

The share of every bin has one unbiased estimate that is linear in the reports and assumes nothing,
and so has F(c), the share of the bins before c.  Its noise is large.  But F rises, so its mean over
the last w thresholds up to c is at most F(c), and over the next w from c at least F(c), whatever
the population is; and such a mean has less noise, the more so the larger w.  A limit of F(c) is the
mean and z standard errors, at the w that would make the interval narrowest were the population that
of the smooth estimate.  Of a part between two thresholds, both ends have such means.

So an atom, a spike or a gap widens the interval near it and cannot make it miss.  The choice of w
sees the same reports, which costs coverage where hardly any device is: two thirds of alpha pay for
it.  That this is enough is measured, not proved (``python -m benchmarks rough``).

A quantile may be any bin at which the limits of F do not exclude it.  There are many bins, and by
chance a limit fails at one that is far away; so a bin is also out if F is surely above the level
at a lower one, or surely below it at a higher one: at FAR of alpha, as there are many.  The whole
bins pay for the choice of w here.

Source: Dümbgen, Bernoulli 1998, and Cai, Low, Xia, Annals of Statistics 2013: limits of monotone
    curves by means of one side, and how narrow they can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from client_sdk.mechanisms import DistributionMechanism

from ..estimation.estimate import normal_quantile
from .postprocess import simplex_l2
from .quantiles import linear_cdf

CHOSEN: Final = 1 / 3  # of alpha is left to the limits of a part
FAR: Final = 1 / 4  # of alpha; so quantiles keep 95 % where reports are few and density is low
BEYOND: Final = 1 << 16  # thresholds behind any bin: the open end of a part
_EXACT: Final = 1e-12  # a standard error that is none
_WIDTHS: Final = sorted({1, *(part << power for part in (2, 3) for power in range(10))})


class _Means(NamedTuple):
    """What limits of k parts are made of: rows are the widths that are tried, shape (widths, k)."""

    variances: Any  # of one report
    guesses: Any  # the means, were the population that of the guide


@lru_cache(maxsize=8)
def _sums(mechanism: DistributionMechanism) -> tuple[Any, Any]:
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
    """The reports of a population: shares *seen* of symbols, and a *guide* to those of its bins.

    A part of the population is two thresholds: the bins from the first to before the second.  Below
    0 and above ``bins`` everything is known.
    """

    mechanism: DistributionMechanism
    seen: Any
    n: int
    guide: Any  # smooth, no share below 0

    @classmethod
    def of(cls, mechanism: DistributionMechanism, seen: Any, n: int) -> AnyShape:
        """Take the shares *seen* of the symbols among *n* > 0 reports."""
        return cls(mechanism, seen, n, simplex_l2(linear_cdf(mechanism, n).shares @ seen))

    def limits(self, inner: Any, outer: Any, alpha: float) -> tuple[Any, Any]:
        """Return lower and upper limits of shares, each shape (parts,), within 0 and 1.

        Args: inner, outer: thresholds, shape (parts, 2), of bins that are wholly in the part, and
              of all bins that reports of the part may come from.
        """
        low = self._limits(np.asarray(inner), [CHOSEN * alpha], -1)[0]
        high = self._limits(np.asarray(outer), [CHOSEN * alpha], 1)[0]
        return low, high

    def quantile_bins(self, levels: Sequence[float], alpha: float) -> Any:
        """Return the first and the last bin that each quantile may be, shape (levels, 2)."""
        ends = np.arange(self.mechanism.bins + 1)
        parts = np.transpose([np.full(ends.size, -BEYOND), ends])
        (low, below), (high, above) = (
            self._limits(parts, [alpha, FAR * alpha], side) for side in (-1, 1)
        )
        low = np.maximum(low, np.maximum.accumulate(below))[:-1]
        high = np.minimum(high, np.minimum.accumulate(above[::-1])[::-1])[1:]
        low[0], high[-1] = 0, 1
        bins = []
        for level in levels:
            (possible,) = np.nonzero((low < level) & (level <= high))
            if not possible.size:  # limits that cross, hardly ever: where both are nearest to it
                possible = np.argmin(np.maximum(low - level, level - high), keepdims=True)
            bins.append((possible[0], possible[-1]))
        return np.array(bins)

    def _limits(self, parts: Any, alphas: Sequence[float], side: int) -> list[Any]:
        """Return the limits of *parts* on one *side*: -1 for lower ones, 1 for upper ones."""
        most = max(self.mechanism.bins // 2, 1)
        widths = np.array([width for width in _WIDTHS if width <= most])
        means = self._means(parts, widths, side)
        unbiased = _sums(self.mechanism)[0] @ self.seen
        limits = []
        for z in map(normal_quantile, alphas):
            errors = np.sqrt(means.variances.clip(0) / self.n)
            best = np.argmin(side * means.guesses + z * errors, axis=0)
            symbols, bins = self._weights(parts, widths[best], side)
            least = (self.mechanism.gather(symbols**2, np) - bins**2).min(axis=1)
            variance = np.maximum(means.variances[best, np.arange(len(parts))], least).clip(0)
            middle, error = bins @ unbiased, np.sqrt(variance / self.n)
            middle = np.where(error < _EXACT, np.rint(middle), middle)  # nobody, or all
            limits.append((middle + side * z * error).clip(0, 1))
        return limits

    def _means(self, parts: Any, widths: Any, side: int) -> _Means:
        variances, guesses = [], []
        for width in widths:
            symbols, bins = self._weights(parts, np.full(len(parts), width), side)
            variances.append(symbols**2 @ self.seen - bins**2 @ self.guide)
            guesses.append(bins @ self.guide)
        return _Means(np.array(variances), np.array(guesses))

    def _weights(self, parts: Any, widths: Any, side: int) -> tuple[Any, Any]:
        """Return weights of symbols and of bins, nowhere above those of the parts, or below.

        At its upper end a lower limit takes the mean of F over the *widths* thresholds up to it, at
        its lower end over those from it; an upper limit the other way round.
        """
        before, behind = (widths - 1, 0) if side < 0 else (0, widths - 1)
        upper = self._mean(parts[:, 1] - before, widths)
        if (parts[:, 0] == -BEYOND).all():
            return upper
        lower = self._mean(parts[:, 0] - behind, widths)
        return upper[0] - lower[0], upper[1] - lower[1]

    def _mean(self, first: Any, widths: Any) -> tuple[Any, Any]:
        """Return weights of symbols and of bins in the mean of F over *widths* from *first* on."""
        sums, bins = _sums(self.mechanism)[1], self.mechanism.bins

        def before(threshold: Any) -> Any:  # behind the last bin F is 1 at every threshold
            return sums[threshold.clip(0, bins + 1)] + (threshold - bins - 1).clip(0)[:, None]

        symbols = (before(first + widths) - before(first)) / widths[:, None]
        last = (first + widths - 1)[:, None]
        return symbols, ((last - np.arange(bins)) / widths[:, None]).clip(0, 1)
