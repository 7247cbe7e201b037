"""Reports under several definitions or of several rounds: which of them an answer rests on."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.analytics.rows import Row
from collector.analytics.verb import names
from collector.core.catalog import Catalog
from collector.core.cells import Cell, segment_text
from collector.core.errors import QueryError
from collector.core.remarks import Code
from collector.query import Answer, plan, read, run
from tests.support.crowds.uploads import NOON, READ_TOKEN, TODAY
from tests.support.device.learning import registry_text
from tests.support.device.registries import BOOLEAN, FUNNEL, RETENTION, file_with
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.sites.in_memory import in_memory
from tests.support.store.memory_storage import MemoryStorage

DAILY = {**BOOLEAN, "every": '"1d"', "min_reports": "100"}
CATEGORY = {**DAILY, "type": '"category"', "values": '["a", "b"]'}
NUMBER = {**DAILY, "type": '"number"', "min": "0", "max": "10", "step": "1", "unit": '"s"'}


def asked(now: dict[str, str], before: dict[str, str], verb: str, **fields: Any) -> Answer:
    """Ask of a metric with 3,000 reports under either definition."""
    registries = [Registry.from_text(file_with(definition)) for definition in (now, before)]
    catalog, storage = Catalog(registries), MemoryStorage()
    for registry, counts in zip(registries, ([2_000, 1_000], [1_000, 2_000]), strict=True):
        metric = registry.metric("m")
        size = metric.mechanism.tally_size
        if metric.mechanism_name == "square_wave":  # symbols as even as they can be
            counts = [3_000 // size + (i < 3_000 % size) for i in range(size)]
        if size == len(counts):
            pairs = list(enumerate([3_000, *counts]))
            storage.put({Cell(metric.digest, TODAY - 2, ""): pairs})
    body = json.dumps({"metrics": ["m"], "verb": verb, **fields}).encode()
    return run(plan(read(body), catalog, NOON), storage)


def codes_of(answer: Answer) -> set[Code]:
    return {remark.code for remark in answer.meta.warnings}


@pytest.mark.parametrize(("parts", "is_told"), [((80, 70), True), ((50, 40), False)])
def test_reports_under_several_definitions_are_enough_together(
    parts: tuple[int, int], is_told: bool
) -> None:
    """Each has fewer than the least, but a row is of both; and both are in it, number or not."""
    definitions = [{**CATEGORY, "epsilon": f'"{epsilon}"'} for epsilon in (2, 1)]
    registries = [Registry.from_text(file_with(definition)) for definition in definitions]
    storage = MemoryStorage()
    for registry, n in zip(registries, parts, strict=True):
        cell = Cell(registry.metric("m").digest, TODAY - 2, "")
        storage.put({cell: list(enumerate([n, n // 2, n - n // 2]))})
    body = b'{"metrics": ["m"], "verb": "frequency"}'

    found = run(plan(read(body), Catalog(registries), NOON), storage)

    assert {row.n for row in found.rows} == {sum(parts)}
    assert {row.value is not None for row in found.rows} == {is_told}
    reasons = {row.reason for row in found.rows if row.reason}
    assert all(f"not enough reports: {sum(parts)} of" in reason for reason in reasons)


def test_items_that_changed_are_not_added_up() -> None:
    """A label of one definition may mean another thing in the other."""
    other = {**CATEGORY, "values": '["a", "c"]'}

    found = asked(CATEGORY, other, "frequency")

    assert {row.n for row in found.rows} == {3_000}
    assert Code.EARLIER_LEFT_OUT in codes_of(found)


def test_what_is_picked_or_compared_rests_on_the_current_definition_alone() -> None:
    found = asked({**CATEGORY, "epsilon": '"2"'}, CATEGORY, "top_k", options={"k": 1})

    assert [row.n for row in found.rows] == [3_000]


@pytest.mark.parametrize("verb", names())
@pytest.mark.parametrize("now", [CATEGORY, {**NUMBER, "mechanism": '"square_wave"'}])
def test_any_verb_answers_or_refuses_whatever_was_declared_before(
    verb: str, now: dict[str, str]
) -> None:
    """Another mechanism, other items: never an error of ours."""
    for before in (CATEGORY, {**NUMBER, "mechanism": '"hybrid"'}):
        with suppress(QueryError):
            assert asked(now, before, verb).meta.verb == verb


def test_questions_that_would_give_too_many_rows_are_refused() -> None:
    values = json.dumps([f"v{i}" for i in range(1_000)])

    with pytest.raises(QueryError, match="rows, must be at most"):
        asked(
            {**CATEGORY, "values": values},
            CATEGORY,
            "frequency",
            date_range=["2025-01-01", "2026-01-01"],
            dimensions=["time"],
        )


BY_NOW, BEFORE = {**CATEGORY, "epsilon": '"2"'}, {**CATEGORY, "epsilon": '"1"'}
NUMBERS = [{**NUMBER, "mechanism": '"hybrid"', "epsilon": f'"{epsilon}"'} for epsilon in (2, 1)]
RETURNS = [{**RETENTION, "min_reports": "100", "epsilon": f'"{e}"'} for e in (8, 6)]
QUESTIONS: dict[str, dict[str, Any]] = {
    "trend": {"dimensions": ["time"]},
    "compare": {"dimensions": ["time"]},
    "lift": {"dimensions": ["platform"], "options": {"dimension": "platform", "control": "mac"}},
    "segments": {"dimensions": ["platform"]},
}


def crowd(
    definitions: Sequence[dict[str, str]], only: int | None = None
) -> tuple[Catalog, MemoryStorage]:
    """Return reports of two days and platforms under all definitions, or under one *only*."""
    registries = [Registry.from_text(file_with(definition)) for definition in definitions]
    storage, chance = MemoryStorage(), np.random.default_rng(20261122)
    for place, registry in enumerate(registries):
        metric = registry.metric("m")
        for day in (3, 2):
            for platform in ("linux", "mac") if metric.segments else ("",):
                n = int(chance.integers(1_000, 3_000)) * (1 + place)
                values = chance.integers(0, metric.mechanism.domain_size, 200).tolist()
                payloads = b"".join(
                    metric.mechanism.randomize(value, SeededRandomness(bytes([place, day, i])))
                    for i, value in enumerate(values)
                )
                tally = metric.mechanism.tally(payloads, np) * (n // 200)
                entries = list(enumerate([n // 200 * 200, *tally.tolist()]))
                text = segment_text(metric, {"platform": platform})
                if only in (None, place):
                    storage.put({Cell(metric.digest, epoch_of(metric, day), text): entries})
    return Catalog(registries), storage


def epoch_of(metric: Metric, day: int) -> int:
    return TODAY - day if metric.every == "1d" else (TODAY - 7 * day) // 7


def answered(verb: str, crowd: tuple[Catalog, MemoryStorage], **fields: Any) -> Answer:
    catalog, storage = crowd
    body = {
        "metrics": ["m"],
        "verb": verb,
        "date_range": "28d",
        **QUESTIONS.get(verb, {}),
        **fields,
    }
    return run(plan(read(json.dumps(body).encode()), catalog, NOON), storage)


FUNNELS = [{**FUNNEL, "every": '"1d"', "min_reports": "100", "epsilon": f'"{e}"'} for e in (2, 1)]


def item_of(verb: str, definitions: Sequence[dict[str, str]]) -> dict[str, Any]:
    item = {"category": "a", "funnel": "paid"}.get(json.loads(definitions[0]["type"]))
    return {"options": {**QUESTIONS[verb].get("options", {}), "item": item}} if item else {}


@pytest.mark.parametrize("verb", ["trend", "segments"])
@pytest.mark.parametrize(
    "definitions", [[BY_NOW, BEFORE], NUMBERS, FUNNELS], ids=lambda d: d[0]["type"]
)
def test_what_is_followed_has_the_reports_of_all_definitions(
    verb: str, definitions: list[dict[str, str]]
) -> None:
    """Law: each number is that of every definition, weighted by its reports; so is its error."""
    fields = item_of(verb, definitions)

    whole, *each = (answered(verb, crowd(definitions, only), **fields) for only in (None, 0, 1))

    assert len(whole.rows) == 2
    for row, *parts in zip(whole.rows, *(one.rows for one in each), strict=True):
        n = sum(part.n for part in parts)
        assert row.dimensions == parts[0].dimensions
        assert row.n == n
        assert row.value == pytest.approx(sum(part.n * part.value for part in parts) / n)
        squares = sum((part.n * part.std_error) ** 2 for part in parts)
        assert row.std_error == pytest.approx(squares**0.5 / n)
    others = each[1].meta.n
    assert f"m: {others} reports under earlier definitions are counted, too" in map(
        str, whole.meta.warnings
    )


@pytest.mark.parametrize("verb", ["compare", "lift"])
@pytest.mark.parametrize(
    "definitions", [[BY_NOW, BEFORE], NUMBERS, FUNNELS], ids=lambda d: d[0]["type"]
)
def test_what_is_compared_has_the_reports_of_all_definitions(
    verb: str, definitions: list[dict[str, str]]
) -> None:
    """Law: a difference is that of the numbers of both sides, each of all definitions.

    What the devices scatter counts, too: its error is at least that of the rows that stand alone.
    """
    fields = item_of(verb, definitions)
    apart = "trend" if verb == "compare" else "segments"
    item = item_of(apart, definitions)

    whole, sides = (
        answered(verb, crowd(definitions), **fields),
        answered(apart, crowd(definitions), **item),
    )

    first, second = sides.rows if verb == "lift" else sides.rows[::-1]
    row, alone = whole.rows[0], math.hypot(first.std_error or 0, second.std_error or 0)
    assert row.n == first.n + second.n == whole.meta.n
    assert row.value == pytest.approx((first.value or 0) - (second.value or 0))
    assert (row.std_error or 0) >= alone * (1 - 1e-9)


def test_a_series_whose_definition_changed_is_no_change() -> None:
    """One day under the old ε, the next under the new one; and a step that is one is found."""
    definitions = [BY_NOW, BEFORE]
    for share, is_step in ((0.3, False), (0.6, True)):
        registries = [Registry.from_text(file_with(definition)) for definition in definitions]
        storage = MemoryStorage()
        for registry, day, held in zip(registries, (2, 3), (share, 0.3), strict=True):
            metric = registry.metric("m")
            mechanism: Any = metric.mechanism
            p, q = mechanism.chances
            yes = round(20_000 * (q + held * (p - q)))
            pairs = list(enumerate([20_000, yes, 20_000 - yes]))
            storage.put({Cell(metric.digest, TODAY - day, segment_text(metric, {})): pairs})

        found = answered("trend", (Catalog(registries), storage), options={"item": "a"})

        (change,) = found.meta.facts["changes"]
        assert change["detected"] == is_step
        assert [row.n for row in found.rows] == [20_000, 20_000]


WAVES = [{**each, "mechanism": '"square_wave"'} for each in NUMBERS]
MADE = [
    {**each, "aggregate": f'"{made}"'} for each, made in zip(NUMBERS, ("sum", "last"), strict=True)
]


@pytest.mark.parametrize(
    ("verb", "definitions", "fields"),
    [
        ("segments", RETURNS, {"options": {"item": "week 2"}}),
        ("trend", WAVES, {"options": {"levels": [0.5]}}),
        ("segments", MADE, {}),
        ("mean", MADE, {}),
    ],
    ids=["came back", "quantile", "made otherwise", "mean of what was made otherwise"],
)
def test_numbers_that_have_no_average_over_definitions_rest_on_the_current_one(
    verb: str, definitions: list[dict[str, str]], fields: dict[str, Any]
) -> None:
    """Parts of those who came first, quantiles, and what devices made in another way of a day."""
    found = answered(verb, crowd(definitions), **fields)

    assert (
        sum(row.n for row in found.rows) == answered(verb, crowd(definitions, 0), **fields).meta.n
    )
    assert Code.EARLIER_LEFT_OUT in codes_of(found)
    assert Code.EARLIER_COUNTED not in codes_of(found)


def test_reports_of_before_are_counted_while_there_are_no_others() -> None:
    """As on the day of a release."""
    found = answered("segments", crowd([BY_NOW, BEFORE], 1), options={"item": "a"})

    assert sum(row.n for row in found.rows) == found.meta.n
    told = f"m: {found.meta.n} reports under earlier definitions are counted, too"
    assert told in map(str, found.meta.warnings)


TEXT: Final = registry_text(more="radius = 8")
REGISTRY: Final = Registry.from_text(TEXT)
METRIC: Final = REGISTRY.metric("ranker")
WHY: Final = "of round have no mean together; break down by round"


@cache
def tally_of(n: int, sign: int) -> tuple[int, ...]:
    """Return that of real reports of a gradient that points to *sign*."""
    encoded = METRIC.encode({"round": 1, "gradient": [0.9 * sign, 0.0, 0.0, 0.0]})
    dice = SeededRandomness(b"%d" % n)
    payloads = b"".join(METRIC.mechanism.randomize(encoded, dice) for _ in range(n))
    return tuple(map(int, METRIC.mechanism.tally(payloads, np)))


def stored(reports: dict[str, int]) -> MemoryStorage:
    """Return a store of so many reports by round; those of odd and even ones are opposite."""
    storage = MemoryStorage()
    for label, n in reports.items():
        tally = tally_of(n, 1 if int(label or 1) % 2 else -1)
        segment = segment_text(METRIC, {"round": label} if label else {})
        pairs = [(0, n), *((at + 1, count) for at, count in enumerate(tally) if count)]
        storage.put({Cell(METRIC.digest, 0, segment): pairs})
    return storage


def rows_of(storage: MemoryStorage, catalog: Catalog | None = None, **fields: Any) -> list[Row]:
    question = json.dumps({"metrics": ["ranker"], **fields}).encode()
    made = plan(read(question), catalog or Catalog([REGISTRY]), NOON)
    return list(run(made, storage).rows)


def test_the_mean_of_several_rounds_is_refused_and_says_why() -> None:
    storage = stored({"1": 150, "2": 150})

    for verb in ("vector", "estimate"):
        rows = rows_of(storage, verb=verb)
        assert [(row.value, row.n) for row in rows] == [(None, 300)] * 4
        assert {row.reason for row in rows} == {f"reports of 2 values {WHY}"}


@pytest.mark.parametrize(
    "fields",
    [{"dimensions": ["round"]}, {"filters": [["is", "round", ["2"]]]}],
    ids=["by", "filtered"],
)
def test_a_single_round_has_its_mean(fields: dict[str, Any]) -> None:
    rows = rows_of(stored({"1": 150, "2": 150}), verb="vector", **fields)

    assert all(row.value is not None for row in rows)
    intercepts = [row.value for row in rows if row.item == "(intercept)"]
    assert intercepts[-1] is not None
    assert intercepts[-1] < -0.5
    assert intercepts[0] == intercepts[-1] or (intercepts[0] or 0) > 0.5


def test_a_store_of_one_round_is_no_mixture() -> None:
    rows = rows_of(stored({"3": 150}), verb="vector")

    assert all(row.value is not None for row in rows)


def test_small_rounds_that_are_told_together_have_no_mean() -> None:
    rows = rows_of(stored({"1": 150, "2": 60, "3": 60}), verb="vector", dimensions=["round"])

    values = {row.dimensions["round"]: (row.value is not None, row.reason) for row in rows}
    assert values == {"1": (True, None), "(other)": (False, f"reports of 2 values {WHY}")}


def test_reports_that_name_no_round_have_no_mean() -> None:
    """They are at models that nobody knows."""
    rows = rows_of(stored({"": 150}), verb="vector")

    assert {(row.value, row.reason) for row in rows} == {(None, f"reports of no value {WHY}")}


def test_no_comparison_pools_rounds() -> None:
    """With the rest, which is of several rounds, nothing is compared."""
    storage = stored({"1": 150, "2": 150, "3": 150})
    options = {"by": "round", "item": "(intercept)"}

    rows = rows_of(storage, verb="compare", dimensions=["round"], options=options)

    assert len(rows) == 3
    assert {row.value for row in rows} == {None}
    assert all(WHY in (row.reason or "") for row in rows)


def test_rounds_of_another_definition_are_not_added_to_those_of_this() -> None:
    """Its second round is at another model; only what both say may be alike."""
    later = Registry.from_text(TEXT.replace('epsilon = "4"', 'epsilon = "3"'))
    catalog = Catalog([later, REGISTRY])
    metric = later.metric("ranker")
    assert metric.domain.canonical() == METRIC.domain.canonical()
    storage = stored({"1": 150})

    rows = rows_of(storage, catalog, verb="vector")

    assert {(row.value, row.n) for row in rows} == {(None, 0)}


def test_the_page_of_the_metric_tells_why_there_is_no_number(tmp_path: Path) -> None:
    storage = stored({"1": 150, "2": 150})
    browser = in_memory(tmp_path, TEXT, storage=storage).test_client()
    for address in ("/metric/ranker", "/ask?metric=ranker&verb=vector", "/"):
        shown = browser.get(address, headers={"Authorization": f"Bearer {READ_TOKEN}"})

        assert shown.status_code == 200
        panel = shown.text.partition('id="answer"')[2].partition("</section>")[0] or shown.text
        assert re.findall(r"± ?\d", panel) == [], address
        assert address == "/" or WHY in panel
