"""A metric that was reported under several definitions: which of them an answer rests on."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from client_sdk.registry import Registry
from collector.analytics.verb import names
from collector.core.catalog import Catalog
from collector.core.cells import Cell
from collector.core.errors import QueryError
from collector.query import Answer, plan, read, run
from tests.support.crowds.uploads import NOON, TODAY
from tests.support.device.registries import BOOLEAN, file_with
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


def test_shares_of_the_same_items_are_about_all_reports() -> None:
    """Each definition at its own ε, weighted by its reports."""
    found = asked({**CATEGORY, "epsilon": '"2"'}, {**CATEGORY, "epsilon": '"1"'}, "frequency")

    assert {row.n for row in found.rows} == {6_000}
    assert sum(row.value or 0 for row in found.rows) == pytest.approx(1)
    assert len(found.meta.metrics[0].definitions) == 2
    counted = "m: 3000 reports under earlier definitions are counted, too"
    assert counted in found.meta.warnings


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
    assert any("are left out" in warning for warning in found.meta.warnings)


def test_quantiles_of_several_definitions_are_not_averaged() -> None:
    """The mean of two medians is the median of nobody."""
    wave = {**NUMBER, "mechanism": '"square_wave"'}

    found = asked(wave, {**wave, "epsilon": '"2"'}, "estimate")

    assert {row.n for row in found.rows} == {3_000}
    left_out = "m: 3000 reports under earlier definitions are left out; ask for them by"
    assert any(warning.startswith(left_out) for warning in found.meta.warnings)


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
