"""Two answers together, also of records: cells, margins, and whether they go together."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.dataclass import replace
from client_sdk.mechanisms import Mechanism
from client_sdk.registry.metric import Metric
from collector.analytics.association import Association, association, margins
from collector.analytics.records import by_attribute
from collector.analytics.rows import ALL
from collector.analytics.sums import Shares
from collector.analytics.suppression import too_few
from collector.analytics.verb import Slice, VerbQuery, load
from collector.analytics.verbs.crosstab import APART
from collector.core.remarks import Code, remark
from tests.support.crowds.asking import ask
from tests.support.crowds.truths import label_truth
from tests.support.device.registries import PAIR, RECORD
from tests.support.enumeration.coverage import fits_rate
from tests.support.enumeration.populations import category, drawn, metric_of, reported, slice_of
from tests.support.known import known

HELD = (2_000, 1_500, 500, 500, 1_500, 4_000)  # sex by income
INDEPENDENT = (600, 1_800, 600, 1_400, 4_200, 1_400)
TRIALS = 400
TABLES, DEVICES = 1_000, 20_000
ALPHA = 0.05


def pair(**changes: str | None) -> Metric:
    return metric_of(PAIR, mechanism='"grr"', **changes)


def test_the_association_is_that_of_the_population() -> None:
    """Cramér's V of the true table, at enough devices."""
    held = tuple(100 * k for k in HELD)
    table = np.array(held).reshape(2, 3) / sum(held)
    apart = table - np.outer(table.sum(axis=1), table.sum(axis=0))
    truth = np.sqrt((apart**2 / np.outer(table.sum(axis=1), table.sum(axis=0))).sum())

    (fact,) = ask("crosstab", [slice_of(pair(), held)]).facts["association"]

    assert fact["cramers_v"] == pytest.approx(truth, rel=0.01)
    assert fact["ci_low"] < truth < fact["ci_high"]
    assert fact["p_value"] < 1e-9
    strongest = fact["strongest"]
    assert (strongest["income"], strongest["ci_low"] > 0 or strongest["ci_high"] < 0) == (
        "high",
        True,
    )


@cache
def drawn_associations(held: tuple[int, ...]) -> tuple[Association, ...]:
    """Return what is found in TRIALS answers of devices *held* by cell."""
    mechanism = pair(epsilon='"2"').mechanism
    return tuple(found_in(mechanism, tally) for tally in drawn(mechanism, held, TRIALS, 20261105))


def found_in(mechanism: Mechanism[Any], tally: Any) -> Association:
    found = association(Shares.of(mechanism, tally, int(tally.sum())), 2, 3, ALPHA)
    assert isinstance(found, Association)
    return found


@pytest.mark.parametrize("errors", [1.0, 0.5])
def test_independent_answers_are_rarely_called_dependent_and_half_errors_would_be_seen(
    errors: float,
) -> None:
    """In at most alpha of all answers, or so few more that chance explains it."""
    found = drawn_associations(INDEPENDENT)

    rejected = sum(
        abs(one.beyond.value) > errors * (one.beyond.ci_high - one.beyond.value) for one in found
    )

    rare = rejected <= ALPHA * TRIALS or fits_rate(rejected, TRIALS, ALPHA)
    assert rare == (errors == 1)


def test_p_is_at_most_alpha_exactly_where_the_strongest_cell_is_surely_apart() -> None:
    """One correction for both."""
    for one in (*drawn_associations(INDEPENDENT), *drawn_associations(HELD)):
        apart = one.beyond.ci_low > 0 or one.beyond.ci_high < 0
        assert (one.p_value <= ALPHA) == apart


def test_the_interval_of_v_holds_the_truth_in_at_least_its_level() -> None:
    """It is conservative, so it is only not to be below; the value is nearly unbiased."""
    table = np.array(HELD).reshape(2, 3) / sum(HELD)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    truth = float(np.sqrt(((table - expected) ** 2 / expected).sum()))

    found = drawn_associations(HELD)

    assert sum(one.ci_low <= truth <= one.ci_high for one in found) >= (1 - ALPHA) * TRIALS
    assert np.mean([one.value for one in found]) == pytest.approx(truth, rel=0.05)


def test_rows_that_perhaps_nobody_is_in_make_no_association() -> None:
    """A margin near zero in a denominator would blow up noise."""
    shares = Shares.of(pair().mechanism, slice_of(pair(), (900, 0, 0, 0, 0, 0)).tally, 900)

    assert "not enough reports" in str(association(shares, 2, 3, ALPHA))


def test_margins_are_groups_of_cells() -> None:
    """Row by row."""
    of_rows, of_columns = margins(2, 3)

    assert of_rows.astype(int).tolist() == [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert of_columns.astype(int).tolist() == [[1, 0, 0] * 2, [0, 1, 0] * 2, [0, 0, 1] * 2]


def two(devices: int = 1_000) -> list[Slice]:
    first = slice_of(category("a", "b"), (devices, devices * 3))
    text = slice_of(metric_of(PAIR, mechanism='"grr"'), HELD)
    return [
        dataclasses.replace(one, refusal=too_few(one.metric, one.n))
        for one in (first, renamed(text))
    ]


def renamed(one: Slice) -> Slice:
    return Slice(replace(one.metric, name="other"), one.dimensions, one.n, one.tally, one.epochs)


def test_two_metrics_that_were_collected_apart_have_margins_and_bounds_but_no_joint() -> None:
    """25 % and 20 % are both in 0 to 20 %, and 75 % and 40 % in 15 to 40 %, and the noise."""
    verb = load("crosstab")
    found = verb.answer(two(1_000_000), VerbQuery(ALPHA, options=verb.options()))

    rows = {tuple(row.dimensions.values()): row for row in found.rows}
    cells = [row for names, row in rows.items() if ALL not in names]
    assert {row.value for row in cells} == {None}
    assert {row.refusal for row in cells} == {APART}
    assert found.warnings[0].code == Code.COLLECTED_APART
    assert len(cells) == 12
    assert found.rows[0].dimensions == {"m": "a", "other": "female | low"}
    ends = found.rows[0].ci_low, found.rows[0].ci_high
    assert ends == pytest.approx((0.0, 0.2), abs=0.05)
    b = [row for (m, _), row in rows.items() if m == "b" and row.value is None]
    assert any((row.ci_low or 0) > 0.08 for row in b)
    assert rows["a", ALL].value == pytest.approx(0.25, abs=1e-3)
    assert rows[ALL, "female | low"].value == pytest.approx(0.2, abs=1e-3)
    assert found.facts == {}


@pytest.mark.parametrize("at_once", [False, True])
def test_every_joint_that_the_margins_allow_is_within_the_bounds(at_once: bool) -> None:
    """Of 1,000 crowds: dependent or not, as often as the level says; and none of half the width."""
    chance = np.random.default_rng(20261122)
    verb, metric = load("crosstab"), category("a", "b")
    asked = VerbQuery(ALPHA, options=verb.options(simultaneous=at_once))
    inside = halved = 0
    for _ in range(TABLES):
        held = chance.multinomial(DEVICES, chance.dirichlet(np.full(4, 0.5))).reshape(2, 2)
        first, second = (
            Slice(metric, {}, DEVICES, drawn(metric.mechanism, part, 1, seed)[0], (0,))
            for part, seed in (
                (held.sum(axis=axis), int(chance.integers(1 << 31))) for axis in (1, 0)
            )
        )
        joint = held.ravel() / DEVICES
        rows = verb.answer([first, renamed(second)], asked).rows[:4]
        ends = [(row.ci_low or 0.0, row.ci_high or 0.0) for row in rows]
        inside += all(low <= p <= high for (low, high), p in zip(ends, joint, strict=True))
        middles = [((3 * low + high) / 4, (low + 3 * high) / 4) for low, high in ends]
        halved += all(low <= p <= high for (low, high), p in zip(middles, joint, strict=True))

    assert inside >= (1 - ALPHA) * TABLES or fits_rate(inside, TABLES, 1 - ALPHA)
    assert halved < inside / 2


def test_if_one_of_two_has_too_few_reports_so_has_the_table() -> None:
    """A product would tell it."""
    verb = load("crosstab")
    found = verb.answer(two(devices=50), VerbQuery(ALPHA, options=verb.options()))

    assert {row.value for row in found.rows} == {None}


def parts_of(held: tuple[int, ...], of: str) -> dict[tuple[str, str], float]:
    """Return the true parts by the value of *of* and of the other answer."""
    table = np.array(held).reshape(2, 3)
    rows: tuple[str, ...] = ("female", "male")
    columns: tuple[str, ...] = ("low", "middle", "high")
    if of == "income":
        table, rows, columns = table.T, columns, rows
    part = table / table.sum(axis=1, keepdims=True)
    truth = {(x, y): float(part[i, j]) for i, x in enumerate(rows) for j, y in enumerate(columns)}
    whole = table.sum(axis=0) / table.sum()
    return truth | {(ALL, y): float(whole[j]) for j, y in enumerate(columns)}


@pytest.mark.parametrize("of", ["sex", "income"])
def test_shares_of_an_answer_are_of_those_who_gave_it(of: str) -> None:
    """Of each value of either answer, and beside them of all."""
    held = tuple(100 * k for k in HELD)

    found = ask("crosstab", [slice_of(pair(), held)], options={"of": of})

    other = "income" if of == "sex" else "sex"
    values = {(row.dimensions[of], row.dimensions[other]): row.value for row in found.rows}
    assert values == pytest.approx(parts_of(held, of), abs=1e-3)
    assert {row.dimensions["measure"] for row in found.rows} == {f"of each {of}"}
    assert found.warnings[0] == remark(Code.OF_ANSWER, answer=of)


def test_intervals_of_parts_cover_at_their_level_and_half_of_them_would_not() -> None:
    """Law: 95 % of 200 crowds, each row for itself, though the group is estimated from the same."""
    metric, truth = pair(epsilon='"2"'), parts_of(HELD, "sex")
    verb, crowds = load("crosstab"), TRIALS // 2
    query = VerbQuery(ALPHA, options=verb.options(of="sex"))
    inside, halved = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
    for tally in drawn(metric.mechanism, HELD, crowds, 20261123):
        for row in verb.answer([Slice(metric, {}, int(tally.sum()), tally, (0,))], query).rows:
            name = row.dimensions["sex"], row.dimensions["income"]
            low, high = row.ci_low or 0.0, row.ci_high or 0.0
            inside[name] += low <= truth[name] <= high
            halved[name] += (3 * low + high) / 4 <= truth[name] <= (low + 3 * high) / 4

    assert all(fits_rate(hits, crowds, 1 - ALPHA) for hits in inside.values())
    assert not any(fits_rate(hits, crowds, 1 - ALPHA) for hits in halved.values())


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
    slices = [dataclasses.replace(part, dimensions={"time": str(day)}) for day in range(7)]

    findings = ask("crosstab", slices)

    assert len(findings.facts["association"]) == 14
    assert findings.warnings[1:] == (remark(Code.TABLES, tables=14),)
