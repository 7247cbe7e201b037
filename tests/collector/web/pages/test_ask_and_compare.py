"""Ask and Compare: what is chosen in a form is the question that is asked."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from collector.analytics.verb import names
from collector.core.config import STRICT, VOLATILE
from collector.storage.diagnosis import Server
from tests.collector.web.conftest import MakeApp
from tests.collector.web.pages.conftest import BROWSER, Visit, as_operator
from tests.support.device.every_type import NAMES
from tests.support.sites.page import Page
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage


def shown(text: str) -> dict[str, Any]:
    """Return the question that the first panel of a page tells."""
    found = re.search(r"-d '(\{.*\})'", html.unescape(text))
    assert found, text
    answer: dict[str, Any] = json.loads(found[1])
    return answer


def test_the_link_to_an_answer_asks_the_same_and_fills_the_form(visit: Visit) -> None:
    first = visit("/ask?metric=number&verb=quantile&option.levels=0.5, 0.9&by=version")
    link = next(href for href in Page(first.text).values("href") if href.startswith("/ask?q="))

    again = visit(link)

    assert shown(again.text) == shown(first.text)
    assert shown(again.text)["options"] == {"levels": [0.5, 0.9]}
    assert 'name="option.levels" value="0.5, 0.9"' in again.text
    assert 'aria-current="true">Up to which number' in again.text


@pytest.mark.parametrize("verb", names())
def test_every_verb_can_be_asked_by_the_form_or_says_why_not(visit: Visit, verb: str) -> None:
    statuses = set()
    for name in NAMES:
        response = visit(f"/ask?metric={name}&verb={verb}")
        statuses.add(response.status_code)
        told = "This cannot be asked" in response.text
        assert told == (response.status_code == 400)

    assert statuses <= {200, 400}


def test_the_plan_moves_with_its_sliders(visit: Visit) -> None:
    few = visit("/plan?metric=boolean&devices=3&epsilon=1&share=50").text
    many = visit("/plan?metric=boolean&devices=6&epsilon=1&share=50").text

    assert "from 500 devices at ε 1" in few
    assert "from 500,000 devices at ε 1" in many
    half_widths = [
        float(re.findall(r'class="big">±([\d.]+) points', text)[0]) for text in (few, many)
    ]
    assert half_widths[0] / half_widths[1] == pytest.approx(1_000**0.5, rel=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_can_be_planned(visit: Visit, name: str) -> None:
    response = visit(f"/plan?metric={name}")

    assert response.status_code == 200
    assert "<svg" in response.text


def test_the_record_of_a_deployment_holds_every_metric_and_its_cost(visit: Visit) -> None:
    response = visit("/privacy/record.json")
    record = response.get_json()

    assert response.headers["Content-Disposition"].startswith("attachment")
    assert [metric["name"] for metric in record["metrics"]] == list(NAMES)
    assert all(float(metric["epsilon"]["report"]) > 0 for metric in record["metrics"])
    assert record["made_at"] == "2026-03-04T12:00:00+00:00"


def test_operations_tell_where_every_upload_is_and_what_was_rejected(
    make_app: MakeApp, storage: MemoryStorage, credentials: MemoryCredentials
) -> None:
    app = make_app()
    storage.append(b"a" * 16, 1, b"entry", 3)
    app.extensions["hearsay"].activity.add("rejected", "unknown_metric", 7)

    text = as_operator(app, credentials).get("/operations", headers=BROWSER).text

    assert re.search(r"<b>1</b> accepted.*<b>0</b> folded.*<b>1</b> waiting", text)
    assert "unknown metric" in text
    assert "start hearsay worker" in text


@pytest.mark.parametrize(("profile", "word"), [(STRICT, "yes"), (VOLATILE, "no")])
def test_operations_call_a_store_durable_only_if_it_keeps_reports_when_it_restarts(
    make_app: MakeApp, credentials: MemoryCredentials, profile: str, word: str
) -> None:
    """Law: the table says what the findings above it say."""
    app = make_app(profile=profile)
    kept = {"redis_version": "7.0.15", "role": "master", "maxmemory_policy": "noeviction"}
    server = Server({**kept, "aof_enabled": "1"}, None, None, None)
    shared = app.extensions["hearsay"]
    snapshot = replace(shared.snapshot(), servers=[server])
    app.extensions["hearsay"] = replace(shared, snapshot=lambda: snapshot)

    text = as_operator(app, credentials).get("/operations", headers=BROWSER).text

    assert ("all reports are gone when the store restarts" in text) == (profile == VOLATILE)
    assert f"<td>{word}</td><td>0</td></tr>" in text


def test_operations_say_when_an_upload_is_not_where_the_counts_say(
    make_app: MakeApp, storage: MemoryStorage, credentials: MemoryCredentials
) -> None:
    storage.append(b"a" * 16, 1, b"entry", 3)
    storage.entries.clear()

    client = as_operator(make_app(), credentials)
    text = client.get("/operations", headers=BROWSER).text

    assert "1 upload is not where the counts say" in text
    assert "Something is wrong" in text
