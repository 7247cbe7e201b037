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


def test_the_fields_of_the_form_are_the_question(visit: Visit) -> None:
    address = (
        "/ask?metric=category&verb=top_k&range=7d&by=&by=platform&segment.platform=linux"
        "&alpha=0.01&option.k=2&option.order=most"
    )

    response = visit(address)

    assert response.status_code == 200
    assert shown(response.text) == {
        "metrics": ["category"],
        "verb": "top_k",
        "date_range": "7d",
        "dimensions": ["platform"],
        "filters": [["is", "platform", ["linux"]]],
        "alpha": 0.01,
        "options": {"k": 2, "order": "most"},
    }


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


@pytest.mark.parametrize(
    "address",
    [
        "/ask?verb=none",
        "/ask?metric=none&verb=top_k",
        "/ask?metric=category&verb=top_k&option.k=many",
        "/ask?metric=category&verb=estimate&alpha=2",
        "/ask?q={",
        "/ask?q=[]",
        '/ask?q={"metrics":["category"],"options":{"none":1}}',
        '/ask?q={"metrics":["category"],"verb":"none","dimensions":["time"]}',
        "/ask?metric=category&verb=estimate&by=none",
    ],
)
def test_what_cannot_be_asked_is_told_beside_the_form(visit: Visit, address: str) -> None:
    response = visit(address)

    assert response.status_code == 400
    assert "This cannot be asked" in response.text
    assert "<form" in response.text


def test_a_comparison_in_time_tells_both_windows_and_the_difference(visit: Visit) -> None:
    text = visit("/compare?metric=boolean&by=time&range=7d").text

    assert shown(text)["against"] == "previous"
    assert 'class="fault"' not in text  # of the two numbers beside it
    assert text.count("<svg") == 4  # two charts, each for phones, too
    assert "against 18 to 24 Feb." in text


def test_a_comparison_opens_on_the_longest_range_with_reports_before_it(visit: Visit) -> None:
    """Two weeks were reported: of 14 days or more there is nothing before."""
    assert shown(visit("/compare?metric=boolean").text)["date_range"] == "7d"
    assert "Not enough reports to compare yet" not in visit("/compare?metric=boolean").text
    assert "Not enough reports" in visit("/compare?metric=boolean&range=30d").text


def test_a_comparison_is_with_any_earlier_days(visit: Visit) -> None:
    days = "against=dates&against.from=2026-02-19&against.to=2026-02-20"

    text = visit(f"/compare?metric=boolean&by=time&range=7d&{days}").text

    assert shown(text)["against"] == ["2026-02-19", "2026-02-20"]
    assert "against 19 to 20 Feb." in text
    assert 'class="fault"' not in text


def test_a_comparison_leaves_out_what_its_filters_say_in_its_files_too(visit: Visit) -> None:
    text = visit("/compare?metric=boolean&segment.platform=!mac&segment.arm=new&range=7d").text
    file = Page(text).values("data-copy")[0]

    assert shown(text)["filters"] == [["is", "arm", ["new"]], ["is_not", "platform", ["mac"]]]
    assert "segment.platform=%21mac" in file
    assert visit(file).status_code == 200


def test_several_values_of_a_dimension_stay_chosen_on_the_page_of_a_metric(visit: Visit) -> None:
    text = visit("/metric/boolean?segment.platform=linux&segment.platform=mac&range=7d").text

    assert shown(text)["filters"] == [["is", "platform", ["linux", "mac"]]]
    assert re.findall(r'name="segment.platform" value="(\w+)" checked', text) == [
        "linux",
        "mac",
    ]


def test_a_comparison_of_segments_is_against_the_chosen_one(visit: Visit) -> None:
    text = visit("/compare?metric=boolean&by=arm&against=control").text

    assert shown(text)["options"] == {"against": "control"}
    assert "no detectable change" in text


def test_a_comparison_is_sent_as_a_file(visit: Visit) -> None:
    for file in Page(visit("/compare?metric=category&by=platform").text).values("data-copy"):
        response = visit(file)
        assert response.status_code == 200
        assert "light" in response.text


def test_the_plan_moves_with_its_sliders(visit: Visit) -> None:
    few = visit("/plan?metric=boolean&devices=3&epsilon=1&share=50").text
    many = visit("/plan?metric=boolean&devices=6&epsilon=1&share=50").text

    assert "from 500 devices at ε 1" in few
    assert "from 500,000 devices at ε 1" in many
    half_widths = [
        float(re.findall(r'class="big">±([\d.]+) points', text)[0]) for text in (few, many)
    ]
    assert half_widths[0] / half_widths[1] == pytest.approx(1_000**0.5, rel=0.1)


def test_a_plan_tells_no_half_width_below_the_least_reports(visit: Visit) -> None:
    """Law: such answers have no number, so neither does their plan; no share is 200 points off."""
    text = visit("/plan?metric=boolean&devices=2&epsilon=1&share=10").text

    assert re.search(r'class="big">no number below [\d,]+ reports', text)
    assert "200 points" not in text
    assert "half-width of the interval, points" in text


def test_the_page_of_items_asks_what_its_tile_asks(visit: Visit) -> None:
    """Law: where items are sorted the intervals of all hold at once, here as there."""
    assert shown(visit("/metric/category").text)["verb"] == "top_k"


@pytest.mark.parametrize(
    "query", ["devices=x", "devices=99", "epsilon=0", "epsilon=nan", "share=0", "need=-1"]
)
def test_a_plan_of_nonsense_names_what_would_work(visit: Visit, query: str) -> None:
    response = visit(f"/plan?metric=number&{query}")

    assert response.status_code == 400
    assert "must be a number from" in response.text


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
