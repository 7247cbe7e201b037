"""A type of values is one class: declared in the tests alone, it is served from end to end."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient

from client_sdk.core.epoch import DAY
from client_sdk.core.errors import RegistryError
from client_sdk.privacy.caps import DEFAULT_CAPS
from client_sdk.privacy.wording import explain, notice, what_was_sent
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from client_sdk.registry.types import kinds
from client_sdk.registry.types.items import BooleanDomain
from client_sdk.testing import FrozenClock, MemoryClient, MemoryTransport
from collector.analytics.verb import load, names
from collector.cli import main
from collector.core.catalog import Catalog
from collector.query.release.publish import ReleaseRequest, release
from collector.web.api.query import describe
from collector.web.api.schemas import Metric as Described
from collector.worker.worker import Worker
from tests.support.crowds.asked import post as ask
from tests.support.crowds.uploads import ADMIN_TOKEN, COMMON, NOON, READ_TOKEN, WRITE_KEY, bearer
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    FUNNEL,
    KEY_VALUE,
    LOCATION,
    NUMBER,
    PAIR,
    RECORD,
    RETENTION,
    SET,
    STRING,
    TASTE,
    VECTOR,
    file_with,
)
from tests.support.device.value_types import DAYS, RatingDomain, WeekdayDomain
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.sites.in_memory import in_memory
from tests.support.sites.posting import post
from tests.support.store.memory_storage import MemoryStorage

SEEDED: Final = SeededRandomness(b"a new type")
NEED_MORE: Final = {
    "compare",
    "lift",
    "segments",
    "adoption",
    "crosstab",
    "ratio",
}  # dimensions, metrics
N: Final = 210  # reports of each metric
_COMMON: Final = COMMON.format(epsilon="2.0", min_reports=100, expires="2027-12-31")
HEAD: Final = 'schema = 1\napp = "types"\n[segments]\nplatform = ["linux", "mac"]\n'
TEXT: Final = HEAD + "".join(
    f'[metrics.{name}]\ntitle = "All of {name}"\nquestion = "What about {name}?"\n'
    f'every = "1d"\nsegments = ["platform"]\n{fields}\n{_COMMON}\n'
    for name, fields in {
        "begun": 'type = "weekday"\naggregate = "most_common"',
        "liked": 'type = "rating"\nmax = 10\nmechanism = "square_wave"',
        "thanked": 'type = "rating"\nmechanism = "hybrid"',
    }.items()
)
REGISTRY: Final = Registry.from_text(TEXT)
METRICS: Final = tuple(REGISTRY)
each = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)


def values(index: int) -> dict[str, object]:
    """Return what device *index* records: most begin on a Monday and give few stars."""
    day = 1 + (index % 7 if index % 2 else 0)
    return {"begun": day, "liked": 2 + index % 3, "thanked": 1 + index % 2}


@pytest.fixture(scope="module")
def storage() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture(scope="module")
def site(storage: MemoryStorage, tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    """The pages of a collector that took and folded what N devices recorded and sent."""
    settings = {
        "HEARSAY_WRITE_KEY": WRITE_KEY,
        "HEARSAY_READ_TOKEN": READ_TOKEN,
        "HEARSAY_ADMIN_TOKEN": ADMIN_TOKEN,
    }
    app = in_memory(tmp_path_factory.mktemp("types"), TEXT, storage=storage, settings=settings)
    browser = app.test_client()
    for index in range(N):
        clock, transport = FrozenClock(NOON - DAY), MemoryTransport()
        segment = {"platform": ("linux", "mac")[index % 2]}
        with MemoryClient(REGISTRY, clock=clock, segment=segment, transport=transport) as client:
            for name, value in values(index).items():
                client.record(name, value)
            clock.advance(days=1)
            client.flush()
        for body in transport.uploads:
            assert post(browser, body).status_code == 202
    mechanisms = {metric.digest: metric.mechanism for metric in METRICS}
    worker = Worker(storage, mechanisms, {metric.digest: metric.every for metric in METRICS})
    while worker.step():
        pass
    browser.set_cookie("hearsay", READ_TOKEN)
    return browser


def test_the_types_are_known_by_being_declared() -> None:
    assert kinds()["weekday"] is WeekdayDomain
    assert kinds()["rating"] is RatingDomain


def test_a_name_that_is_taken_is_refused() -> None:
    """Else the same registry would mean something else, and say so nowhere."""
    with pytest.raises(TypeError, match="types=boolean: must not be the name of another type"):
        type("Truth", (WeekdayDomain,), {"types": ("boolean",)})

    assert kinds()["boolean"] is BooleanDomain


def test_a_broken_table_of_a_new_type_is_told_by_its_own_rule() -> None:
    with pytest.raises(RegistryError, match=r"metrics\.liked\.max: must be an integer"):
        Registry.from_text(TEXT.replace("max = 10", "max = 1"))
    with pytest.raises(RegistryError, match=r"metrics\.begun\.max: is not a known key"):
        Registry.from_text(TEXT.replace('"weekday"', '"weekday"\nmax = 3'))


@pytest.mark.parametrize("command", ["check", "plan", "budget", "codegen"])
def test_the_commands_of_registries_serve_it(tmp_path: Path, command: str) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(TEXT, encoding="utf-8")

    shown = CliRunner().invoke(main, ["registry", command, str(path)])

    assert shown.exit_code == 0, shown.output
    assert all(metric.name in shown.output for metric in METRICS)
    expected = {
        "plan": ("begun: 7 items", "liked: 10 stars", "% of the range"),
        "check": ("points per item", " stars"),
        "codegen": ("Handle[int]", "From 1 to 10 stars"),
    }
    assert all(words in shown.output for words in expected.get(command, ()))
    assert command != "codegen" or compile(shown.output, "handles.py", "exec")


@each
def test_a_plan_is_in_its_unit(tmp_path: Path, metric: Metric) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(TEXT, encoding="utf-8")

    shown = CliRunner().invoke(main, ["plan", str(path), metric.name])

    assert shown.exit_code == 0, shown.output
    assert (" stars" in shown.output) is (metric.domain.unit == "stars")
    assert metric.domain.size_in_words() in shown.output


@each
def test_a_device_tells_its_user_of_it(metric: Metric) -> None:
    """What is asked, what it costs, and what a report said."""
    payload = metric.mechanism.randomize(metric.encode(values(3)[metric.name]), SEEDED)

    assert metric.question in notice(REGISTRY, DEFAULT_CAPS)
    assert metric.domain.form in explain(metric, DEFAULT_CAPS)
    assert "mean nothing here" not in what_was_sent(metric, payload)


def test_every_verb_that_takes_it_answers_of_what_was_recorded(site: FlaskClient) -> None:
    """From record over upload and fold to the verb: every number has an interval."""
    answered = set()
    for metric in METRICS:
        for verb in names():
            if load(verb).refusal(metric) is None and verb not in NEED_MORE:
                answered.add((metric.name, verb))
                reply = ask(site, {"metrics": [metric.name], "verb": verb, "date_range": "7d"})
                assert reply.status_code == 200, (verb, reply.text)
                rows = reply.get_json()["rows"]
                assert rows
                numbers = [row for row in rows if row["value"] is not None]
                assert all(row["ci_low"] <= row["ci_high"] for row in numbers), verb
                assert all(numbers or row["reason"] for row in rows), verb
    own = {(metric.name, metric.domain.verb) for metric in METRICS}
    assert own | {("begun", "frequency"), ("liked", "quantile"), ("thanked", "sum")} <= answered


def test_the_answers_are_what_devices_recorded(site: FlaskClient) -> None:
    """Within seven standard errors: two of 10^12 runs fail."""
    truth = {"begun": {"Mon": 120 / N}, "thanked": {"": 1.5}}
    verbs = {"begun": "frequency", "thanked": "mean"}

    for name, numbers in truth.items():
        question = {"metrics": [name], "verb": verbs[name], "date_range": "7d"}
        rows = ask(site, question).get_json()["rows"]
        assert sum(row["n"] for row in rows[:1]) == N
        for row in rows:
            item = row["dimensions"].get("item", "")
            if item in numbers:
                assert abs(row["value"] - numbers[item]) < 7 * row["std_error"]


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/compare", "/privacy", "/privacy/people", "/plan?metric={}", "/metric/{}"),
        *("/ask?metric={}", "/ask?metric={}&verb=estimate"),
    ],
)
def test_every_page_shows_it(site: FlaskClient, path: str) -> None:
    for metric in METRICS:
        text = site.get(path.format(metric.name), headers={"Accept": "text/html"}).text

        assert 'class="fault"' not in text
        assert metric.title in text
        if path.startswith(("/metric", "/ask?metric={}&verb")):
            assert text.count("<svg") >= 1
            assert any(label in text for label in metric.domain.labels or ("stars",))


def test_a_tile_says_what_its_number_is_of(site: FlaskClient) -> None:
    """In the words of the type."""
    page = site.get("/", headers={"Accept": "text/html"}).text

    assert any(f"on {day}" in page for day in DAYS)
    assert page.count("stars") >= 2


def test_it_is_described_by_the_keys_of_its_registry(site: FlaskClient) -> None:
    described = {
        one["name"]: one
        for one in site.get("/v1/metrics", headers=bearer(READ_TOKEN)).get_json()["metrics"]
    }

    assert described["begun"]["values"] == list(DAYS)
    assert described["liked"]["unit"] == "stars"


@pytest.mark.parametrize("name", ["begun", "liked"])
def test_it_is_released_as_a_histogram_and_records(
    site: FlaskClient, storage: MemoryStorage, tmp_path: Path, name: str
) -> None:
    files = release(ReleaseRequest(name, size=50), Catalog([REGISTRY]), storage, NOON, tmp_path)

    histogram, records = (
        list(csv.DictReader(path.read_text("utf-8").splitlines()))
        for kind in ("histogram.csv", "records.csv")
        for path in files
        if path.name.endswith(kind)
    )
    assert sum(int(row["count"]) for row in histogram) == N
    assert len(records) == 50
    assert {row[name] for row in records} <= {*DAYS, *map(str, range(1, 11))}


FORMS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "boolean": (BOOLEAN, {"values": ["false", "true"]}),
    "category": (CATEGORY, {"values": ["free", "pro", "team"]}),
    "set": (SET, {"values": ["a", "b", "c"]}),
    "number": (NUMBER, {"min": 0, "max": 10.5, "step": 0.5, "unit": "minutes"}),
    "key_value": (
        KEY_VALUE,
        {
            "values": ["video", "music", "chess"],
            "min": -10,
            "max": 30,
            "unit": "minutes",
            "most": 2,
        },
    ),
    "string": (STRING, {"length": 8}),
    "location": (LOCATION, {"min": [-10, 45.5], "max": [30, 47.5], "cells": [4, 2]}),
    "pair": (
        PAIR,
        {
            "parts": [
                {"name": "sex", "values": ["female", "male"]},
                {"name": "income", "values": ["low", "middle", "high"]},
            ]
        },
    ),
    "record": (
        RECORD,
        {
            "attributes": [
                {"name": "plan", "values": ["free", "pro", "team"]},
                {
                    "name": "age",
                    "values": ["below 30", "30 to 50.5", "50.5 or more"],
                    "edges": [30.0, 50.5],
                },
            ],
            "label": ["stayed", "left"],
        },
    ),
    "vector": (
        VECTOR,
        {"length": 3, "values": ["1", "2", "3"], "norm": "l2", "bound": 1.0, "unit": "points"},
    ),
    "taste": (TASTE, {"values": ["news", "chess", "sport"]}),
    "funnel": (FUNNEL, {"values": ["visit", "cart", "paid"]}),
    "retention": (RETENTION, {"periods": ["week 0", "week 1", "week 2", "week 3"]}),
}


@pytest.mark.parametrize("kind", FORMS)
def test_a_domain_is_told_by_the_keys_of_its_registry(kind: str) -> None:
    """Who reads the JSON needs no other names than who wrote the registry."""
    fields, form = FORMS[kind]
    (metric,) = Registry.from_text(file_with(fields))

    told = json.loads(json.dumps(metric.domain.as_json()))

    assert told == form
    # two tell nothing of values, others are rare
    absent = {"shape", "ask", "other", "learning", "expected_size"}
    assert set(told) == kinds()[kind].table_keys - absent or kind == "boolean"


@pytest.mark.parametrize("kind", FORMS)
def test_a_metric_of_every_type_is_as_the_document_says(kind: str) -> None:
    """No key is missing in the OpenAPI document, and none has another type."""
    (metric,) = Registry.from_text(file_with(FORMS[kind][0]))
    body = json.dumps(describe(metric)).encode()

    told = msgspec.json.decode(body, type=Described)

    assert told.type == kind


@pytest.mark.parametrize("fields", [CATEGORY, SET])
def test_the_item_of_unlisted_values_is_told_by_name(fields: dict[str, str]) -> None:
    """It stands among the values, so answers and pages have a row for it as for any other."""
    (metric,) = Registry.from_text(file_with({**fields, "other": '"rest"'}))

    told = msgspec.json.decode(json.dumps(describe(metric)).encode(), type=Described)

    assert told.other == "rest"
    assert isinstance(told.values, list)
    assert told.values[-1] == metric.domain.answer_items()[-1] == "rest"


def test_what_is_assumed_of_numbers_is_told_beside_their_domain() -> None:
    """Of other values nothing is."""
    shapes = [
        describe(metric).get("shape")
        for fields in ({**NUMBER, "shape": '"smooth"'}, NUMBER, SET)
        for metric in Registry.from_text(file_with(fields))
    ]

    assert shapes == ["smooth", "any", None]
