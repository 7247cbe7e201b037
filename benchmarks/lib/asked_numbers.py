"""Questions about numbers: mean, sum, variance, and their distribution."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from benchmarks.lib.crowds import (
    AGES,
    HOURS,
    PAGES,
    REGISTRY,
    VISITORS,
    WAITS,
    ages,
    hours,
    scaled,
    visits,
    waits,
)
from benchmarks.lib.draws import drawn
from benchmarks.lib.questions import FLIGHTS, MONTH, ONE_DAY, PERSONS, Scenario
from collector.analytics.answer import label_truth
from collector.estimation.estimate import quantile_positions

LEVELS: Final = (0.25, 0.5, 0.75, 0.9)
POINTS: Final = tuple(range(20, 90, 5))
BUCKETS: Final = 12
RANGES: Final = ((None, 24), (25, 39), (40, 64), (65, None))
AGED: Final = {"metrics": ["age"], "date_range": MONTH}
WAITED: Final = {"metrics": ["taxi_out"], "date_range": MONTH}


def numbers_asked() -> Iterator[Scenario]:
    """Yield the questions that one number answers, and the metric's own."""
    yield _estimate()
    yield _mean()
    yield _sum()
    yield _variance()


def curves_asked() -> Iterator[Scenario]:
    """Yield the questions about distributions."""
    yield _quantile()
    yield _cdf()
    yield _histogram()
    yield _range()


def _estimate() -> Scenario:
    held = ages()
    counts: dict[object, int] = {
        AGES[0] + years: int(persons) for years, persons in enumerate(held)
    }
    truth = label_truth(REGISTRY.metric("age"), counts)
    draw = drawn("age", [({}, held)])
    return Scenario(
        {**AGED, "verb": "estimate"}, _persons(), "Age", draw, lambda d: truth[d["item"]]
    )


def _mean() -> Scenario:
    held = hours()
    truth = float(np.average(np.arange(HOURS[0], HOURS[1] + 1), weights=held))
    return Scenario(
        {"metrics": ["hours"], "date_range": MONTH, "verb": "mean"},
        _persons(),
        "Hours of work a week",
        drawn("hours", [({}, held)]),
        lambda _: truth,
    )


def _sum() -> Scenario:
    held = scaled(visits(PAGES[1]), VISITORS)
    truth = float(np.arange(PAGES[0], PAGES[1] + 1) @ held)
    return Scenario(
        {"metrics": ["pages"], "verb": "sum", "date_range": ONE_DAY},
        f"{VISITORS:,} visitors of a news site, in proportion; "
        f"more than {PAGES[1]} pages count as {PAGES[1]}",
        "Pages served",
        drawn("pages", [({}, held)]),
        lambda _: truth,
    )


def _variance() -> Scenario:
    held = ages()
    truth = float(np.cov(np.arange(held.size), fweights=held, ddof=0))
    draw = drawn("age", [({}, held)])
    return Scenario(
        {**AGED, "verb": "variance"}, _persons(), "Variance of age", draw, lambda _: truth
    )


def _quantile() -> Scenario:
    held = waits()
    positions = quantile_positions(held / held.sum(), LEVELS)
    truth = {f"p{100 * level:g}": float(x) for level, x in zip(LEVELS, positions, strict=True)}
    return Scenario(
        {**WAITED, "verb": "quantile", "options": {"levels": list(LEVELS)}},
        _flights(),
        "From the gate to take-off",
        drawn("taxi_out", [({}, held)]),
        lambda d: truth[d["item"]],
    )


def _cdf() -> Scenario:
    held = ages()
    up_to = np.cumsum(held) / held.sum()
    options = {"points": list(POINTS), "simultaneous": True}
    return Scenario(
        {**AGED, "verb": "cdf", "options": options},
        _persons(),
        "Age, cumulative",
        drawn("age", [({}, held)]),
        lambda d: float(up_to[int(d["item"]) - AGES[0]]),
        x_unit="years",
    )


def _histogram() -> Scenario:
    held = waits()
    edges = np.linspace(*WAITS, BUCKETS + 1)
    up_to = (np.cumsum(held) / held.sum())[edges.astype(int)]
    up_to[0] = 0.0  # the first bucket holds its lower end, too
    names = [f"{low:g}–{high:g}" for low, high in pairwise(edges)]
    truth = dict(zip(names, np.diff(up_to).tolist(), strict=True))
    return Scenario(
        {**WAITED, "verb": "histogram", "options": {"buckets": BUCKETS}},
        _flights(),
        "From the gate to take-off",
        drawn("taxi_out", [({}, held)]),
        lambda d: truth[d["item"]],
        x_unit="min",
    )


def _range() -> Scenario:
    held = ages()
    up_to = np.cumsum(held) / held.sum()
    ends = [0.0, *(up_to[high - AGES[0]] for _, high in RANGES if high is not None), 1.0]
    names = ("up to 24", "25 to 39", "40 to 64", "from 65")
    truth = dict(zip(names, np.diff(ends).tolist(), strict=True))
    return Scenario(
        {**AGED, "verb": "range", "options": {"ranges": [list(ends) for ends in RANGES]}},
        _persons(),
        "Age groups",
        drawn("age", [({}, held)]),
        lambda d: truth[d["item"]],
    )


def _persons() -> str:
    return f"{ages().sum():,} {PERSONS}"


def _flights() -> str:
    return f"{waits().sum():,} {FLIGHTS}; more than {WAITS[1]} minutes count as {WAITS[1]}"
