"""Every verb on real data: its picture, its farthest row, and how often its intervals hold.

Run: ``python -m benchmarks answers``; twenty minutes, most of it for several dimensions.  With
``--write`` the figures go into docs/evidence/answers.md, tables/answers.md and tables/verbs.md,
between their marks, and the pictures into docs/images/answers.
Every answer is drawn anew from the exact law of the mechanism, from a fixed seed.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from math import sqrt
from typing import Any, Final

from benchmarks.lib.beside import joint_table, wasserstein_table
from benchmarks.lib.dimensions import dimensions_table
from benchmarks.lib.page import PAGES, write
from benchmarks.lib.page import table as markdown
from benchmarks.lib.questions import Measured, Scenario, measure, rate_seen
from benchmarks.lib.scenarios import scenarios
from collector.analytics.rows import SHARE, Row
from collector.analytics.verb import summary
from collector.rendering.charts import Face, chart_of

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
    parts = {
        "table": table(found),
        "differences": differences([one for one, _ in found.values()]),
    }
    tables = {
        "dimensions": dimensions_table(),
        "joint": joint_table(),
        "binned": wasserstein_table(),
    }
    sections = "\n\n".join(section(*pair) for pair in found.values())
    if "--write" not in sys.argv:
        print("\n\n".join([*parts.values(), *tables.values(), sections]))
        return
    PICTURES.mkdir(parents=True, exist_ok=True)
    for one, _ in found.values():
        (PICTURES / f"{one.verb}.svg").write_text(picture(one), encoding="utf-8")
    write(PAGE, **parts)
    write(TABLES, **tables)
    write(VERBS, verbs=sections)


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
        f"{summary(scenario.verb)} Here: {scenario.devices}.",
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
    of = f"of {one.rows:,} rows " if one.rows > 1 else ""
    name = f", {one.worst.name}" if one.worst.name else ""
    return f"Farthest off {of}in this answer{name}: true {truth}, found {found} ({low} to {high})."


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
    face = Face(prefix=scenario.verb.replace("_", "-"), standalone=True, most_rows=30)
    return chart_of(scenario.verb, found.rows, scenario.title, face, scenario.x_unit, found.facts)


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
