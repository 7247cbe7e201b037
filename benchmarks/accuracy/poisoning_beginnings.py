"""How soon fakes that begin are found, and how often nothing is taken for them.

Crowds of 20,000 devices an epoch over 64 items that fall off as 1/rank, by ``oue`` at ε = 1, are
drawn by their law; fakes send the best report.  Found is what the check ``change`` says of the
epoch after so many before.  The draws are seeded, so every run prints the same.

Run: ``python -m benchmarks poisoning_beginnings``; some ten seconds.  Its output is on
docs/operate/poisoning.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.accuracy.poisoning import BEST, _metric, fakes_of
from benchmarks.lib.page import head, row
from client_sdk.registry.metric import Metric
from collector.analytics.poisoning.anomaly import CHECKS, FALSE_ALARM
from collector.analytics.poisoning.checks import EpochEstimates, Score, change, epoch_estimates
from tests.support.enumeration.seeded import SeededRandomness

N: Final = 20_000
ITEMS: Final = 64
LEVEL: Final = FALSE_ALARM / CHECKS
LAW: Final = 1 / np.arange(1, ITEMS + 1) / (1 / np.arange(1, ITEMS + 1)).sum()
TARGETS: Final = (60, 58, 55, 62, 57)
BEFORE: Final = (3, 7, 10, 30)  # epochs
RUNS, CLEAN = 100, 300  # runs of a cell with fakes, and without
Law = Callable[[Metric, Any, int, list[EpochEstimates]], Score | None]


class Case(NamedTuple):
    """A column: which part are fakes, of how many items, and how far shares scatter."""

    title: str
    share: float
    targets: int
    drift: float


CASES: Final = (
    Case("5 %, 1 item", 0.05, 1, 0.0),
    Case("5 %, 5 items", 0.05, 5, 0.0),
    Case("2.5 %, 1 item", 0.025, 1, 0.0),
    Case("1 %, 5 items", 0.01, 5, 0.0),
    Case("5 %, 1 item, shares scatter by a tenth", 0.05, 1, 0.1),
    Case("no fakes, of 300", 0.0, 0, 0.0),
    Case("no fakes, scatter by a tenth, of 300", 0.0, 0, 0.1),
    Case("no fakes, scatter by 30 %, of 300", 0.0, 0, 0.3),
)


def tally_of(metric: Metric, draw: np.random.Generator, n: int, drift: float) -> Any:
    """Return the tally of *n* devices drawn anew, whose shares scatter by *drift* of themselves."""
    law = LAW * np.exp(drift * draw.normal(size=ITEMS))
    held = draw.multinomial(n, law / law.sum())
    oracle: Any = metric.mechanism
    p, q = float(oracle.channel.p), float(oracle.channel.q)
    return draw.binomial(held, p) + draw.binomial(n - held, q)


def ours(metric: Metric, tally: Any, n: int, past: list[EpochEstimates]) -> Score | None:
    """Return what the check says."""
    return change(metric, tally, n, past, LEVEL)


def alarms(
    law: Law, share: float, targets: int, before: int, drift: float, runs: int, n: int = N
) -> int:
    """Return in how many runs *law* finds something in the epoch after so many *before*."""
    metric, draw = _metric("oue", ITEMS), np.random.default_rng(20261122)
    fakes = round(share * n)
    chance = SeededRandomness(b"best")
    sent: Any = 0
    if fakes:
        sent = fakes_of(metric.mechanism, BEST, TARGETS[:targets], fakes, chance)
    found = 0
    for _ in range(runs):
        past = [
            epoch_estimates(metric.mechanism, tally_of(metric, draw, n, drift), n)
            for _ in range(before)
        ]
        score = law(metric, tally_of(metric, draw, n - fakes, drift) + sent, n, past)
        found += score is not None and bool((score.statistic > score.limit).any())
    return found


def line(before: int) -> str:
    """Return the line of the epochs *before*: in how many runs of each case something is found."""
    counts = (
        alarms(ours, case.share, case.targets, before, case.drift, RUNS if case.share else CLEAN)
        for case in CASES
    )
    return row(str(before), *map(str, counts))


def main() -> None:
    """Print in how many of so many runs something is found."""
    print(head("earlier epochs", *(case.title for case in CASES)))
    for before in BEFORE:
        print(line(before), flush=True)
