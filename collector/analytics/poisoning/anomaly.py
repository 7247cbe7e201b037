"""Whether the tally of an epoch could have come from honest devices.  Pure.

Each check takes something that the noise alone decides, whatever the devices hold, and compares it
with what noise can do.  A finding says that a tally does not look like honest reports of this
mechanism: fakes, a broken client, or a mechanism that is not the one registered.  Its absence says
little: a report that is made up like an honest one of a chosen value is never found by ``total``,
``spread`` and ``floor``, and ``change`` finds it only when it begins.

========= ============================================== =========================================
total     ones of all items together                     unary reports that support too much, or
                                                         too little
spread    counts of what devices draw at random:         reports about the attacked items only
          rows, cohorts, items
floor     cells below what lies alone give               reports that never lie
ceiling   cells above what any crowd can fill            one report sent again and again
change    estimates against those of earlier epochs      what began suddenly, true or not
reports   their number against that of earlier epochs    fakes beside a steady crowd
========= ============================================== =========================================

All checks of an epoch together raise a false alarm with a chance of FALSE_ALARM at most: ``total``
and ``ceiling`` by bounds for every n, the others where counts are near enough to normal ones, and
``change`` if the truth stays as it was, or goes on to differ from epoch to epoch as it did, and
``reports`` if numbers scatter normally, log-normally or as independent devices do.  A finding of
these two may be of the truth itself, so no chance of fakes follows from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from client_sdk.registry.metric import Metric

from ...estimation.arrays import Ints
from .checks import SINGLE, EpochEstimates, Score, change, epoch_estimates, more_reports

FALSE_ALARM: Final = 1e-4  # chance for a metric and epoch, all checks together
CHECKS: Final = len(SINGLE) + 2  # with the two below; the chance is shared equally
CHANGE: Final = "change"  # the checks that the truth can fail, too
REPORTS: Final = "reports"
TEXTS: Final = {
    "total": "reports support too many or too few items: {statistic:.0f} off",
    "spread": "what devices draw at random is uneven: chi-square {statistic:.0f}",
    "floor": "cells are emptier than lies alone leave them: {statistic:.0f} squared deviations",
    "ceiling": "one report is more frequent than any value makes it: {statistic:.0f} nats",
}


@dataclass(frozen=True)
class Anomaly:
    """A check that failed: the *statistic*, the most that noise gives, and both in words."""

    check: str
    statistic: float
    limit: float
    text: str


def anomalies(
    metric: Metric,
    tally: Ints,
    n: int,
    earlier: Sequence[tuple[Ints, int]] = (),
    alpha: float = FALSE_ALARM,
) -> tuple[Anomaly, ...]:
    """Return what in the *tally* of *n* > 0 reports noise alone does not explain.

    Args: earlier: tally and reports of earlier epochs of the same metric; none below min_reports.
    """
    past = [epoch_estimates(metric.mechanism, *epoch) for epoch in earlier]
    return anomalies_after(metric, tally, n, past, alpha)


def anomalies_after(
    metric: Metric,
    tally: Ints,
    n: int,
    past: Sequence[EpochEstimates],
    alpha: float = FALSE_ALARM,
    known: EpochEstimates | None = None,
) -> tuple[Anomaly, ...]:
    """Do as ``anomalies`` for earlier epochs of which the estimates are known.

    Args: known: the estimates of *tally*, if somebody has them.
    """
    return tuple(_anomalies(metric, tally, n, past, alpha / CHECKS, known))


def _anomalies(
    metric: Metric,
    tally: Ints,
    n: int,
    past: Sequence[EpochEstimates],
    alpha: float,
    known: EpochEstimates | None,
) -> Iterator[Anomaly]:
    for name, check in SINGLE.items():
        score = check(metric.mechanism, tally, n, alpha)
        if score is not None and (statistic := float(score.statistic)) > score.limit:
            text = f"{TEXTS[name].format(statistic=statistic)}, noise gives {score.limit:.0f}"
            yield Anomaly(name, statistic, score.limit, text)
    yield from _since(metric, tally, n, past, alpha, known)


def _since(
    metric: Metric,
    tally: Ints,
    n: int,
    past: Sequence[EpochEstimates],
    alpha: float,
    known: EpochEstimates | None,
) -> Iterator[Anomaly]:
    """Yield what is not as it was in earlier epochs."""
    score = change(metric, tally, n, past, alpha, known)
    for place, statistic in enumerate([] if score is None else np.ravel(score.statistic).tolist()):
        assert score is not None  # noqa: S101 - there is a place
        if statistic > score.limit:
            yield _anomaly(CHANGE, f"{estimate_name(metric, place)} changed", score, statistic)
    score = more_reports(n, past, alpha)
    if score is not None and score.statistic > score.limit:
        usual = sum(epoch.n for epoch in past) / len(past)
        yield _anomaly(
            REPORTS, f"{n} reports, {usual:.0f} are usual: more", score, float(score.statistic)
        )


def _anomaly(check: str, what: str, score: Score, statistic: float) -> Anomaly:
    text = f"{what} by {statistic:.1f} standard errors, chance gives {score.limit:.1f}"
    return Anomaly(check, float(statistic), score.limit, text)


def estimate_name(metric: Metric, place: int) -> str:
    """Return what the estimate at *place* is of."""
    labels = metric.domain.labels
    if place < len(labels):
        return repr(labels[place])
    if metric.domain.grid:
        return "the mean"
    return f"the sum of {labels[place - len(labels)]!r}" if labels else "a cell of strings"
