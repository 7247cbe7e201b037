"""Whether a source differs from all others as it did not in its own past.  Pure.

A source is the key under which reports came.  What devices under one key hold may always differ
from the rest, so each source is held against its own past: its estimates less those of the rest, in
an epoch, against the mean of the same differences before.  What all sources do together drops out.
A finding says that something began in one source: a build that records the wrong thing, fakes under
a key that leaked, or the truth of those devices.  Nothing is ever excluded because of it.

What it does not see: fakes spread over all keys alike, and what went on from the beginning.

Beside an estimate stands a mean over sources that a few of them cannot move far (``trimmed``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log, sqrt
from typing import Final, NamedTuple

import numpy as np

from client_sdk.registry.metric import Metric

from ...estimation.arrays import Floats, Ints
from ...estimation.estimate import normal_quantile
from ...estimation.significance import student_quantile
from .anomaly import FALSE_ALARM, estimate_name
from .checks import LEAST_EARLIER, EpochEstimates, epoch_estimates

LEAST: Final = 500  # reports of a source, and of the rest; fewer are not near enough to normal ones
# Of the chance of a false alarm, the part that normal tails get: those of counts are skew.
_NORMAL: Final = 0.25
LEAST_KEPT: Final = 4  # sources of a trimmed mean, or nothing is known of how they spread
_MOST_SOURCES: Final = 1_000  # far more than are kept apart
_ROUNDING: Final = 1e-9  # 0.3 of ten sources are three
_OWN: Final = log(20)  # -log of the chance that a tail of chi-square says that a difference drifts


class Tallied(NamedTuple):
    """The tally of one source in one epoch."""

    tally: Ints  # int64, shape (tally_size,)
    n: int


def differences(metric: Metric, sources: Mapping[str | None, Tallied]) -> dict[str, EpochEstimates]:
    """Return of each source that has enough reports its estimates less those of all others.

    Args: sources: of one epoch; None is what came under no known key, which is of the others only.
    """
    mechanism = metric.mechanism
    if not mechanism.unbiased or len(sources) < 2:
        return {}
    tally = sum(part.tally for part in sources.values())
    n = sum(part.n for part in sources.values())
    differing = {}
    for source, part in sources.items():
        if source is None or part.n < LEAST or n - part.n < LEAST:
            continue
        own = epoch_estimates(mechanism, part.tally, part.n)
        rest = epoch_estimates(mechanism, tally - part.tally, n - part.n)
        differing[source] = EpochEstimates(
            own.values - rest.values, own.variances + rest.variances, part.n
        )
    return differing


def source_findings(
    metric: Metric,
    now: Mapping[str, EpochEstimates],
    past: Sequence[Mapping[str, EpochEstimates]],
    alpha: float = FALSE_ALARM,
) -> Iterator[str]:
    """Yield a sentence on each source whose differences are not those of its past.

    All comparisons of an epoch together raise a false alarm with a chance of *alpha* at most, if
    the difference of a source stays as it was, or goes on to scatter as it did: Bonferroni over
    sources and estimates.  A difference that scattered more than its noise is held by Student's law
    against what it scattered.

    Args: now, past: what ``differences`` returned, of an epoch and of those before it.
    """
    for source, own in sorted(now.items()):
        before = [epoch[source] for epoch in past if source in epoch]
        if len(before) < LEAST_EARLIER:
            continue
        each = _NORMAL * alpha / (len(now) * own.values.size)
        score, limit = _score(own, before, each)
        place = int(np.argmax(score))
        if score[place] > limit:
            name = estimate_name(metric, place)
            size = f"by {score[place]:.1f} standard errors, chance gives {limit:.1f}"
            yield (
                f"key {source} differs from all other keys as it did not before: {name} {size};"
                " a build may record something else, its devices may have changed, or fakes began"
            )


def _score(
    own: EpochEstimates, before: Sequence[EpochEstimates], alpha: float
) -> tuple[Floats, float]:
    """Return how far each difference is from its mean before, in units of one limit for all."""
    values = np.array([epoch.values for epoch in before])
    usual = np.array([epoch.variances for epoch in before]).mean(axis=0)
    count, middle = len(before), values.mean(axis=0)
    scatter = values.var(axis=0, ddof=1)
    limit = normal_quantile(alpha)
    tail = 1 + 2 * sqrt(_OWN / (count - 1)) + 2 * _OWN / (count - 1)
    noise = limit * np.sqrt(own.variances + usual / count)
    drift = student_quantile(alpha, count - 1) * np.sqrt(scatter * (1 + 1 / count))
    bound = np.where(scatter > tail * usual, np.maximum(noise, drift), noise)
    return np.abs(own.values - middle) / bound * limit, limit


class Trimmed(NamedTuple):
    """Means over sources without the lowest and the highest, item by item; shape (estimates,)."""

    values: Floats
    low: Floats
    high: Floats
    dropped: int  # sources at each end: so many can be wrong in any way
    of: int


def least_sources(part: float) -> int:
    """Return how many sources a mean needs that drops a *part* of them at each end.

    Raises: ValueError: no part from 0 to 1/2 of as many keys as there can be leaves enough.
    """
    for count in range(1, _MOST_SOURCES + 1) if part > 0 else ():
        if (dropped := _dropped(part, count)) and count - 2 * dropped >= LEAST_KEPT:
            return count
    rule = f"must be above 0 and leave {LEAST_KEPT} of at most {_MOST_SOURCES} sources"
    raise ValueError(rule)


def trimmed(
    metric: Metric, sources: Sequence[Tallied], part: float, alpha: float
) -> Trimmed | None:
    """Return the mean over *sources* without a *part* of them at each end; None: too few.

    Every source counts alike, however many reports it has: what one key can do does not grow with
    its reports.  So of sources that differ, or of different size, it is another number than the
    estimate from all reports.  With g sources dropped at each end, g wrong ones move it within the
    range of the others; g + 1 can move it anywhere.  The interval is Student's, from the spread of
    the sources themselves.

    Args:   alpha: 1 - level of the interval.
    Raises: ValueError: as ``least_sources``.
    Source: Tukey, McLaughlin, Sankhya 1963: the winsorized variance and h - 1 degrees for h sources
            that are kept.  Recalled, and held against its coverage by a test.
    """
    count = len(sources)
    if count < least_sources(part):
        return None
    own = [epoch_estimates(metric.mechanism, each.tally, each.n).values for each in sources]
    return _trimmed_mean(np.array(own), part, alpha)


def _trimmed_mean(own: Floats, part: float, alpha: float) -> Trimmed:
    """Return the mean over the first axis, with its interval."""
    count = len(own)
    ordered, dropped = np.sort(own, axis=0), _dropped(part, count)
    kept = count - 2 * dropped
    values = ordered[dropped : count - dropped].mean(axis=0)
    winsorized = np.clip(ordered, ordered[dropped], ordered[count - dropped - 1])
    error = winsorized.std(axis=0, ddof=1) * sqrt(count) / kept
    reach = student_quantile(alpha, kept - 1) * error
    return Trimmed(values, values - reach, values + reach, dropped, count)


def _dropped(part: float, count: int) -> int:
    return int(part * count + _ROUNDING)
