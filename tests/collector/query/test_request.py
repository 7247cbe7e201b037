"""A question is read strictly: what is wrong is named by its place, and never repeated."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.errors import UnknownMetricError
from collector.core.catalog import Catalog
from collector.core.errors import QueryError
from collector.query import Plan, plan, question, read
from tests.support.crowds.uploads import NOON, registry

CATALOG = Catalog([registry(min_reports=100)])
CANARY = "canary-7f3a"


def planned(**fields: Any) -> Plan:
    return plan(read(json.dumps({"metrics": ["page"], **fields}).encode()), CATALOG, NOON)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"metrics": []}, "metrics"),
        ({"metrics": ["page"] * 9}, "metrics"),
        ({"metrics": ["page", "page"]}, "metrics"),
        ({"metrics": ["page", "theme"]}, "metrics"),
        ({"metrics": "page"}, "metrics"),
        ({"metrics": ["age"], "verb": "frequency"}, "metrics.0"),
        ({"verb": "drop table"}, "verb"),
        ({"verb": ""}, "verb"),
        ({"verb": "../estimate"}, "verb"),
        ({"date_range": "forever"}, "date_range"),
        ({"date_range": ["2026-02-02"]}, "date_range"),
        ({"date_range": ["2026-02-02", "2026-02-01"]}, "date_range"),
        ({"date_range": ["1970-01-01", "2026-02-01"]}, "date_range"),
        ({"date_range": ["2026-02-01", "tomorrow"]}, "date_range.1"),
        ({"against": "last year"}, "against"),
        ({"against": ["2026-01-01"]}, "against"),
        ({"dimensions": ["channel"]}, "dimensions"),
        ({"dimensions": ["platform", "platform"]}, "dimensions.1"),
        ({"dimensions": ["time:second"]}, "dimensions"),
        ({"dimensions": ["time:"]}, "dimensions"),
        ({"dimensions": ["time:hour"]}, "dimensions"),
        ({"dimensions": ["a", "b", "c", "d", "e"]}, "dimensions"),
        ({"filters": [["is", "platform", ["amiga"]]]}, "filters.0"),
        ({"filters": [["is", "platform", []]]}, "filters.0.2"),
        ({"filters": [["like", "platform", ["mac"]]]}, "filters.0.0"),
        ({"filters": [["is", "platform' or 1=1 --", ["mac"]]]}, "filters.0"),
        ({"filters": [["is", "time:day", ["2026-01-01"]]]}, "filters.0"),
        ({"filters": [["is_not", "platform", ["mac", "linux"]]]}, "filters.0"),
        ({"filters": {"platform": "mac"}}, "filters"),
        ({"alpha": 0}, "alpha"),
        ({"alpha": 2}, "alpha"),
        ({"alpha": "0.05"}, "alpha"),
        ({"postprocess": "round"}, "postprocess"),
        ({"pagination": {"limit": 1_000_000}}, "pagination.limit"),
        ({"pagination": {"limit": 0}}, "pagination.limit"),
        ({"pagination": {"offset": -1}}, "pagination.offset"),
        ({"options": {"k": 5}}, "options"),
        ({"version": 9}, "version"),
        ({"version": 3}, "version"),
        ({"order_by": [["value", "up"]]}, "order_by.0.1"),
        ({"include": ["everything"]}, "include.0"),
        ({CANARY: 1}, "body"),
    ],
)
def test_what_cannot_be_answered_is_named_by_its_place(fields: dict[str, Any], place: str) -> None:
    with pytest.raises(QueryError) as caught:
        planned(**fields)

    assert caught.value.place == place
    assert caught.value.rule


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"null", b"[]", b"\xff", b'{"metrics":["page"]', b"{}{}", b"[" * 60_000),
        b'{"metrics":["page"],"alpha":' + b"9" * 60_000 + b"}",
        b'{"metrics":["page"],"alpha":NaN}',
    ],
)
def test_a_body_that_is_no_question_is_refused(body: bytes) -> None:
    with pytest.raises(QueryError):
        read(body)


def test_a_metric_that_nobody_declared_is_unknown() -> None:
    with pytest.raises(UnknownMetricError):
        planned(metrics=["pages"])


DOCUMENTS: Final = st.recursive(
    st.none() | st.booleans() | st.floats() | st.just(CANARY) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["metrics", "filters", "dimensions", "alpha", "options", "verb"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def test_any_document_is_answered_or_refused() -> None:
    """Nothing but our own errors, and some of both."""
    answered = set[bool]()

    @given(st.fixed_dictionaries({}, optional={"options": DOCUMENTS, "filters": DOCUMENTS}))
    def ask(fields: dict[str, Any]) -> None:
        try:
            plan(read(json.dumps({"metrics": ["page"], **fields}).encode()), CATALOG, NOON)
        except QueryError:
            answered.add(False)
        else:
            answered.add(True)

    ask()
    assert answered == {False, True}


def test_dimensions_that_give_too_many_groups_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[Plan.__module__], "MOST_GROUPS", 59)

    with pytest.raises(QueryError, match="would give 60 groups, must be at most 59"):
        planned(date_range="30d", dimensions=["time", "platform"])


def test_an_unknown_range_beside_is_told_with_all_that_work() -> None:
    """Words, and days: msgspec knows the words alone."""
    with pytest.raises(QueryError, match=r"^against: known are previous, year, or two dates such"):
        read(b'{"metrics": ["theme"], "against": "last"}')


@pytest.mark.parametrize("words", ["7d", "28d", "month"])
def test_an_address_takes_a_range_in_words_as_a_body_does(words: str) -> None:
    metric = CATALOG.metric("page")

    asked = plan(question(metric, {"range": words}, NOON), CATALOG, NOON)

    assert asked.readings[0].epochs == planned(date_range=words).readings[0].epochs
    with pytest.raises(QueryError, match=r"^range: must stand without from and to"):
        question(metric, {"range": words, "to": "2026-01-01"}, NOON)
