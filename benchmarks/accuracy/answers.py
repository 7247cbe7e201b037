"""Every verb on real data: its picture, its farthest row, and how often its intervals hold.

Run: ``python -m benchmarks answers``; twenty minutes, most of it for several dimensions.  With
``--write`` the figures go into docs/evidence/answers.md, tables/answers.md and tables/verbs.md,
between their marks, and the pictures into docs/images/answers.
Every answer is drawn anew from the exact law of the mechanism, from a fixed seed.

Answers about a fleet with three dimensions take the collector's own way, from stored tallies to
rows.  On one day the tallies are those of all 1,800 segments; over 28 days those of the groups that
are asked for, whose sums over the other dimensions have the same law.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import Any, Final

import numpy as np

from benchmarks.lib.beside import joint_table, wasserstein_table
from benchmarks.lib.page import PAGES, publish
from benchmarks.lib.page import table as markdown
from benchmarks.lib.questions import Measured, Scenario, measure, rate_seen
from benchmarks.lib.scenarios import scenarios
from collector.analytics.rows import SHARE, Row
from collector.analytics.verb import load
from collector.core.catalog import Catalog
from collector.query import Plan, plan, read, run
from collector.rendering.charts import ChartOptions, chart_of
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

PAGE: Final = PAGES / "evidence" / "answers.md"
TABLES: Final = PAGES / "evidence" / "tables" / "answers.md"
VERBS: Final = PAGES / "evidence" / "tables" / "verbs.md"
PICTURES: Final = PAGES / "images" / "answers"
LOW, HIGH = 0.94, 0.96  # the bar of single intervals; intervals at once may hold more often
NEAR: Final = 0.05  # the bar of errors: how far off the predicted ones
PERCENT: Final = 100
WIDE: Final = 100  # characters of a line of a question


def main() -> None:
    """Print what goes between the marks of the pages, or put it there."""
    found = {one.verb: (one, measure(one, one.times)) for one in scenarios()}
    every = [one for one, _ in found.values()]
    tables = {
        "dimensions": dimensions_table(),
        "joint": joint_table(),
        "binned": wasserstein_table(),
    }
    sections = "\n\n".join(section(*pair) for pair in found.values())
    publish(
        (PAGE, {"table": table(found), "differences": differences(every)}),
        (TABLES, tables),
        (VERBS, {"verbs": sections}),
    )
    if "--write" in sys.argv:
        PICTURES.mkdir(parents=True, exist_ok=True)
        for one in every:
            (PICTURES / f"{one.verb}.svg").write_text(picture(one), encoding="utf-8")


def table(found: dict[str, tuple[Scenario, Measured]]) -> str:
    """Return how the intervals of every verb fare, and which miss a bar."""
    heads = ("verb", "ε, mechanism", "answers, rows", "intervals hold", "of the worst row",
             "error over predicted")  # fmt: skip
    rows = []
    for verb, (scenario, one) in found.items():
        mechanism = scenario.metric.mechanism
        how = f"{float(mechanism.epsilon):g}, `{mechanism.name}`"
        kind = " all at once" if one.simultaneous else ""
        link, size = f"[`{verb}`](tables/verbs.md#{verb})", f"{one.times:,}, {one.rows:,}"
        if one.ratio is None:
            rows.append((link, "none, counted", size, "always", "always", "no error"))
            continue
        rates = f"{PERCENT * one.covered:.1f} %{kind}", f"{PERCENT * one.least:.1f} %"
        rows.append((link, how, size, *rates, f"{one.ratio:.3f}"))
    return f"{markdown(heads, rows)}\n\n{misses(found)}"


def misses(found: dict[str, tuple[Scenario, Measured]]) -> str:
    """Return in words which verbs miss which bar."""
    held = [
        f"`{verb}` ({PERCENT * one.covered:.1f} %)"
        for verb, (_, one) in found.items()
        if one.covered < LOW - noise(one) or (one.covered > HIGH and not one.simultaneous)
        if one.ratio is not None
    ]
    off = [
        f"`{verb}` ({one.ratio:.3f})"
        for verb, (_, one) in found.items()
        if one.ratio is not None and abs(one.ratio - 1) > NEAR
    ]
    bar = f"{PERCENT * LOW:g} to {PERCENT * HIGH:g} %"
    return (
        f"Outside {bar} (all at once: below it by more than two standard errors): "
        f"{', '.join(held) or 'none'}. "
        f"Error more than {PERCENT * NEAR:g} % off the predicted one: {', '.join(off) or 'none'}."
    )


def noise(one: Measured) -> float:
    """Return twice the standard error of a rate that is the part of answers, else 0."""
    return 2 * sqrt(LOW * (1 - LOW) / one.times) if one.simultaneous else 0.0


def section(scenario: Scenario, found: Measured) -> str:
    """Return what the page says of one verb, of which so much was *found*."""
    one = measure(scenario, 1)
    lines = [
        f"### {scenario.verb}",
        f"Asked of {scenario.devices}.",
        f"```json\n{wrapped(scenario.request)}\n```",
        f"![{scenario.title}](../../images/answers/{scenario.verb}.svg)",
        farthest(one),
    ]
    if scenario.remark:
        lines.append(scenario.remark)
    if found.moved is not None:
        way = scenario.request["postprocess"]
        lines.append(
            f"Over all answers the numbers that are shown, `{way}`, err {found.moved:.3f} times as "
            "much as the raw ones."
        )
    return "\n\n".join(lines)


def farthest(one: Measured) -> str:
    """Return the row of an answer that is farthest off, beside the truth."""
    if one.worst is None or one.ratio is None:
        return "Nothing is perturbed, so nothing is off: the interval is a point, or a bound."
    row = one.worst.row
    value = row.value if row.raw is None else row.raw
    truth, found, low, high = (
        written(number, row) for number in (one.worst.truth, value, row.ci_low, row.ci_high)
    )
    of = f" of {one.rows:,} rows" if one.rows > 1 else ""
    name = f", {one.worst.name}" if one.worst.name else ""
    return f"Farthest off{of}{name}: true {truth}, found {found} ({low} to {high})."


def written(number: float | None, row: Row) -> str:
    """Return a number in its unit."""
    assert number is not None
    if row.unit in (SHARE, "relative"):
        return f"{PERCENT * number:.2f} %"
    return f"{number:,.0f} {row.unit}" if abs(number) >= 1_000 else f"{number:.2f} {row.unit}"


def wrapped(request: Any) -> str:
    """Return *request* as JSON, on one line where it fits."""
    line = json.dumps(request, ensure_ascii=False)
    if len(line) <= WIDE:
        return line
    fields = (f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in request.items())
    return "{\n" + ",\n".join(fields) + "\n}"


def picture(scenario: Scenario) -> str:
    """Return the SVG of one answer."""
    asked = replace(scenario, request={**scenario.request, **scenario.shown}, truth=lambda _: 0.0)
    found = measure(asked, 1).first
    options = ChartOptions(prefix=scenario.verb.replace("_", "-"), standalone=True, most_rows=30)
    return chart_of(
        load(scenario.verb).chart,
        found.rows,
        scenario.title,
        options,
        scenario.x_unit,
        found.facts,
    )


def differences(every: list[Scenario]) -> str:
    """Return how often a difference is found, where there is one and where there is none."""
    rows = []
    for scenario in every:
        if scenario.seen is None:
            continue
        for name, draw in {"as they are": scenario.draw, **scenario.beside}.items():
            rate = PERCENT * rate_seen(scenario, draw, scenario.times)
            rows.append((f"`{scenario.verb}`", name, f"{rate:.1f} %"))
    return markdown(("verb", "devices", "answers that find a difference"), rows)


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
    return markdown(heads, rows)


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
