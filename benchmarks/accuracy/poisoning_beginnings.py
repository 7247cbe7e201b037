"""How soon fakes that begin are found, and how often nothing is taken for them.

Crowds of 20,000 devices an epoch over 64 items that fall off as 1/rank, by ``oue`` at ε = 1, are
drawn by their law; fakes send the best report.  Found is what the check ``change`` says of the
epoch after so many before.  Of ``reports`` the chance of an alarm is averaged over drawn earlier
epochs: given these it follows from the law.  Draws are seeded, so every run prints the same.

Run: ``python -m benchmarks poisoning_beginnings``; some ten seconds.  Its output is on
docs/operate/poisoning.md.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erfc, exp, fsum, lgamma, log, sqrt
from statistics import fmean, median
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.accuracy.poisoning import BEST, _metric, fakes_of
from benchmarks.lib.page import head, row
from client_sdk.registry.metric import Metric
from collector.analytics.poisoning.anomaly import CHECKS, FALSE_ALARM
from collector.analytics.poisoning.checks import (
    EpochEstimates,
    Score,
    change,
    epoch_estimates,
    most_reports,
)
from tests.support.enumeration.seeded import SeededRandomness

N: Final = 20_000
ITEMS: Final = 64
LEVEL: Final = FALSE_ALARM / CHECKS
LAW: Final = 1 / np.arange(1, ITEMS + 1) / (1 / np.arange(1, ITEMS + 1)).sum()
TARGETS: Final = (60, 58, 55, 62, 57)
BEFORE: Final = (3, 7, 10, 30)  # epochs
RUNS, CLEAN = 100, 300  # runs of a cell with fakes, and without
PASTS: Final = 2_000  # drawn series of earlier epochs
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


class Scatter(NamedTuple):
    """A law of how many reports an epoch has: ``poisson``, ``normal`` or ``lognormal``."""

    title: str
    law: str
    usual: int
    spread: float  # standard deviation, of the number or of its logarithm; a part of the usual

    def draw(self, shape: tuple[int, int]) -> Any:
        """Return seeded numbers of reports; at least 1."""
        draw = np.random.default_rng(20261124)
        if self.law == "poisson":
            return np.maximum(draw.poisson(self.usual, shape), 1)
        off = self.spread * draw.normal(size=shape)
        part = np.exp(off) if self.law == "lognormal" else 1 + off
        return np.maximum(np.rint(self.usual * part), 1)

    def chance_above(self, most: float) -> float:
        """Return the chance of more reports than *most*."""
        if self.law == "poisson":
            return _poisson_above(self.usual, int(most))
        part = most / self.usual
        off = log(part) if self.law == "lognormal" else part - 1
        return 0.5 * erfc(off / self.spread / sqrt(2))


SCATTERS: Final = (
    Scatter("100 independent devices", "poisson", 100, 0),
    Scatter("10,000 independent devices", "poisson", 10_000, 0),
    Scatter("normal, 5 %", "normal", 10_000, 0.05),
    Scatter("log-normal, 5 %", "lognormal", 10_000, 0.05),
    Scatter("normal, 25 %", "normal", 10_000, 0.25),
    Scatter("log-normal, 25 %", "lognormal", 10_000, 0.25),
)


def limits(most: Callable[[Any, float], float], scatter: Scatter, before: int) -> list[float]:
    """Return the most reports that *most* allows after each drawn series of epochs *before*."""
    pasts = scatter.draw((PASTS, before)).astype(float)
    return [most(past, LEVEL) for past in pasts]


def alarm_rate(most: Callable[[Any, float], float], scatter: Scatter, before: int) -> float:
    """Return the chance of an alarm of ``reports`` after so many epochs *before*."""
    return fmean(map(scatter.chance_above, limits(most, scatter, before)))


def numbers(before: int) -> str:
    """Return the line of the epochs *before*, law by law.

    Alarms in 10,000 epochs, and how many times the usual number is found half the time.
    """
    cells = []
    for scatter in SCATTERS:
        found = limits(most_reports, scatter, before)
        rate = fmean(map(scatter.chance_above, found))
        cells.append(f"{1e4 * rate:.2f}, {median(found) / scatter.usual:.2f} ×")
    return row(str(before), *cells)


def number_heads() -> str:
    """Return the head of the table of ``numbers``."""
    return head("earlier epochs", *(scatter.title for scatter in SCATTERS))


def _poisson_above(mean: float, most: int) -> float:
    """Return the chance of more than *most* > *mean*; terms fall at least geometrically."""
    terms, term = [], exp(-mean + (most + 1) * log(mean) - lgamma(most + 2))
    while term > 1e-30:
        terms.append(term)
        term *= mean / (most + 1 + len(terms))
    return fsum(terms)


def main() -> None:
    """Print in how many of so many runs something is found."""
    print(head("earlier epochs", *(case.title for case in CASES)))
    for before in BEFORE:
        print(line(before), flush=True)
    print(f"\n{number_heads()}")
    for before in BEFORE[1:]:
        print(numbers(before), flush=True)
