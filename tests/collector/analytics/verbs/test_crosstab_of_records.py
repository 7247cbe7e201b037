"""Tables of records: each attribute by label, from the reports about it alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.registry.metric import Metric
from collector.analytics.records import by_attribute
from collector.analytics.rows import ALL
from collector.analytics.verb import Slice
from collector.core.remarks import Code, remark
from tests.support.crowds.asking import ask
from tests.support.crowds.truths import label_truth
from tests.support.device.registries import RECORD
from tests.support.enumeration.populations import metric_of, reported
from tests.support.known import known

CROWD: Final = (
    (("free", 20, "left"), 3_000),
    (("free", 40, "stayed"), 2_000),
    (("pro", 60, "stayed"), 3_000),
    (("team", 40, "left"), 1_000),
)
TIMES: Final = 6.5  # standard errors; a normal number is farther away with 8e-11


def of_records(**changes: str | None) -> Metric:
    return metric_of(RECORD, **{"min_reports": "100", "epsilon": '"2"', **changes})


def part_of(metric: Metric, seed: str = "0") -> Slice:
    names = ("plan", "age", "label")
    values = [dict(zip(names, v, strict=True)) for v, devices in CROWD for _ in range(devices)]
    tally, n = reported(metric, values, seed)
    return Slice(metric, {}, n, tally, (0,))


def truth(dimensions: Any) -> float:
    """Return the share of devices of a cell or margin of a row."""
    place = ("plan", "age").index(dimensions["attribute"])
    ranges = {"below 30": 20, "30 to 50.5": 40, "50.5 or more": 60}
    value = ranges.get(dimensions["answer"], dimensions["answer"])
    held = sum(
        devices
        for record, devices in CROWD
        if value in (record[place], ALL) and dimensions["label"] in (record[2], ALL)
    )
    return held / sum(devices for _, devices in CROWD)


def test_there_is_a_table_for_each_attribute_from_the_reports_about_it() -> None:
    part = part_of(of_records())

    findings = ask("crosstab", [part])

    assert len(findings.rows) == 2 * (6 + 3 + 2)
    assert {row.dimensions["attribute"] for row in findings.rows} == {"plan", "age"}
    reports = {row.dimensions["attribute"]: row.n for row in findings.rows}
    assert sum(reports.values()) == part.n == 9_000
    for row in findings.rows:
        assert abs(known(row.value) - truth(row.dimensions)) < TIMES * known(row.std_error)
    facts = findings.facts["association"]
    assert [fact["dimensions"]["attribute"] for fact in facts] == ["plan", "age"]
    assert facts[1]["p_value"] < 1e-9
    assert facts[1]["strongest"]["answer"] in ("below 30", "50.5 or more")


def test_of_the_label_shares_are_of_the_devices_with_each_label() -> None:
    rows = ask("crosstab", [part_of(of_records())], options={"of": "label"}).rows

    (row,) = [
        row
        for row in rows
        if (row.dimensions["answer"], row.dimensions["label"]) == ("below 30", "left")
    ]
    assert known(row.ci_low) < known(row.value) < known(row.ci_high)
    assert abs(known(row.value) - 0.75) < 4 * (known(row.ci_high) - known(row.ci_low))


def test_of_an_attribute_there_is_its_table_alone() -> None:
    rows = ask("crosstab", [part_of(of_records())], options={"of": "plan"}).rows

    assert {row.dimensions["attribute"] for row in rows} == {"plan"}
    assert {row.dimensions["answer"] for row in rows} == {"free", "pro", "team", ALL}


def test_intervals_of_a_cell_hold_the_draw_of_devices_too() -> None:
    """At ε = 16 there is no noise, and half of the devices are asked about each attribute."""
    metric = of_records(epsilon='"16"')
    tables = list(by_attribute(part_of(metric)))

    rows = ask("crosstab", [part_of(metric)]).rows

    for row in rows[:6]:
        share, m = min(max(known(row.value), 0), 1), tables[0].n
        drawn = (1 - m / 9_000) * share * (1 - share) / m
        assert known(row.std_error) == pytest.approx(np.sqrt(drawn), rel=0.02, abs=1e-4)


def test_too_few_reports_give_the_reason_in_every_row() -> None:
    rows = ask("crosstab", [part_of(of_records(min_reports="10000"))]).rows

    assert len(rows) == 22
    assert all(row.value is None and "not enough reports" in (row.reason or "") for row in rows)


def test_the_truth_of_a_demo_is_of_every_cell() -> None:
    held = label_truth(of_records(), dict(CROWD))

    assert held["plan: free | left"] == pytest.approx(1 / 3)
    assert held["age: 30 to 50.5 | left"] == pytest.approx(1 / 9)
    assert sum(held.values()) == pytest.approx(2)


def test_p_counts_the_tables_of_all_attributes() -> None:
    """Holm: the smaller of two is doubled, the larger is at least that."""
    findings = ask("crosstab", [part_of(of_records())])

    facts = findings.facts["association"]
    (least, most) = sorted(facts, key=lambda fact: float(fact["p_value_alone"]))
    assert least["p_value"] == min(2 * least["p_value_alone"], 1)
    assert most["p_value"] == max(most["p_value_alone"], least["p_value"])
    assert findings.warnings[1].text.startswith("how far both answers go together, plan: 0.")
    assert findings.warnings[2].text.startswith("how far both answers go together, age: 0.")
    assert findings.warnings[2].text.endswith("(Cramér's V); p below 0.0001")
    assert findings.warnings[3:] == (remark(Code.ALL_TABLES, tables=2),)


def test_intervals_of_v_hold_at_once_where_all_are_to() -> None:
    alone, together = (
        ask("crosstab", [part_of(of_records())], options={"simultaneous": at_once})
        for at_once in (False, True)
    )

    for one, other in zip(
        *(found.facts["association"] for found in (alone, together)), strict=True
    ):
        assert other["ci_low"] <= one["ci_low"] < one["ci_high"] < other["ci_high"]


def test_an_attribute_of_one_value_says_that_there_are_not_enough_reports() -> None:
    values = [{"plan": "free", "age": 20, "label": "left"}] * 4_000
    metric = of_records()
    tally, n = reported(metric, values, "0")

    findings = ask("crosstab", [Slice(metric, {}, n, tally, (0,))])

    assert [fact["cramers_v"] for fact in findings.facts["association"]] == [None, None]
    assert findings.warnings[1].text.startswith(
        "how far both answers go together, plan: not enough reports: "
    )


def test_many_associations_are_facts_and_no_words() -> None:
    part = part_of(of_records())
    slices = [replace(part, dimensions={"time": str(day)}) for day in range(7)]

    findings = ask("crosstab", slices)

    assert len(findings.facts["association"]) == 14
    assert findings.warnings[1:] == (remark(Code.TABLES, tables=14),)
