"""A question whose true answers are known, and how often the intervals of a verb hold them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from benchmarks.lib.crowds import REGISTRY, Draw
from client_sdk.registry.metric import Metric
from collector.analytics.rows import Findings, Row
from collector.analytics.suppression import too_few
from collector.analytics.verb import Slice, Verb, VerbQuery
from collector.core.catalog import Catalog
from collector.query import plan, read

ALL: Final = "(all)"  # the value of a dimension that was summed over
ONE_DAY: Final = ["2026-11-02", "2026-11-02"]
MONTH: Final = ["2026-11-01", "2026-11-30"]
NOW: Final = 1_795_000_000.0  # Unix time, in November 2026: the questions are planned then
SEED: Final = 20261121

Name: TypeAlias = tuple[tuple[str, str], ...]  # the dimensions of a row


@dataclass(frozen=True)
class Scenario:
    """A question about devices whose true answers are known.

    ``draw`` yields so many times the slices of one report of each device, perturbed anew.  For
    verbs that look for differences ``seen`` tells whether one was found, and ``beside`` are other
    devices to look at.
    """

    request: Mapping[str, Any]
    devices: str  # in words
    title: str
    draw: Draw
    truth: Callable[[Mapping[str, str]], float]
    times: int = 2_000
    remark: str = ""
    x_unit: str = ""
    shown: Mapping[str, Any] = field(default_factory=dict)  # of the request, other for the picture
    seen: Callable[[Findings], bool] | None = None
    beside: Mapping[str, Draw] = field(default_factory=dict)  # other populations, by their name

    @property
    def verb(self) -> str:
        """Its name."""
        return str(self.request["verb"])

    @property
    def metric(self) -> Metric:
        """The first one that is asked."""
        return REGISTRY.metric(self.request["metrics"][0])


@dataclass(frozen=True)
class Worst:
    """Of one answer, the row whose number is farthest off in its standard errors."""

    name: str
    truth: float
    row: Row


@dataclass(frozen=True)
class Measured:
    """What many answers were like."""

    times: int
    rows: int
    covered: float  # of the intervals; all at once if ``simultaneous``
    least: float  # of the row with the fewest, of those that half of the answers have
    first_held: int  # intervals of the first row of the first answer
    simultaneous: bool
    ratio: float | None  # root mean square error over the predicted one
    moved: float | None  # error of what postprocess shows over that of the raw number
    reasons: float  # part of the rows without a number
    worst: Worst | None
    first: Findings


def measure(scenario: Scenario, times: int, *, narrowed: float = 1.0) -> Measured:
    """Ask *times* times, and hold every row against the truth.

    Args: narrowed: what intervals and standard errors are multiplied with; 1, but to plant a bug.
    """
    verb, asked = question(scenario.request)
    kept: dict[Name, list[_Held]] = defaultdict(list)
    first, at_once, rows = Findings(()), 0, 0
    for slices in scenario.draw(times, np.random.default_rng(SEED)):
        found = verb.answer(hidden(slices), asked)
        first = first if first.rows else found
        rows += len(found.rows)
        seen = {_name(row): _held(row, scenario, narrowed) for row in found.rows if _has(row)}
        at_once += all(one.inside for one in seen.values())
        for name, one in seen.items():
            kept[name].append(one)
    parts = [np.array(held, dtype=float) for held in kept.values()]
    simultaneous = all(row.simultaneous for row in first.rows)
    inside = np.concatenate([part[:, 3] for part in parts])
    return Measured(
        times,
        len(first.rows),
        at_once / times if simultaneous else float(inside.mean()),
        min(float(part[:, 3].mean()) for part in parts if len(part) >= times / 2),
        round(float(parts[0][:, 3].sum())),
        simultaneous,
        _ratio(parts, 0, 2),
        _ratio(parts, 1, 0) if asked.postprocess != "raw" else None,
        1 - inside.size / rows,
        _worst(first, scenario),
        first,
    )


class _Held(NamedTuple):
    """One row beside the truth: errors of the unbiased and of the shown number, and as stated."""

    raw: float
    shown: float
    stated: float
    inside: bool


def _held(row: Row, scenario: Scenario, narrowed: float) -> _Held:
    truth = scenario.truth(row.dimensions)
    inside = covers(row, truth, narrowed)
    if row.value is None:  # bounds only
        return _Held(0.0, 0.0, 0.0, inside)
    raw = row.value if row.raw is None else row.raw
    return _Held(raw - truth, row.value - truth, narrowed * (row.std_error or 0.0), inside)


def _has(row: Row) -> bool:
    return row.ci_low is not None


def _name(row: Row) -> Name:
    return tuple(row.dimensions.items())


def covers(row: Row, truth: float, narrowed: float = 1.0) -> bool:
    """Return whether the interval of *row*, drawn together around its number, holds *truth*."""
    assert row.ci_low is not None
    assert row.ci_high is not None
    value = row.value if row.raw is None else row.raw
    if value is None:
        return row.ci_low <= truth <= row.ci_high
    slack = 1e-9 * max(abs(truth), 1.0)  # of a float that is meant to be equal
    low, high = (value + narrowed * (end - value) for end in (row.ci_low, row.ci_high))
    return low - slack <= truth <= high + slack


def rate_seen(scenario: Scenario, draw: Draw, times: int) -> float:
    """Return in which part of *times* answers a difference was found."""
    assert scenario.seen is not None
    verb, asked = question(scenario.request)
    slices = draw(times, np.random.default_rng(SEED + 1))
    return sum(scenario.seen(verb.answer(hidden(one), asked)) for one in slices) / times


def question(request: Mapping[str, Any]) -> tuple[Verb, VerbQuery]:
    """Return the verb and what it is asked, as the collector takes them from *request*."""
    planned = plan(read(json.dumps(request).encode()), Catalog([REGISTRY]), NOW)
    query = planned.query
    segments = {name: planned.readings[0].metric.segments[name] for name in planned.groups}
    metrics = tuple(reading.metric for reading in planned.readings)
    asked = VerbQuery(query.alpha, query.postprocess, planned.options, segments, metrics)
    return planned.verb, asked


def hidden(slices: Sequence[Slice]) -> list[Slice]:
    """Return *slices* with the reason of each that has too few reports."""
    return [replace(one, refusal=too_few(one.metric, one.n)) for one in slices]


def _ratio(parts: Sequence[Any], over: int, under: int) -> float | None:
    """Return how one column compares with another, rows of different units scaled to one.

    A row that is in few answers counts for little.
    """
    squares = [(len(part), *(np.mean(part[:, c] ** 2) for c in (over, under))) for part in parts]
    known = [(count, top / bottom) for count, top, bottom in squares if bottom > 0]
    if not known:
        return None
    counts, ratios = np.array(known).T
    return sqrt(float(np.average(ratios, weights=counts)))


def _worst(found: Findings, scenario: Scenario) -> Worst | None:
    rows = [row for row in found.rows if row.value is not None]
    if not rows:
        return None

    def off(row: Row) -> float:
        value = row.value if row.raw is None else row.raw
        assert value is not None
        return abs(value - scenario.truth(row.dimensions)) / (row.std_error or 1.0)

    row = max(rows, key=off)
    return Worst(", ".join(row.dimensions.values()), scenario.truth(row.dimensions), row)
