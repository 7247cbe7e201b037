"""Every verb within a slice answers a request as it comes, over a store, with JSON."""

from __future__ import annotations

import csv
import json
from functools import cache
from typing import Any, Final

import msgspec
import numpy as np
import pytest

from benchmarks.accuracy.heavy_hitters import tally_of as text_tally
from client_sdk.mechanisms.composite.pem import PEM
from client_sdk.registry import Registry
from collector.analytics.rows import flat
from collector.analytics.verb import names
from collector.client import Result
from collector.core.catalog import Catalog
from collector.core.cells import Cell, segment_text
from collector.core.remarks import Code, remark
from collector.query import Answer, plan, read, run
from collector.rendering.places import records_of
from collector.rendering.tables import csv_of
from collector.web.api.formats import columns_of
from tests.support.crowds.uploads import NOON
from tests.support.device.registries import (
    CATEGORY,
    FUNNEL,
    HEAD,
    KEY_VALUE,
    LOCATION,
    NUMBER,
    PAIR,
    RECORD,
    RETENTION,
    STRING,
    VECTOR,
    table,
)
from tests.support.enumeration.populations import WAVE, law_of, reported
from tests.support.store.memory_storage import MemoryStorage

KINDS: Final = {
    "theme": {**CATEGORY, "mechanism": '"grr"'},
    "plan": {**CATEGORY, "mechanism": '"grr"', "values": '["x", "y"]'},
    "wait": WAVE,
    "age": NUMBER,
    "games": {**KEY_VALUE, "mechanism": '"pckv_grr"'},
    "place": {**LOCATION, "mechanism": '"grr"'},
    "people": {**PAIR, "mechanism": '"grr"'},
    "shop": {**FUNNEL, "mechanism": '"grr"'},
    "word": {**STRING, "epsilon": '"4"'},
    "visits": {**RETENTION, "mechanism": '"grr"'},
    "leaves": RECORD,
    "axes": VECTOR,
    "pairs": {**PAIR, "mechanism": '"grr"', "parts": '{ n = ["1", "2"], value = ["x", "y"] }'},
}
REGISTRY: Final = Registry.from_text(
    HEAD + "".join(table(name, fields, every='"1d"') for name, fields in KINDS.items())
)
QUESTIONS: Final[list[tuple[str, list[str], dict[str, Any]]]] = [
    ("estimate", ["theme"], {}),
    ("frequency", ["theme"], {"postprocess": "norm_sub"}),
    ("top_k", ["theme"], {"options": {"k": 2}}),
    ("mean", ["age"], {}),
    ("sum", ["age"], {}),
    ("variance", ["wait"], {}),
    ("quantile", ["wait"], {"options": {"levels": [0.5, 0.99]}}),
    ("cdf", ["wait"], {"postprocess": "isotonic", "options": {"points": [1, 20.5]}}),
    ("histogram", ["wait"], {"options": {"buckets": 6}}),
    ("key_values", ["games"], {"options": {"keys": ["video"]}}),
    ("range", ["wait"], {"options": {"ranges": [[None, 10], [11, 30.5]]}}),
    ("range", ["theme"], {"options": {"low": "free", "high": "pro"}}),
    ("crosstab", ["people"], {"options": {"simultaneous": True}}),
    ("crosstab", ["theme", "plan"], {}),
    ("ratio", ["wait", "theme"], {"options": {"denominator": "free", "of": "totals"}}),
    ("ratio", ["shop", "plan"], {"options": {"numerator": "cart", "denominator": "x"}}),
    ("funnel", ["shop"], {}),
    ("heavy_hitters", ["word"], {"options": {"threshold": 0.45, "alphabet": "abcdef"}}),
    ("heavy_hitters", ["word"], {"options": {"candidates": ["cafe", "decade"]}}),
    ("retention", ["visits"], {}),
    ("map", ["place"], {"options": {"coarsen": 2}}),
    ("crosstab", ["leaves"], {}),
    ("crosstab", ["leaves"], {"options": {"of": "label"}}),
    ("crosstab", ["pairs"], {}),
    ("vector", ["axes"], {}),
]
BETWEEN: Final[list[tuple[str, list[str], dict[str, Any]]]] = [  # questions about several slices
    ("actives", ["theme"], {"dimensions": ["time:day"]}),
    ("adoption", ["theme"], {"dimensions": ["platform", "time:day"]}),
    ("compare", ["theme"], {"dimensions": ["time:day"]}),
    ("lift", ["theme"], {"options": {"dimension": "platform", "control": "mac"}}),
    ("segments", ["theme"], {"options": {"item": "free"}}),
    ("trend", ["theme"], {"dimensions": ["time:day"]}),
]
SOME: Final[dict[str, list[Any]]] = {  # values of fifty devices
    "leaves": [{"plan": "pro", "age": 40, "label": "left"}] * 50,
    "axes": [[0.5, 0.25, -0.5]] * 50,
}
TODAY: Final = int(NOON) // 86_400


@cache
def storage() -> MemoryStorage:
    """Return a store with reports of two platforms on two days of every metric; all read it."""
    found = MemoryStorage()
    for name in KINDS:
        metric = REGISTRY.metric(name)
        for day in (TODAY - 2, TODAY - 1):
            for platform, n in (("linux", 6_000), ("mac", 100)):
                cell = Cell(metric.digest, day, segment_text(metric, {"platform": platform}))
                vector = [n, *tally_of(name, n)]
                found.put({cell: [(i, v) for i, v in enumerate(vector) if v]})
    return found


def tally_of(name: str, n: int) -> list[int]:
    """Return a tally that *n* reports can give."""
    mechanism = REGISTRY.metric(name).mechanism
    if name in SOME:
        return [cell * (n // 50) for cell in of_fifty(name)]
    if name == "age":
        return [10 * n, 100 * n, 0]
    if name == "games":
        return [n // 3, n // 5, n // 9, n // 9, n // 9, n // 9]
    if isinstance(mechanism, PEM):
        return [int(count) for count in text_tally(mechanism, [b"cafe"], [n], seed=1)]
    law = law_of(mechanism)
    cells = np.floor(n * np.linspace(1, 3, len(law)) @ law / (2 * len(law))).astype(int)
    cells[0] += n - cells.sum()
    return [int(cell) for cell in cells]


@cache
def of_fifty(name: str) -> tuple[int, ...]:
    """Return the tally of fifty devices."""
    tally, _ = reported(REGISTRY.metric(name), SOME[name], seed="0")
    return tuple(map(int, tally))


@pytest.mark.parametrize("dimensions", [[], ["time:day", "platform"]], ids=["whole", "sliced"])
@pytest.mark.parametrize(("verb", "metrics", "more"), QUESTIONS)
def test_a_request_of_each_verb_is_answered_with_rows_of_json(
    verb: str, metrics: list[str], more: dict[str, Any], dimensions: list[str]
) -> None:
    """Slices that are large enough have numbers, others reasons; all is of the declared types."""
    body = {"verb": verb, "metrics": metrics, "dimensions": dimensions, "date_range": "7d", **more}

    reply = run(plan(read(json.dumps(body).encode()), Catalog([REGISTRY]), NOON), storage())

    rows = msgspec.json.decode(msgspec.json.encode([flat(row) for row in reply.rows]))
    assert rows
    assert all((row["value"] is None) == (row["reason"] is not None) for row in rows)
    numbers = [row for row in rows if row["value"] is not None]
    assert numbers
    assert all(row["ci_low"] <= row["ci_high"] for row in numbers)
    body_sent = msgspec.json.encode(reply)
    assert msgspec.json.encode(msgspec.json.decode(body_sent, type=Answer)) == body_sent
    if dimensions:
        platforms = {row["platform"] for row in numbers}
        assert platforms == {"linux"}, "the smaller one has too few reports"
        assert {row["platform"] for row in rows} == {"linux", "mac"}
        assert len({row["time"] for row in rows}) == 2


@pytest.mark.parametrize(("verb", "metrics", "more"), [*QUESTIONS, *BETWEEN])
def test_no_column_of_an_answer_hides_another(
    verb: str, metrics: list[str], more: dict[str, Any]
) -> None:
    """Law: every form has a column for each dimension and for each field of a number."""
    body = {"verb": verb, "metrics": metrics, "dimensions": ["platform"], "date_range": "7d"}
    asked = plan(read(json.dumps({**body, **more}).encode()), Catalog([REGISTRY]), NOON)

    reply = run(asked, storage())

    header = next(csv.reader(csv_of(reply.rows, reply.meta.facts).splitlines()))
    sent: Any = msgspec.json.decode(msgspec.json.encode(reply))
    result = Result(tuple(sent["rows"]), sent["meta"])
    of_forms = (records_of(reply.rows, reply.meta.facts), result.records())
    assert len(set(header)) == len(header) == len(columns_of(reply))
    for row, *records in zip(reply.rows, *of_forms, strict=True):
        for record in records:
            values = list(record.values())
            assert set(record) <= set(header)
            assert record["value"] == row.value
            assert values[: len(row.dimensions)] == list(row.dimensions.values())


@pytest.mark.parametrize(
    ("verb", "metric", "dimensions", "known"),
    [
        ("estimate", "theme", [], True),
        ("trend", "theme", ["time:day"], True),  # a verb that joins, of a plain domain
        ("frequency", "shop", [], True),  # a verb that does not join, of a joined domain
        ("funnel", "shop", [], False),  # both: rows of what one report says together
    ],
)
def test_rows_have_an_influence_of_fakes_unless_they_join_items_of_a_report(
    verb: str, metric: str, dimensions: list[str], known: bool
) -> None:
    body = {"verb": verb, "metrics": [metric], "dimensions": dimensions, "date_range": "7d"}

    reply = run(plan(read(json.dumps(body).encode()), Catalog([REGISTRY]), NOON), storage())

    assert (reply.rows[0].influence is not None) is known


def test_the_columns_of_every_verb_are_looked_at() -> None:
    asked = {verb for verb, _, _ in [*QUESTIONS, *BETWEEN]}

    assert asked == set(names()), "ask it in QUESTIONS, or in BETWEEN"


def test_a_record_asked_without_its_table_says_what_its_reports_are_of() -> None:
    """n differs between both verbs: each report is about one attribute."""
    found = {}
    for verb in ("frequency", "crosstab"):
        body = {"verb": verb, "metrics": ["leaves"], "date_range": "7d"}
        asked = plan(read(json.dumps(body).encode()), Catalog([REGISTRY]), NOON)
        found[verb] = run(asked, storage())

    table, shares = found["crosstab"], found["frequency"]
    assert {row.n for row in shares.rows} == {shares.meta.n}
    assert sum({row.dimensions["attribute"]: row.n for row in table.rows}.values()) == table.meta.n
    assert remark(Code.REPORTS_OF_RECORDS, "leaves") in shares.meta.warnings
    assert Code.REPORTS_OF_RECORDS not in [each.code for each in table.meta.warnings]
