"""Checks of an epoch: of its tally alone, and against the epochs before it.  Pure.

A check of one tally holds what noise alone decides against what noise can do.  It takes tallies of
any leading shape, the reports of each, and the chance of a false alarm; where it does not apply it
returns None.  Of earlier epochs the noise is known, and how the truth itself goes from epoch to
epoch is learned (``change``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import exp, log, sqrt
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from client_sdk.mechanisms import (
    DistributionMechanism,
    KeyValueMechanism,
    MeanMechanism,
)
from client_sdk.registry.metric import Metric

from ...estimation.arrays import AnyMechanism, Floats, Ints, Numbers
from ...estimation.estimate import normal_quantile
from ...estimation.significance import student_quantile

_LEAST_CELL: Final = 25  # expected reports of a cell; fewer are not near enough to a normal law


class Score(NamedTuple):
    """What a check found in tallies of any leading shape, and the most that noise gives."""

    statistic: Floats
    limit: float


Check: TypeAlias = Callable[[AnyMechanism, Ints, int, float], Score | None]


def _check_sum(mechanism: AnyMechanism, tally: Ints, n: int, alpha: float) -> Score | None:
    """Compare the ones of unary reports with n (p + (k-1) q), in bits, by Bernstein's bound.

    Every report has one bit of chance p and k - 1 of chance q, whatever its item is.
    """
    coins = mechanism.noise_law(tally, np).coins
    if coins is None:
        return None
    ones, p, q, others = coins
    variance = n * (p * (1 - p) + others * q * (1 - q))
    bits = log(2 / alpha)
    return Score(
        abs(ones - n * (p + others * q)), bits / 3 + sqrt(bits**2 / 9 + 2 * bits * variance)
    )


def _check_dispersion(mechanism: AnyMechanism, tally: Ints, n: int, alpha: float) -> Score | None:
    """Compare counts of what every device draws evenly with evenness, by chi-square.

    The limit is that of Laurent and Massart for a chi-square law.
    """
    draws = mechanism.noise_law(tally, np).draws
    if draws is None:
        return None
    counts, chance = draws
    cells = counts.shape[-1]
    if cells < 2 or n * chance < _LEAST_CELL or chance >= 1:
        return None
    scale = n * chance * (1 - chance) * cells / (cells - 1)
    statistic = ((counts - n * chance) ** 2).sum(axis=-1) / scale
    bits = log(1 / alpha)
    return Score(statistic, cells - 1 + 2 * sqrt((cells - 1) * bits) + 2 * bits)


def _check_lower(mechanism: AnyMechanism, tally: Ints, n: int, alpha: float) -> Score | None:
    """Add up how far cells fall short of n q, q their least chance, in squared deviations.

    Cells are independent or negatively associated here, and each is likelier to be large than
    Binomial(n, q), so the sum is at most that of as many halved normal squares; the limit is
    Chernoff's for them.  Cells of which few are expected are left out.
    """
    least = mechanism.noise_law(tally, np).lowest
    if least is None:
        return None
    q = np.broadcast_to(least, tally.shape[-1:])
    enough = (n * q >= _LEAST_CELL) & (q < 1)
    if not enough.any():
        return None
    q, cells = q[enough], tally[..., enough]
    short = np.minimum((cells - n * q) / np.sqrt(n * q * (1 - q)), 0)
    return Score((short**2).sum(axis=-1), shortfall_limit(cells.shape[-1], alpha))


def _check_upper(mechanism: AnyMechanism, tally: Ints, n: int, alpha: float) -> Score | None:
    """Compare every count with the largest chance that a value gives its cell, in nats.

    A count is a sum of coins, none of a larger chance, so by Chernoff n KL(count/n, chance) is
    above log(cells/alpha) in some cell with *alpha* at most.
    """
    largest = mechanism.noise_law(tally, np).highest
    if largest is None:
        return None
    most = np.broadcast_to(largest, tally.shape[-1:])
    uncertain = (most > 0) & (most < 1)
    if not uncertain.any():
        return None
    most, cells = most[uncertain], tally[..., uncertain]
    seen = np.maximum(cells / n, most)
    rest = np.maximum(1 - seen, np.finfo(float).tiny)
    nats = n * (seen * np.log(seen / most) + rest * np.log(rest / (1 - most)))
    return Score(nats.max(axis=-1), log(cells.shape[-1] / alpha))


@lru_cache(maxsize=1_024)  # of few sizes and chances, asked for each epoch of each page
def shortfall_limit(cells: int, alpha: float) -> float:
    """Return what a sum of *cells* squares min(z, 0)^2 of normal z exceeds with *alpha* at most.

    Chernoff: E e^(s min(z,0)^2) = (1 + (1-2s)^(-1/2)) / 2, for the best s below 1/2.
    """
    s = np.linspace(0.001, 0.499, 499)
    exponents = cells * np.log((1 + (1 - 2 * s) ** -0.5) / 2) - log(alpha)
    return float((exponents / s).min())


SINGLE: Final[dict[str, Check]] = {
    "total": _check_sum,
    "spread": _check_dispersion,
    "floor": _check_lower,
    "ceiling": _check_upper,
}


LEAST_EARLIER: Final = 3  # epochs; of so few the law is so wide that only leaps are found
_LEAST_POOLED: Final = 4  # estimates; of fewer nothing is learned from the others
_DRIFT: Final = 0.1  # of a share: what it may always go from epoch to epoch, standard deviation
_MOST_LOG: Final = 700.0  # of a number of reports: beyond it a float overflows
_OWN: Final = log(20)  # -log of the chance that a tail of chi-square makes an item its own case


class EpochEstimates(NamedTuple):
    """What an epoch tells: estimates a report, their variances, and how many reports it has."""

    values: Floats
    variances: Floats
    n: int


def epoch_estimates(mechanism: AnyMechanism, tally: Ints, n: int) -> EpochEstimates:
    """Return estimates a report, and their variances if each epoch draws its devices anew.

    To the noise this adds f (1-f) of shares, and the most that numbers of this mean can vary.
    """
    totals, variances = mechanism.debias(tally, n, np)
    values, most = totals / n, _most(mechanism, totals.size)
    inside = np.clip(values, 0, most)
    return EpochEstimates(values, variances / n**2 + inside * (most - inside) / n, n)


def change(
    metric: Metric,
    tally: Ints,
    n: int,
    past: Sequence[EpochEstimates],
    alpha: float,
    known: EpochEstimates | None = None,
) -> Score | None:
    """Compare estimates with the mean of earlier ones, item by item.

    Two laws say how far an estimate may go; the one that allows less decides, each with half of the
    chance.  What is found is in standard errors, so stretched that one limit serves all items.

    *Alone*: the spread of each estimate is learned from its own past, but is at least the noise;
    known of k epochs, it makes the law Student's with k - 1 degrees.  It holds whatever each
    estimate does, and after few epochs it sees leaps only.

    *Pooled*: shares go on to differ in proportion to themselves, τ f, with τ = DRIFT at least.
    What all items differ beyond their noise says how much more it is, with
    (k - 1) (Σ f²)² / Σ f⁴ degrees.  A rare item, whose share can hardly drift, is so held against
    little more than its noise, of which nothing must be learned.  An item that has differed much
    more than that is left to its own past.

    Args:   known: the estimates of *tally*, if somebody has them.
    Source: derived here; Laurent and Massart, Annals of Statistics 2000, for chi-square's tail.
    """
    mechanism = metric.mechanism
    if len(past) < LEAST_EARLIER or not mechanism.unbiased:
        return None
    now = known or epoch_estimates(mechanism, tally, n)
    values = np.array([epoch.values for epoch in past])
    usual = np.array([epoch.variances for epoch in past]).mean(axis=0)
    middle, each = values.mean(axis=0), alpha / now.values.size
    scatter = ((values - middle) ** 2).sum(axis=0) / (len(past) - 1)
    fewer = np.maximum(now.variances - usual, 0)  # of fewer reports than before
    bound = _alone(scatter, usual, fewer, len(past), each / 2)
    if now.values.size >= _LEAST_POOLED:
        shares = np.clip(middle / _most(mechanism, now.values.size), 0, 1)
        shares += np.sqrt(usual / len(past))
        bound = np.minimum(bound, _pooled(scatter, usual, fewer, shares, len(past), each / 2))
    limit = normal_quantile(each)
    return Score(np.abs(now.values - middle) / bound * limit, limit)


def more_reports(n: int, past: Sequence[EpochEstimates], alpha: float) -> Score | None:
    """Compare the number of reports with earlier ones: it has no noise.

    Only more than usual is found: fewer may still be on their way.
    """
    if len(past) < LEAST_EARLIER:
        return None
    counts = np.array([epoch.n for epoch in past], dtype=float)
    limit, usual = normal_quantile(2 * alpha), float(counts.mean())
    return Score(np.array((n - usual) / (most_reports(counts, alpha) - usual) * limit), limit)


def most_reports(counts: Floats, alpha: float) -> float:
    """Return the most reports by chance after epochs with *counts*, by the widest of three laws.

    An alarm has a chance of at most *alpha* if any one of them is true: numbers scatter as those of
    independent devices, normally, or as a product of many causes (log-normally).  Of independent
    devices the root of the number is nearly normal, with a variance of 1/4.

    Args:   counts: above 0, of two epochs or more.
    Source: Anscombe, Biometrika 1948, for the root; Student's law for the two others.
    """
    usual, more = float(counts.mean()), 1 + 1 / counts.size
    normal, student = normal_quantile(2 * alpha), student_quantile(2 * alpha, counts.size - 1)
    logs = np.log(counts)
    return max(
        (sqrt(usual) + normal / 2 * sqrt(more)) ** 2,
        usual + student * sqrt(counts.var(ddof=1) * more),
        exp(min(logs.mean() + student * sqrt(logs.var(ddof=1) * more), _MOST_LOG)),
    )


def _alone(scatter: Floats, usual: Floats, fewer: Floats, count: int, alpha: float) -> Floats:
    """Return how far each estimate may go by its own past, by Student's law."""
    spread = np.maximum(scatter, usual) * (1 + 1 / count) + fewer
    return student_quantile(alpha, count - 1) * np.sqrt(spread)


def _pooled(
    scatter: Floats, usual: Floats, fewer: Floats, shares: Floats, count: int, alpha: float
) -> Floats:
    """Return how far each estimate may go by its noise, and by what all have gone beyond it."""
    squares, more = shares**2, 1 + 1 / count
    freedom = (count - 1) * max(int(squares.sum() ** 2 / (squares**2).sum()), 1)
    beyond = max(float((scatter - usual).sum() / squares.sum()) - _DRIFT**2, 0)
    certain, learned = usual + _DRIFT**2 * squares, beyond * squares
    noise, drift = normal_quantile(alpha) ** 2, student_quantile(alpha, freedom) ** 2
    bound = noise * (certain * more + fewer) + drift * learned * more
    tail = 1 + 2 * sqrt(_OWN / (count - 1)) + 2 * _OWN / (count - 1)
    own = student_quantile(alpha, count - 1) ** 2 * scatter * more
    return np.sqrt(np.where(scatter > tail * (certain + learned), np.maximum(bound, own), bound))


def _most(mechanism: AnyMechanism, size: int) -> Numbers:
    """Return the most that one device can add to each of *size* estimates; the least is 0."""
    if isinstance(mechanism, MeanMechanism | DistributionMechanism):
        return float(mechanism.top)
    if isinstance(mechanism, KeyValueMechanism):  # holders of each key, then sums of numbers
        return np.repeat([1.0, float(mechanism.top)], size // 2)
    return 1.0
