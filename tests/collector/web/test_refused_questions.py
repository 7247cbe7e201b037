"""A question that is refused says where it is wrong, or too large, and what would work."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.analytics.verb import names
from collector.core.cells import Cell
from collector.core.errors import BusyError
from collector.query.gate import MOST_READ
from collector.storage.values import Index
from collector.web.api.query import MOST_BYTES
from tests.collector.web.conftest import MakeApp
from tests.support.crowds.asked import JANUARY, follow, post
from tests.support.store.memory_storage import MemoryStorage

CANARY: Final = "canary-7f3a"
PAGE: Final = {"metrics": ["page"], "date_range": JANUARY}
INJECTIONS: Final = ("' or 1=1 --", "linux\0", "{{7*7}}", "../mac", "\r\nX: y", "$ne", CANARY)


def fault_of(client: FlaskClient, question: Any) -> dict[str, str]:
    """Return the one fault that the problem names."""
    response = post(client, question)
    document = response.get_json(force=True)
    assert response.status_code == 400, response.text
    assert response.content_type == "application/problem+json"
    assert document["type"] == "urn:hearsay:problem:bad-parameter"
    assert CANARY not in response.text
    (fault,) = document["errors"]
    fault = dict[str, str](fault)
    assert fault["detail"]
    assert document["detail"].endswith(fault["detail"])
    return fault


@pytest.mark.parametrize(
    ("change", "pointer", "works"),
    [
        ({"date_range": "forever"}, "/date_range", "7d, 14d, 28d"),
        ({"date_range": ["2026-02-02", "2026-02-01"]}, "/date_range", "must not be after"),
        ({"date_range": ["1970-01-01", "2026-02-01"]}, "/date_range", "at most 10000 epochs"),
        ({"date_range": ["2026-01-01", CANARY]}, "/date_range/1", "a date such as 2026-01-31"),
        (
            {"metrics": ["theme"], "date_range": ["2026-02-03", "2026-02-04"]},
            "/date_range",
            "no whole epoch of 7d",
        ),
        ({"dimensions": [CANARY]}, "/dimensions", "time, platform"),
        ({"dimensions": ["platform", "platform"]}, "/dimensions/1", "twice"),
        ({"dimensions": ["time:second"]}, "/dimensions", "time:week"),
        ({"filters": [["is", "platform", [CANARY]]]}, "/filters/0", "linux, mac"),
        ({"filters": [["is", CANARY, ["mac"]]]}, "/filters/0", "time, platform"),
        ({"filters": [[CANARY, "platform", ["mac"]]]}, "/filters/0/0", "is, is_not"),
        (
            {"filters": [["is", "platform", ["mac"]], ["is", "platform", ["linux"]]]},
            "/filters/1",
            "leaves no value",
        ),
        ({"alpha": 0}, "/alpha", ">= 1e-06"),
        ({"alpha": 2}, "/alpha", "<= 0.5"),
        ({"alpha": CANARY}, "/alpha", "`float`"),
        ({"verb": CANARY}, "/verb", ", ".join(names()[:3])),
        ({"verb": "mean"}, "/metrics/0", "frequency"),
        ({"metrics": ["age"], "verb": "top_k"}, "/metrics/0", "mean"),
        ({"metrics": ["page", "theme"]}, "/metrics", "at most 1"),
        ({"metrics": [CANARY, CANARY]}, "/metrics", "must be different"),
        ({"postprocess": "norm_sub"}, "/postprocess", "raw"),
        ({"pagination": {"limit": 1_000_000}}, "/pagination/limit", "<= 10000"),
        ({"pagination": {CANARY: 1}}, "/pagination", "limit, offset"),
        ({"verb": "top_k", "options": {"k": 10**9}}, "/options/k", "<= 10000"),
        ({"verb": "top_k", "options": {"order": CANARY}}, "/options/order", "least, most"),
        ({"verb": "top_k", "options": {CANARY: 1}}, "/options", "k, order"),
        ({"options": {CANARY: 1}}, "/options", "none"),
        ({"order_by": [["value", CANARY]]}, "/order_by/0/1", "asc, desc"),
        ({"include": [CANARY]}, "/include/0", "total_rows"),
        ({"version": 0, "date_range": "7d"}, "/version", "none yet"),
        ({"version": 3, "date_range": ["2026-02-01", "2026-03-01"]}, "/version", "at most 0"),
        ({"version": 10**30}, "/version", "3"),
        ({CANARY: 1}, "", "metrics, verb"),
    ],
)
def test_a_problem_points_at_the_fault_and_says_what_would_work(
    client: FlaskClient, change: dict[str, Any], pointer: str, works: str
) -> None:
    """The pointer leads to what is there in the question, or to where it should be."""
    fault = fault_of(client, PAGE | change)

    assert fault["pointer"] == pointer
    assert works in fault["detail"]


def test_a_pointer_leads_into_the_document_that_was_sent(client: FlaskClient) -> None:
    """Resolved as RFC 6901 says."""
    question = PAGE | {"filters": [["is", "platform", ["mac"]], ["is", "platform", ["amiga"]]]}

    found: Any = question
    for step in fault_of(client, question)["pointer"].split("/")[1:]:
        found = found[int(step)] if isinstance(found, list) else found[step]

    assert found == ["is", "platform", ["amiga"]]


@pytest.mark.parametrize("column", ["colour", "dimensions", "__class__", "item' --"])
def test_an_order_by_what_is_no_column_names_the_columns(client: FlaskClient, column: str) -> None:
    fault = fault_of(client, PAGE | {"order_by": [["value", "asc"], [column, "asc"]]})

    assert fault["pointer"] == "/order_by/1"
    assert "ci_high" in fault["detail"]
    assert column not in fault["detail"].split(", ")


@pytest.mark.parametrize("text", INJECTIONS)
def test_text_that_another_language_would_run_is_only_an_unknown_value(
    client: FlaskClient, text: str
) -> None:
    for question in (
        PAGE | {"filters": [["is", "platform", [text]]]},
        PAGE | {"filters": [["is_not", text, ["mac"]]]},
        PAGE | {"dimensions": [text]},
        PAGE | {"verb": text},
    ):
        assert text not in fault_of(client, question)["detail"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        *((body, "") for body in (b"", b"null", b"[]", b"1", b"\xff\xfe", b'{"metrics":["page"]')),
        (b'{"metrics":["page"]}{}', ""),
        (b'{"metrics":["page"],"metrics":["age"]}', "/metrics"),
        (b'{"metrics":["page"],"pagination":{"limit":1,"limit":2}}', "/pagination/limit"),
        (b'{"metrics":["page"],"verb":"top_k","options":{"x":1,"x":2}}', "/options"),
        (b'{"metrics":["page"],"alpha":NaN}', ""),
        (b'{"metrics":["page"],"alpha":1e999}', "/alpha"),
        (b'{"metrics":["page"],"alpha":' + b"9" * 50_000 + b"}", "/alpha"),
        (b'{"metrics":["page"],"options":' + b"[" * 30_000 + b"]" * 30_000 + b"}", "/options"),
        (b'{"options":' * 4_000 + b"1" + b"}" * 4_000, ""),
    ],
    ids=lambda part: repr(part[:24]),
)
def test_a_body_that_is_no_question_is_refused_as_a_whole_or_at_its_place(
    client: FlaskClient, body: bytes, pointer: str
) -> None:
    """A name that stands twice, too: one reader would take the first, another the last."""
    assert fault_of(client, body)["pointer"] == pointer


def test_a_body_is_read_up_to_its_limit(client: FlaskClient) -> None:
    body = json.dumps(PAGE).encode()

    assert post(client, body.ljust(MOST_BYTES)).status_code == 200
    refused = post(client, body.ljust(MOST_BYTES + 1))

    assert refused.status_code == 413
    assert str(MOST_BYTES) in refused.get_json(force=True)["detail"]


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "", "text/json"]
)
def test_a_body_of_another_type_is_not_read(client: FlaskClient, kind: str) -> None:
    """Pages of other sites can send such bodies without being asked about it."""
    response = post(client, PAGE, kind=kind)

    assert response.status_code == 415
    assert "application/json" in response.get_json(force=True)["detail"]


def test_the_type_of_a_body_may_name_its_charset(client: FlaskClient) -> None:
    assert post(client, PAGE, kind="application/json; charset=utf-8").status_code == 200


def test_an_unknown_metric_is_not_found_and_not_repeated(client: FlaskClient) -> None:
    response = post(client, PAGE | {"metrics": [CANARY]})

    assert response.status_code == 404
    assert response.get_json(force=True)["errors"] == [
        {
            "pointer": "/metrics",
            "detail": "is not known; known are page, opted_in, crashed, theme, age",
        }
    ]
    assert CANARY not in response.text


def test_a_fault_of_a_link_names_the_parameter(client: FlaskClient) -> None:
    """And the place in the document that the parameter is."""
    response = follow(client, PAGE | {"alpha": 2})
    missing = follow(client, PAGE, r=CANARY)

    (fault,) = response.get_json(force=True)["errors"]
    assert (fault["parameter"], fault["pointer"]) == ("q", "/alpha")
    assert missing.status_code == 400
    assert CANARY not in missing.text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "verb": st.sampled_from([*names(), "x"]),
            "metrics": st.lists(
                st.sampled_from(["page", "theme", "age", "crashed", "opted_in"]), max_size=3
            ),
            "date_range": st.sampled_from(["day", "7d", "12mo", "x"])
            | st.lists(st.dates().map(str), min_size=2, max_size=2),
            "dimensions": st.lists(
                st.sampled_from(["time", "time:month", "time:period", "platform", "x"]), max_size=3
            ),
            "filters": st.lists(
                st.tuples(
                    st.sampled_from(["is", "is_not"]),
                    st.sampled_from(["platform", "channel"]),
                    st.lists(st.sampled_from(["mac", "linux", "amiga"]), max_size=2),
                ),
                max_size=2,
            ),
            "options": st.dictionaries(
                st.sampled_from(["k", "item", "levels", "points", "window", "dimension", "by"]),
                st.none() | st.integers() | st.floats() | st.just("platform") | st.just([0.5]),
                max_size=2,
            ),
            "order_by": st.lists(st.tuples(st.just("value"), st.just("desc")), max_size=1),
        },
    )
)
def test_any_question_is_answered_or_refused_at_a_place(
    client: FlaskClient, storage: MemoryStorage, question: dict[str, Any]
) -> None:
    """200, 400 or 404 for every verb; a refusal says where and what would work."""
    response = post(client, PAGE | question)

    assert response.status_code in (200, 400, 404), response.text
    if response.status_code == 400:
        (fault,) = response.get_json(force=True)["errors"]
        head = fault["pointer"].split("/")[1:2]
        assert set(head) <= {"verb", "metrics", "date_range", "dimensions", "filters", "options",
                             "order_by", "postprocess"}  # fmt: skip
        assert fault["detail"]


ASKED = {"metrics": ["page"], "date_range": JANUARY}


class Crowded(MemoryStorage):
    """Has more tallies than one question may read, and gives none."""

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        return Index((), MOST_READ, {})

    def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
        raise AssertionError("was read")


class Busy(MemoryStorage):
    def vectors(self, index: Index, width: int) -> Iterator[tuple[Cell, bytes]]:
        raise BusyError("questions: too many large ones wait; ask again later, or for less")


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> MemoryStorage:
    made: MemoryStorage = getattr(request, "param", MemoryStorage)()
    return made


@pytest.mark.parametrize("storage", [Crowded], indirect=True)
def test_more_than_one_question_may_read_is_told_before_it_is_read(client: FlaskClient) -> None:
    refused = post(client, ASKED)

    problem = refused.get_json(force=True)
    assert (refused.status_code, problem["type"]) == (400, "urn:hearsay:problem:bad-parameter")
    assert problem["detail"].startswith("date_range: would read 256000000 counters")
    assert problem["detail"].endswith("take a shorter window")


@pytest.mark.parametrize("storage", [Busy], indirect=True)
def test_too_many_large_questions_at_once_are_asked_to_come_again(make_app: MakeApp) -> None:
    refused = post(make_app().test_client(), ASKED)

    assert (refused.status_code, refused.get_json(force=True)["type"]) == (
        429,
        "urn:hearsay:problem:busy",
    )
    assert int(refused.headers["Retry-After"]) > 0
