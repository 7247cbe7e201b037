"""Answers about a fleet with three dimensions: how many reports they hold, and their intervals.

Questions take the collector's own way, from stored tallies to rows.  Tallies are drawn anew each
time from the law of one report.  On one day they are those of all 1,800 segments; over 28 days
those of the groups that are asked for, whose sums over the other dimensions have the same law.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from benchmarks.lib.page import table
from collector.analytics.rows import Row
from collector.core.catalog import Catalog
from collector.query import Plan, plan, read, run
from tests.support.store.segmented import (
    DIMENSIONS,
    OTHER,
    REGISTRY,
    SEGMENTS,
    TallyStore,
    fleet,
    members,
    perturbed,
    stored,
    texts_of,
)

DEVICES: Final = 100_000  # a day
DAYS: Final = 28
TIMES: Final = 500  # answers to each question
INTERVALS: Final = 5_000  # of each question at least: 500 of one row would leave 1 point of noise
SEED: Final = 20261122
FIRST: Final = 20_759  # epoch day 2026-11-02
NOW: Final = 1_798_000_000.0  # Unix time, in December 2026
BY: Final = [
    [],
    ["platform"],
    ["version"],
    ["country"],
    ["platform", "version"],
    ["platform", "country"],
    ["version", "country"],
]
METRIC: Final = REGISTRY.metric("crashed")
_SHAPE: Final = tuple(len(values) for values in DIMENSIONS.values())


@dataclass(frozen=True)
class Held:
    """How the answers to one question fared."""

    rows: int  # with a number, of one answer
    reports: int  # of all rows
    together: int  # of these, in rows of small groups
    covered: float  # of all intervals
    least: float  # of the row that is held least often


def dimensions_table(times: int = TIMES, days: int = DAYS) -> str:
    """Return a line for each question, on one day and day by day."""
    heads = ("by", "over", "rows", "reports in the answer", "of these in *(other)*",
             "intervals hold", "of the worst row")  # fmt: skip
    rows = []
    for stretch in (1, days):
        for by in BY:
            groups = stretch * prod(len(DIMENSIONS[name]) for name in by)
            found = measured(by, stretch, max(times, INTERVALS // groups))
            over = "one day" if stretch == 1 else f"{stretch} days, day by day"
            counts = f"{found.reports:,} of {DEVICES * stretch:,}", f"{found.together:,}"
            rates = f"{100 * found.covered:.1f} %", f"{100 * found.least:.1f} %"
            rows.append((" × ".join(by) or "nothing", over, f"{found.rows:,}", *counts, *rates))
    return table(heads, rows)


def measured(by: Sequence[str], days: int, times: int) -> Held:
    """Ask *times* times by the dimensions *by*, each day for itself if there are several."""
    generator = np.random.default_rng(SEED)
    fleets = [fleet(DEVICES, generator, METRIC) for _ in range(days)]
    asked = _asked(by, days)
    texts = texts_of(METRIC, SEGMENTS if days == 1 else _groups(by))
    held = [one if days == 1 else _summed(one, by) for one in fleets]
    store, kept = TallyStore(), []
    truth: list[float] = []
    rows: list[Row] = []
    for _ in range(times):
        for day, devices in enumerate(held):
            tallies = perturbed(METRIC, devices, generator)
            store.put(stored(METRIC, FIRST + day, devices, tallies, texts))
        rows = list(run(asked, store).rows)
        truth = truth or _truths(rows, by, fleets)
        kept.append([_holds(row, share) for row, share in zip(rows, truth, strict=True)])
    numbers = np.array([row.value is not None for row in rows])
    inside = np.array(kept)[:, numbers]
    return Held(
        int(numbers.sum()),
        sum(row.n for row in rows),
        sum(row.n for row in rows if OTHER in row.dimensions.values()),
        float(inside.mean()),
        float(inside.mean(axis=0).min()),
    )


def _asked(by: Sequence[str], days: int) -> Plan:
    dates = [f"2026-11-{2 + day:02}" for day in (0, days - 1)]
    request = {
        "metrics": [METRIC.name],
        "date_range": dates,
        "dimensions": [*(["time:day"] if days > 1 else []), *by],
        "pagination": {"limit": 10_000},
    }
    return plan(read(json.dumps(request).encode()), Catalog([REGISTRY]), NOW)


def _groups(by: Sequence[str]) -> list[Mapping[str, str]]:
    """Return the segments that are left where only *by* is told apart, in the order of sums."""
    kept = [{name: segment[name] for name in DIMENSIONS if name in by} for segment in SEGMENTS]
    return [dict(pairs) for pairs in dict.fromkeys(tuple(one.items()) for one in kept)]


def _summed(held: Any, by: Sequence[str]) -> Any:
    """Return the devices of each of ``_groups``."""
    gone = tuple(axis for axis, name in enumerate(DIMENSIONS) if name not in by)
    return held.reshape(*_SHAPE, -1).sum(axis=gone).reshape(-1, held.shape[1])


def _truths(rows: Sequence[Row], by: Sequence[str], fleets: Sequence[Any]) -> list[float]:
    """Return the true share of each row, after its reports were held against its label."""
    found: dict[tuple[str, ...], float] = {}
    for day, devices in enumerate(fleets):
        label = f"2026-11-{2 + day:02}"
        of_day = [row for row in rows if row.dimensions.get("time", label) == label]
        places = [tuple(row.dimensions[name] for name in by) for row in of_day]
        parts = members(devices, by, places)
        for row, place in zip(of_day, places, strict=True):
            no, yes = parts[place]
            assert int(no + yes) == row.n, "a row holds the reports that its label says"
            found[(label, *place)] = yes / row.n
    return [
        found[(row.dimensions.get("time", "2026-11-02"), *(row.dimensions[name] for name in by))]
        for row in rows
    ]


def _holds(row: Row, truth: float) -> bool:
    if row.ci_low is None or row.ci_high is None:
        return False
    return row.ci_low <= truth <= row.ci_high
