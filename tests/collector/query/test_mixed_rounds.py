"""Gradients at different models have no mean together: no verb and no page tells one."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.registry.contract import Registry
from collector.analytics.rows import Row
from collector.core.catalog import Catalog
from collector.core.cells import Cell, segment_text
from collector.query import plan, read, run
from tests.support.crowds.uploads import NOON, READ_TOKEN
from tests.support.device.learning import registry_text
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.sites.in_memory import in_memory
from tests.support.store.memory_storage import MemoryStorage

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
