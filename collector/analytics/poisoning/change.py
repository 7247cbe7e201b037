"""Whether the estimates of an epoch, or its number of reports, are as those before it.  Pure.

The noise is known, and how the truth itself goes from epoch to epoch is learned.  Two laws say how
far an estimate may go; the one that allows less decides, each with half of the chance.

*Alone*: the spread of each estimate is learned from its own past, but is at least the noise; known
of k epochs, it makes the law Student's with k - 1 degrees.  It holds whatever each estimate does,
and after few epochs it sees leaps only.

*Pooled*: shares go on to differ in proportion to themselves, τ f, with τ = DRIFT at least.  What
all items differ beyond their noise says how much more it is, with (k - 1) (Σ f²)² / Σ f⁴ degrees.
A rare item, whose share can hardly drift, is so held against little more than its noise, of which
nothing must be learned.  An item that has differed much more than that is left to its own past.

Source: derived here; Laurent and Massart, Annals of Statistics 2000, for the tail of chi-square.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import Any, Final, NamedTuple

import numpy as np

from client_sdk.mechanisms import (
    DistributionMechanism,
    KeyValueMechanism,
    MeanMechanism,
    Mechanism,
)
from client_sdk.registry.metric import Metric

from ...estimation.estimate import normal_quantile
from ...estimation.significance import student_quantile
from .checks import Score

LEAST_EARLIER: Final = 3  # epochs; of so few the law is so wide that only leaps are found
LEAST_POOLED: Final = 4  # estimates; of fewer nothing is learned from the others
DRIFT: Final = 0.1  # of a share: what it may always go from epoch to epoch, standard deviation
_OWN: Final = log(20)  # -log of the chance that a tail of chi-square makes an item its own case


class EpochEstimates(NamedTuple):
    """What an epoch tells: estimates a report, their variances, and how many reports it has."""

    values: Any
    variances: Any
    n: int


def epoch_estimates(mechanism: Mechanism[Any], tally: Any, n: int) -> EpochEstimates:
    """Return estimates a report, and their variances if each epoch draws its devices anew.

    To the noise this adds f (1-f) of shares, and the most that numbers of this mean can vary.
    """
    totals, variances = mechanism.debias(tally, n, np)
    values, most = totals / n, _most(mechanism, totals.size)
    inside = np.clip(values, 0, most)
    return EpochEstimates(values, variances / n**2 + inside * (most - inside) / n, n)


def change(
    metric: Metric, tally: Any, n: int, past: Sequence[EpochEstimates], alpha: float
) -> Score | None:
    """Compare estimates with the mean of earlier ones, item by item.

    What is found is in standard errors, so stretched that one limit serves all items.
    """
    mechanism = metric.mechanism
    if len(past) < LEAST_EARLIER or not mechanism.unbiased:
        return None
    now = epoch_estimates(mechanism, tally, n)
    values = np.array([epoch.values for epoch in past])
    usual = np.array([epoch.variances for epoch in past]).mean(axis=0)
    scatter, each = values.var(axis=0, ddof=1), alpha / now.values.size
    fewer = np.maximum(now.variances - usual, 0)  # of fewer reports than before
    bound = _alone(scatter, usual, fewer, len(past), each / 2)
    if now.values.size >= LEAST_POOLED:
        shares = np.clip(values.mean(axis=0) / _most(mechanism, now.values.size), 0, 1)
        shares += np.sqrt(usual / len(past))
        bound = np.minimum(bound, _pooled(scatter, usual, fewer, shares, len(past), each / 2))
    limit = normal_quantile(each)
    return Score(np.abs(now.values - values.mean(axis=0)) / bound * limit, limit)


def more_reports(n: int, past: Sequence[EpochEstimates], alpha: float) -> Score | None:
    """Compare the number of reports with earlier ones: it has no noise.

    At least it scatters as independent devices do; beyond that by Student's law.  Only more than
    usual is found: fewer may still be on their way.
    """
    if len(past) < LEAST_EARLIER:
        return None
    counts, more = np.array([epoch.n for epoch in past], dtype=float), 1 + 1 / len(past)
    limit, freedom = normal_quantile(2 * alpha), len(past) - 1
    learned = student_quantile(2 * alpha, freedom) * sqrt(counts.var(ddof=1) * more)
    bound = max(limit * sqrt(counts.mean() * more), learned)
    return Score((n - counts.mean()) / bound * limit, limit) if bound else None


def _alone(scatter: Any, usual: Any, fewer: Any, count: int, alpha: float) -> Any:
    """Return how far each estimate may go by its own past, by Student's law."""
    spread = np.maximum(scatter, usual) * (1 + 1 / count) + fewer
    return student_quantile(alpha, count - 1) * np.sqrt(spread)


def _pooled(scatter: Any, usual: Any, fewer: Any, shares: Any, count: int, alpha: float) -> Any:
    """Return how far each estimate may go by its noise, and by what all have gone beyond it."""
    squares, more = shares**2, 1 + 1 / count
    freedom = (count - 1) * max(int(squares.sum() ** 2 / (squares**2).sum()), 1)
    beyond = max(float((scatter - usual).sum() / squares.sum()) - DRIFT**2, 0)
    certain, learned = usual + DRIFT**2 * squares, beyond * squares
    noise, drift = normal_quantile(alpha) ** 2, student_quantile(alpha, freedom) ** 2
    bound = noise * (certain * more + fewer) + drift * learned * more
    tail = 1 + 2 * sqrt(_OWN / (count - 1)) + 2 * _OWN / (count - 1)
    own = student_quantile(alpha, count - 1) ** 2 * scatter * more
    return np.sqrt(np.where(scatter > tail * (certain + learned), np.maximum(bound, own), bound))


def _most(mechanism: Mechanism[Any], size: int) -> Any:
    """Return the most that one device can add to each of *size* estimates; the least is 0."""
    if isinstance(mechanism, MeanMechanism | DistributionMechanism):
        return float(mechanism.top)
    if isinstance(mechanism, KeyValueMechanism):  # holders of each key, then sums of numbers
        return np.repeat([1.0, float(mechanism.top)], size // 2)
    return 1.0
