"""Quantiles of the numbers behind symbols, with intervals.  Pure.

The part F(x) of the population up to a threshold x is estimated by one weight a symbol, so its bias
and variance are known without drawing anything.  The interval of a quantile is where the interval
of F still holds its level; as F rises, a threshold is also out when a lower one is surely above the
level, or a higher one surely below.  Of the many thresholds where F is flat, as in a long tail, one
is so by chance; so for a quantile FAR out they must be OTHERS times as sure.  That intervals then
cover at their level is measured, not proved (``python -m benchmarks distribution``): variances are
estimated from the same reports and errors taken as normal, and with few reports at a small epsilon
upper quantiles are covered less.

Reports cannot tell what is much finer than their noise, so an interval must assume how rough a
population may be: between the ends of the range its density curves no more than a bell's with a
standard deviation of BELL of the range, in root mean square; at the two ends any share may sit.
Then what the weights miss is at most ``bias``, which intervals are widened by.

Source: Donoho, Annals of Statistics 1994: linear estimates with bounded bias, optimal for such a
    class; Armstrong and Kolesár, Econometrica 2018: intervals that allow for the bias; Woodruff,
    JASA 1952: from F to quantiles.  The closed form of the critical value is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import pi, sqrt
from typing import Final

import numpy as np

from client_sdk.mechanisms import DistributionMechanism

from ..estimation.arrays import Floats, Ints, Numbers
from ..estimation.estimate import Estimate, normal_quantile

BELL: Final = 0.06  # part of the range; narrower resolves sharper peaks and widens every interval
_ROUGHER: Final = 2.5  # weights are made for curves so much rougher: bias is a fifth of the noise
THRESHOLDS: Final = 2  # a bin; halfway the errors of two neighbours partly cancel
FAR: Final = 0.05  # a quantile with less than this part of the population beyond it
OTHERS: Final = 10  # about as many thresholds in a tail as have errors of their own
_STEADY: Final = 1.3  # normal quantile, level 80 %; checked for levels from 1 % to 1 - 1e-6
CURVATURE: Final = sqrt(3 / (8 * sqrt(pi))) * BELL**-2.5  # of a bell: root of the integral of f''^2


@dataclass(frozen=True)
class LinearCDF:
    """How symbol shares become F at every threshold: THRESHOLDS a bin, and one at the far end.

    ``weights`` of the symbols, shape (thresholds, symbols), and of the bins as they are met on
    average, ``response``, shape (thresholds, bins).  ``noise`` is the variance of one report from
    each bin, the same shape, and ``bias`` the most that F is off by, shape (thresholds,): the norm
    of the row of ``missed``, which has a column a bend.  ``shares``, shape (bins, symbols), are
    the weights of the shares of the bins.
    """

    weights: Floats
    response: Floats
    noise: Floats
    bias: Floats
    shares: Floats
    missed: Floats


@lru_cache(maxsize=16)  # a page asks for several curves of the same reports
def linear_cdf(mechanism: DistributionMechanism, n: int) -> LinearCDF:
    """Return the weights for *n* > 0 reports: least squares that penalise curvature."""
    laws = mechanism.spread(np.eye(mechanism.bins), np)
    precision = laws * (n / laws.mean(axis=0))  # of symbols, were all bins alike
    curve = mechanism.bins**2.5 / CURVATURE  # of a second difference of shares
    bends = np.diff(np.eye(mechanism.bins)[1:-1], n=2, axis=0) * (curve / _ROUGHER)
    inverse = np.linalg.inv(mechanism.gather(precision, np) + bends.T @ bends)
    missed = _thresholds(np.diff(inverse[:, 1:-1], n=2, axis=1)) * (curve / _ROUGHER**2)
    shares = mechanism.spread(inverse, np) * (n / laws.mean(axis=0))
    weights = _thresholds(shares)
    response = mechanism.gather(weights, np)
    noise = mechanism.gather(weights**2, np) - response**2
    bias = np.linalg.norm(missed, axis=1)
    return LinearCDF(weights, response, noise, bias, shares, missed)


def quantiles(
    mechanism: DistributionMechanism, tally: Ints, n: int, levels: Sequence[float], alpha: float
) -> list[Estimate]:
    """Return the quantiles of *n* > 0 numbers in grid steps from the lowest, with intervals.

    The standard error is the half-width over the normal quantile: intervals need not be symmetric.

    Args:   levels: ascending, in (0, 1).  alpha: 1 - level of the intervals.
    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    seen = mechanism.require_counts(tally, n, np) / n
    low, value, high = quantile_limits(linear_cdf(mechanism, n), seen, n, levels, alpha)
    errors = (high - low) / (2 * normal_quantile(alpha))
    step = mechanism.top / (mechanism.bins - 1)
    return [Estimate(*row) for row in (np.transpose([value, errors, low, high]) * step).tolist()]


def quantile_limits(
    linear: LinearCDF, seen: Floats, n: int, levels: Sequence[float], alpha: float
) -> Floats:
    """Return lower limits, quantiles and upper limits in bins, shape (3, levels).

    Args:   seen: shares of the symbols among *n* reports, shape (symbols,).
    """
    middle, reach = _cdf(linear, seen, n, alpha)
    bins = linear.shares.shape[0]
    places = np.linspace(-0.5, bins - 0.5, middle.size)
    others = _cdf(linear, seen, n, alpha / OTHERS)[1]

    def at(curve: Floats, monotone: Callable[[Floats], Floats]) -> Floats:
        return np.interp(levels, monotone(curve.clip(0, 1)), places)

    is_far = np.minimum(levels, np.subtract(1, levels)) < FAR
    own = at(middle + reach, _from_left), at(middle - reach, _from_right)
    near = at(middle + reach, _from_right), at(middle - reach, _from_left)
    far = at(middle + others, _from_right), at(middle - others, _from_left)
    limits = [
        np.where(is_far, np.maximum(own[0], far[0]), near[0]),
        at(middle, np.sort),
        np.where(is_far, np.minimum(own[1], far[1]), near[1]),
    ]
    # Limits that cross, one time in 1,000, swap; a value outside of both becomes the nearer one.
    low, value, high = np.sort(limits, axis=0).clip(0, bins - 1)
    # A share at an end of the range is read as if spread over half a bin, but it may be an atom.
    low, high = np.where(low < 0.5, 0, low), np.where(high > bins - 1.5, bins - 1, high)
    return np.array([low, value, high])


def _from_left(curve: Floats) -> Floats:
    """Return the highest value so far, so that a place is the first at a level."""
    return np.maximum.accumulate(curve)


def _from_right(curve: Floats) -> Floats:
    """Return the lowest value from here on, so that a place is the last at a level."""
    return np.minimum.accumulate(curve[::-1])[::-1]


def bias_aware_reach(bias: Numbers, errors: Numbers, alpha: float) -> Floats:
    """Return how far an interval must reach to cover whatever the bias is, up to *bias*.

    z(1 + t^2/2), with t the bias in standard *errors* > 0, meets the exact value up to terms of
    t^4 and is above it, but for low levels, which STEADY mends; so is z + t, closer for large t.
    """
    z = normal_quantile(alpha)
    return z * errors + bias * np.minimum(max(z, _STEADY) * bias / (2 * errors), 1)


def _cdf(linear: LinearCDF, seen: Floats, n: int, alpha: float) -> tuple[Floats, Floats]:
    """Return F at every threshold and its half-width, from the shares *seen* of the symbols.

    The variance is that of the reports of these very devices: its estimate is unbiased where the
    curvature is, and at least what it would be if all sat in the bin of the least noise.
    """
    scatter = linear.weights**2 @ seen - linear.response**2 @ (linear.shares @ seen)
    variance = np.maximum(scatter, linear.noise.min(axis=1))[1:-1] / n
    reach = bias_aware_reach(linear.bias[1:-1], np.sqrt(variance), alpha)
    middle = linear.weights @ seen
    middle[0], middle[-1] = 0, 1  # nobody is below the range and all are within, for certain
    return middle, np.concatenate([[0], reach, [0]])


def _thresholds(rows: Floats) -> Floats:
    """Return the sums of *rows* up to each threshold; the row of a bin is spread evenly over it."""
    parts = np.repeat(rows, THRESHOLDS, axis=0) / THRESHOLDS
    return np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(parts, axis=0)])
