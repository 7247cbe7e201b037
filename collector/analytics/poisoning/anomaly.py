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
========= ============================================== =========================================

All checks of an epoch together raise a false alarm with a chance of FALSE_ALARM at most: ``total``
and ``ceiling`` by bounds for every n, the others where counts are near enough to normal ones, and
``change`` if the truth stays as it was, or goes on to differ from epoch to epoch as it did.  A
finding of ``change`` may be of the truth itself, so no chance of fakes follows from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from client_sdk.domains import NumberDomain
from client_sdk.mechanisms import (
    DistributionMechanism,
    KeyValueMechanism,
    MeanMechanism,
    Mechanism,
)
from client_sdk.mechanisms.rappor import RAPPOR
from client_sdk.metric import Metric

from .anomaly_checks import SINGLE, Score
from .student import student_quantile

FALSE_ALARM: Final = 1e-4  # chance for a metric and epoch, all checks together
CHECKS: Final = len(SINGLE) + 1  # with ``change``; the chance is shared equally
CHANGE: Final = "change"  # the check that the truth can fail, too
LEAST_EARLIER: Final = 3  # epochs; of so few the law is so wide that only leaps are found
TEXTS: Final = {
    "total": "reports support too many or too few items: {found:.0f} off",
    "spread": "what devices draw at random is uneven: chi-square {found:.0f}",
    "floor": "cells are emptier than lies alone leave them: {found:.0f} squared deviations",
    "ceiling": "one report is more frequent than any value makes it: {found:.0f} nats",
}


Estimated: TypeAlias = tuple[Any, Any]  # estimates a report, and their variances


@dataclass(frozen=True)
class Anomaly:
    """A check that failed: what was *found*, the most that noise gives, and both in words."""

    check: str
    found: float
    limit: float
    text: str


def anomalies(
    metric: Metric,
    tally: Any,
    n: int,
    earlier: Sequence[tuple[Any, int]] = (),
    alpha: float = FALSE_ALARM,
) -> tuple[Anomaly, ...]:
    """Return what in the *tally* of *n* > 0 reports noise alone does not explain.

    Args: earlier: tally and reports of earlier epochs of the same metric; none below min_reports.
    """
    past = [estimated(metric.mechanism, *epoch) for epoch in earlier]
    return anomalies_after(metric, tally, n, past, alpha)


def anomalies_after(
    metric: Metric, tally: Any, n: int, past: Sequence[Estimated], alpha: float = FALSE_ALARM
) -> tuple[Anomaly, ...]:
    """Do as ``anomalies`` for earlier epochs of which the estimates are known."""
    return tuple(_found(metric, tally, n, past, alpha / CHECKS))


def estimated(mechanism: Mechanism[Any], tally: Any, n: int) -> Estimated:
    """Return estimates a report, and their variances if each epoch draws its devices anew.

    To the noise this adds f (1-f) of shares, and the most that numbers of this mean can vary.
    """
    totals, variances = mechanism.debias(tally, n, np)
    values, most = totals / n, _most(mechanism, totals.size)
    inside = np.clip(values, 0, most)
    return values, variances / n**2 + inside * (most - inside) / n


def _most(mechanism: Mechanism[Any], size: int) -> Any:
    """Return the most that one device can add to each of *size* estimates; the least is 0."""
    if isinstance(mechanism, MeanMechanism | DistributionMechanism):
        return float(mechanism.top)
    if isinstance(mechanism, KeyValueMechanism):  # holders of each key, then sums of numbers
        return np.repeat([1.0, float(mechanism.top)], size // 2)
    return 1.0


def change(
    metric: Metric, tally: Any, n: int, past: Sequence[Estimated], alpha: float
) -> Score | None:
    """Compare estimates with the mean of earlier ones, in standard errors, item by item.

    How far epochs differ, by noise, by who is there and by a truth that drifts, is taken from the
    earlier ones, but not below what noise and who is there make at least.  Known of a few epochs
    only, it makes the law that of Student.
    """
    mechanism = metric.mechanism
    if len(past) < LEAST_EARLIER or isinstance(mechanism, RAPPOR):
        return None
    now, variance = estimated(mechanism, tally, n)
    values, variances = (np.array(part) for part in zip(*past, strict=True))
    usual, count = variances.mean(axis=0), len(past)
    spread = np.maximum(values.var(axis=0, ddof=1), usual) * (1 + 1 / count)
    spread += np.maximum(variance - usual, 0)  # of fewer reports than before
    found = np.abs(now - values.mean(axis=0)) / np.sqrt(spread)
    return Score(found, student_quantile(alpha / now.size, count - 1))


def _found(
    metric: Metric, tally: Any, n: int, past: Sequence[Estimated], alpha: float
) -> Iterator[Anomaly]:
    for name, check in SINGLE.items():
        score = check(metric.mechanism, tally, n, alpha)
        if score is not None and (found := float(score.found)) > score.limit:
            text = f"{TEXTS[name].format(found=found)}, noise gives {score.limit:.0f}"
            yield Anomaly(name, found, score.limit, text)
    score = change(metric, tally, n, past, alpha)
    if score is None:
        return
    for place in np.flatnonzero(score.found > score.limit).tolist():
        found = float(score.found[place])
        text = f"{_named(metric, place)} changed by {found:.1f} standard errors"
        yield Anomaly(CHANGE, found, score.limit, f"{text}, chance gives {score.limit:.1f}")


def _named(metric: Metric, place: int) -> str:
    """Return what the estimate at *place* is of."""
    labels = getattr(getattr(metric.domain, "keys", metric.domain), "labels", ())
    if place < len(labels):
        return repr(labels[place])
    if isinstance(metric.domain, NumberDomain):
        return "the mean"
    return f"the sum of {labels[place - len(labels)]!r}" if labels else "a cell of strings"
