"""Estimates with intervals, from a tally: shares, means and means of keys.  Pure.

An interval is for the devices that reported (a fixed population): it says how far the noise of the
mechanism may have moved the number.  It says nothing about devices that did not report.

==================== ===========================================================================
share of an item     the score interval with the skew of its supports (``score_limits``), which
                     keeps its level for rare items and few reports, and for many items at once;
                     exact limits where few lies are expected (``few``)
mean of a key        Fieller's interval (``ratio_limits``), which keeps it for few holders
all others           normal intervals around the unbiased estimate
==================== ===========================================================================

A histogram of a distribution (``histogram``) has none; quantiles come from ``analytics.quantiles``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Final, Protocol, TypeGuard, runtime_checkable

import numpy as np
from msgspec import Struct

from client_sdk.mechanisms import (
    Channel,
    Debiased,
    FrequencyOracle,
    KeyValueMechanism,
    SetMechanism,
    VectorMechanism,
)
from client_sdk.registry.domain import Domain, NumberGrid

from .arrays import AnyMechanism, Bools, Counts, Floats, Ints, Numbers
from .few import are_few, with_exact

_CLOSE: Final = 1e-6  # standard errors of a count nobody holds: where a limit has been found
_STEPS: Final = 100  # far more than the limits of 300 reports take


class Estimate(Struct, frozen=True):  # made a thousand times for a page
    """An unbiased value with its standard error and pointwise interval, all in the same unit."""

    value: float
    std_error: float
    ci_low: float
    ci_high: float


@runtime_checkable
class _AsksSamples(Protocol):
    """A mechanism whose reports about an item come from a random sample of the devices."""

    def share_variance(self, tally: Ints, n: int, np: Any, /) -> tuple[Any, ...]:
        """Return a, b and perhaps c of the variance a + b f(1-f) + c f of a share f's estimate."""


@lru_cache(maxsize=256)  # an answer asks for few levels, once a row
def normal_quantile(alpha: float) -> float:
    """Return z so that a standard normal lies within ±z with probability 1 - *alpha*."""
    return NormalDist().inv_cdf(1 - alpha / 2)


def shares(mechanism: AnyMechanism, tally: Ints, n: int, alpha: float) -> list[Estimate]:
    """Return the share of each item among *n* > 0 reports: unbiased, so it may be below 0.

    Args:   tally: int64, shape (mechanism.tally_size,).  alpha: 1 - level of the intervals.
    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    debiased = mechanism.debias(tally, n, np)
    if is_pure(mechanism):
        low, high = score_limits(mechanism.channel, debiased.totals, n, alpha)
        limits: tuple[Floats, Floats] = low / n, high / n
    elif isinstance(mechanism, _AsksSamples):
        level, bend, *slope = mechanism.share_variance(tally, n, np)
        limits = sampled_limits(debiased.totals / n, level, bend, alpha, *slope)
    else:
        return _estimates(debiased, 1 / n, 0.0, alpha)
    return _rows(debiased.totals / n, np.sqrt(debiased.variances) / n, *limits)


def shares_of_each(
    mechanism: FrequencyOracle | SetMechanism, slices: Sequence[tuple[Ints, int]], alpha: float
) -> list[list[Estimate]]:
    """Return what ``shares`` does of each of *slices*, a tally and its reports: limits at once.

    Raises: InvalidTallyError: a tally cannot have come from its reports.
    """
    debiased = [mechanism.debias(tally, n, np) for tally, n in slices]
    totals = np.array([each.totals for each in debiased])
    reports = np.array([[n] for _, n in slices])
    low, high = score_limits(mechanism.channel, totals, reports, alpha)
    errors = np.sqrt(np.array([each.variances for each in debiased]))
    columns = [part / reports for part in (totals, errors, low, high)]
    return [_rows(*(column[i] for column in columns)) for i in range(len(slices))]


def is_pure(mechanism: AnyMechanism) -> TypeGuard[FrequencyOracle | SetMechanism]:
    """Whether counts are debiased by p and q alone, so that their variance is linear in them."""
    return isinstance(mechanism, FrequencyOracle | SetMechanism) and mechanism.pure


def score_limits(
    channel: Channel, totals: Floats, n: Counts, alpha: float
) -> tuple[Floats, Floats]:
    """Return the limits of counts whose unbiased estimates are *totals*, any shape.

    *n* is a number, or an array of one for each last axis of *totals*, which are then found apart.

    A count c is inside if the estimate lies between the quantiles of its law at c itself.  Supports
    of rare items are skewed, the more so the farther out a quantile lies, so the quantile z takes
    the skew γ of the law in: z + (z^2 - 1) γ / 6.  Without it the limits are those of
    ``linear_limits``, from which they are found step by step.

    Where few lies are expected (``are_few``) the level is kept exactly: limits at which supports
    scatter little are those of ``exact_limits``, and others reach half a support further, as
    supports are whole numbers.  An interval has its own estimate inside.

    Source: Cornish, Fisher, Revue de l'Institut International de Statistique 1938: the expansion,
        to its first term; the moments of n supports, of which c have p and others q, are derived.
    """
    p, q = float(channel.p), float(channel.q)
    w, s = q * (1 - q) / (p - q) ** 2, (1 - p - q) / (p - q)
    z, few = normal_quantile(alpha), are_few(channel, n)
    half = np.where(few, 1 / 2, 0) / (p - q)
    level = np.asarray(n, dtype=np.float64) * w
    low, _ = linear_limits(totals - half, level, s, alpha)
    _, high = linear_limits(totals + half, level, s, alpha)
    low = _skewed(low, totals - half, n, p, q, z)
    high = _skewed(high, totals + half, n, p, q, -z)
    if np.any(few):
        low, high = with_exact(channel, totals, n, alpha, limits=(low, high))
    return np.minimum(low, totals), np.maximum(high, totals)


def _skewed(start: Floats, totals: Floats, n: Counts, p: float, q: float, z: float) -> Floats:
    """Return the counts of which *totals* are the quantiles *z*, beginning at *start*."""
    limits, close = start, _CLOSE * np.sqrt(n * q * (1 - q)) / (p - q)
    axis = -1 if np.ndim(n) else None
    is_off: Bools | bool = True
    for _ in range(_STEPS):
        held = np.minimum(np.maximum(limits, 0), n)  # what a count can be
        holders, others = held * p * (1 - p), (n - held) * q * (1 - q)
        variance = holders + others
        third = holders * (1 - 2 * p) + others * (1 - 2 * q)
        skew = np.clip(third / variance, -np.sqrt(variance), np.sqrt(variance))  # γ is 1 at most
        reach = z * np.sqrt(variance) + (z * z - 1) / 6 * skew
        nearer = totals - reach / (p - q)
        moved = np.abs(nearer - limits).max(axis=axis, keepdims=axis is not None, initial=0.0)
        limits = np.where(is_off, nearer, limits)
        is_off &= moved > close
        if not np.any(is_off):
            break
    return limits


def linear_limits(
    totals: Floats, level: Numbers, slope: Numbers, alpha: float
) -> tuple[Floats, Floats]:
    """Return the limits of counts c with unbiased estimates *totals* of variance level + slope c.

    A count c is inside if the estimate lies within z standard errors of c, taken at c itself:
    (t - c)^2 <= z^2 (level + slope c), so the limits solve a quadratic.

    Source: Wilson, JASA 1927: the score interval; derived here for supports with p and q.
    """
    z = normal_quantile(alpha)
    shift = z * z * slope / 2
    reach = z * np.sqrt(np.maximum(level + totals * slope + shift * slope / 2, 0))
    return totals + shift - reach, totals + shift + reach


def sampled_limits(
    shares: Floats, level: Numbers, bend: Numbers, alpha: float, slope: Numbers = 0.0
) -> tuple[Floats, Floats]:
    """Return the limits of shares whose unbiased estimates are *shares*, any shape.

    A share f is inside if the estimate lies within z standard errors of it, taken at f itself:
    (t - f)^2 <= z^2 (level + bend f(1-f) + slope f), a quadratic again.

    Source: Wilson, JASA 1927, as above; derived here for a sample of devices that answer.
    """
    z = normal_quantile(alpha)
    scale = 1 + z * z * bend
    middle = (shares + z * z * (bend + slope) / 2) / scale
    reach = np.sqrt(np.maximum(middle**2 - (shares**2 - z * z * level) / scale, 0))
    return middle - reach, middle + reach


def mean(
    mechanism: AnyMechanism, domain: NumberGrid, tally: Ints, n: int, alpha: float
) -> Estimate:
    """Return the mean of *n* > 0 numbers in the unit of *domain*.

    Args:   tally: int64, shape (mechanism.tally_size,).  alpha: 1 - level of the interval.
    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    debiased = mechanism.debias(tally, n, np)
    (estimate,) = _estimates(debiased, float(domain.step) / n, float(domain.minimum), alpha)
    return estimate


def coordinates(
    mechanism: VectorMechanism, domain: Domain, tally: Ints, n: int, alpha: float
) -> list[Estimate]:
    """Return the mean of each labelled coordinate of *n* > 0 vectors in the unit of *domain*.

    The first coordinates have the labels.  Intervals are wider by the most that the mechanism's own
    bias can be.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    bias, named = mechanism.bias * domain.extent, slice(len(domain.labels))
    debiased = Debiased(*(part[named] for part in mechanism.debias(tally, n, np)))
    estimates = _estimates(debiased, domain.extent / n, domain.least, alpha)
    return [Estimate(e.value, e.std_error, e.ci_low - bias, e.ci_high + bias) for e in estimates]


def key_shares(mechanism: KeyValueMechanism, tally: Ints, n: int, alpha: float) -> list[Estimate]:
    """Return the share of the *n* > 0 devices that hold each key, as ``shares`` does for items.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    keys = slice(mechanism.domain_size)
    totals, variances = (part[keys] for part in mechanism.debias(tally, n, np))
    low, high = score_limits(mechanism.holding, totals, n, alpha)
    return _rows(totals / n, np.sqrt(variances) / n, low / n, high / n)


def key_means(
    mechanism: KeyValueMechanism, domain: NumberGrid, tally: Ints, n: int, alpha: float
) -> list[Estimate | None]:
    """Return the mean of the numbers of each key in the unit of *domain*, among its holders.

    None where the interval of the holders' share reaches 0: whether anybody holds the key is not
    sure then, and so a mean would be one of nothing.  Values and intervals lie within the range.

    Raises: InvalidTallyError: the tally cannot have come from n reports.
    """
    size, top = mechanism.domain_size, mechanism.top
    totals, _ = mechanism.debias(tally, n, np)
    values, variances = mechanism.means(tally, n, np)
    least, _ = score_limits(mechanism.holding, totals[:size], n, alpha)
    sure = np.flatnonzero(least > 0)
    holders = totals[:size][sure]
    lean = 2 * totals[size:][sure] / top - holders
    law = mechanism.ratio_variance(np.minimum(holders, n), n)
    ends = [np.clip((1 + end) / 2, 0, 1) for end in ratio_limits(lean, holders, *law, alpha)]
    offset, extent = float(domain.minimum), float(domain.maximum - domain.minimum)
    columns = (
        offset + extent / top * values[sure],
        extent / top * np.sqrt(variances[sure]),
        *(offset + extent * end for end in ends),
    )
    rows: list[Estimate | None] = [None] * size
    for key, row in zip(sure.tolist(), _rows(*columns), strict=True):
        rows[key] = row
    return rows


def ratio_limits(
    over: Floats, under: Floats, level: Floats, slope: Floats, alpha: float
) -> tuple[Floats, Floats]:
    """Return the limits of a ratio r of what *over* and *under* estimate, any shape.

    A ratio is inside if over - r under lies within z standard errors of 0, taken at r itself:
    (over - r under)^2 <= z^2 (level + slope r^2), a quadratic.  *under* must be more than z
    standard errors, which bounds the interval.

    Source: Fieller, JRSS B 1954; the variance at r itself as in Wilson's score interval.
    """
    z = normal_quantile(alpha)
    bound = under**2 - z * z * slope
    reach = z * np.sqrt(np.maximum(level * bound + slope * over**2, 0))
    return (over * under - reach) / bound, (over * under + reach) / bound


def mean_of(estimates: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    """Return the mean of independent *estimates*, each of so many reports or devices.

    The mean of n_i each, sum(n_i x_i)/n, has variance sum((n_i s_i)^2)/n^2, and its limits
    are as far as those of its parts add up in squares, so it is as skewed as they are.

    Source: Zou, Donner, Statistics in Medicine 2008: limits of a sum from those of its parts.
    """
    parts = np.array(weights) / sum(weights)
    numbers = np.array([(e.value, e.std_error, e.ci_low, e.ci_high) for e in estimates])
    value = float(parts @ numbers[:, 0])
    apart = np.abs(numbers - numbers[:, :1])
    apart[:, 1] = numbers[:, 1]
    error, below, above = np.sqrt(parts**2 @ apart**2).tolist()[1:]
    return Estimate(value, error, value - below, value + above)


def expected_half_width(mechanism: AnyMechanism, n: int, alpha: float, unit: float) -> float:
    """Return the half-width to expect from *n* reports; *unit* is what a predicted 1.0 means."""
    return normal_quantile(alpha) * mechanism.predict(n) * unit


def _estimates(debiased: Debiased, factor: float, offset: float, alpha: float) -> list[Estimate]:
    values = debiased.totals * factor + offset
    errors = np.sqrt(debiased.variances) * factor
    reach = errors * normal_quantile(alpha)
    return _rows(values, errors, values - reach, values + reach)


def _rows(*columns: Floats) -> list[Estimate]:
    """Return arrays of values, errors, lower and upper ends as one Estimate an entry."""
    return [Estimate(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def quantile_positions(shares: Floats, levels: Sequence[float]) -> Floats:
    """Return the grid of bins at which the distribution reaches *levels*, in bins, from 0.

    The share of a bin is spread evenly over half a bin either side; beyond the ends is cut off.
    """
    bins = shares.shape[-1]
    edges = np.arange(bins + 1) - 0.5
    rows = np.concatenate([np.zeros((*shares.shape[:-1], 1)), np.cumsum(shares, axis=-1)], axis=-1)
    positions = [np.interp(levels, row, edges) for row in rows.reshape(-1, bins + 1)]
    return np.clip(positions, 0, bins - 1).reshape(*shares.shape[:-1], len(levels))
