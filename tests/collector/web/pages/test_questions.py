"""Ask and Compare: every question that is offered has an answer, and every choice is kept."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient
from werkzeug.datastructures import MultiDict

from client_sdk.core.epoch import epoch_of
from client_sdk.registry import Registry
from collector.analytics.comparing.arms import are_arms, arms_of
from collector.analytics.verb import load, names
from collector.core.cells import Cell
from collector.core.config import STRICT, VOLATILE
from collector.core.errors import QueryError
from collector.query.completion import dimension_of
from collector.storage.diagnosis import Server
from collector.web.pages import fields, questions
from collector.web.pages.choices import choices_of, filters_of, in_words, segment_of
from tests.collector.web.conftest import MakeApp
from tests.collector.web.pages.conftest import BROWSER, Visit, as_operator
from tests.support.crowds.uploads import NOON
from tests.support.device.every_type import NAMES, fill, registry_text
from tests.support.sites.in_memory import browser_of, in_memory
from tests.support.sites.page import Page
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

METRICS = tuple(Registry.from_text(registry_text()))
BY_NAME = {metric.name: metric for metric in METRICS}


def shown(text: str) -> dict[str, Any]:
    """Return the question of the answer on a page."""
    match = re.search(r"-d '(\{.*\})'", html.unescape(text))
    assert match, text
    question: dict[str, Any] = json.loads(match[1])
    return question


@pytest.mark.parametrize("name", [name for name in NAMES if name != "string"])  # takes a search
def test_every_question_that_is_offered_has_an_answer_at_once(visit: Visit, name: str) -> None:
    """Law: no field must be filled in before there is a number."""
    page = Page(visit(f"/ask?metric={name}").text)
    links = [href for href in page.values("href") if "verb=" in href]

    assert len(links) >= 2
    for link in links:
        response = visit(link)
        assert response.status_code == 200, link
        assert "This cannot be asked" not in response.text
        assert 'class="fault"' not in response.text
        assert "<svg" in response.text, link
        assert re.search(r'data-row="[^"]*  [^"]', response.text), link  # there is a number


@pytest.mark.parametrize("name", NAMES)
def test_a_metric_offers_no_more_questions_than_can_be_read(name: str) -> None:
    offered = questions.questions_of(BY_NAME[name], METRICS)
    usual = [question.words for question in offered if question.is_usual]

    assert len(usual) == len(set(usual))
    assert 2 <= len(usual) <= 12
    assert all(question.words[:1].isupper() for question in offered)


def test_every_verb_is_offered_of_some_metric() -> None:
    """Law: the form reaches all that the API can."""
    offered = {q.verb for metric in METRICS for q in questions.questions_of(metric, METRICS)}

    assert offered == set(names())


@pytest.mark.parametrize("value", ["linux", "!linux", "=linux", "!", "=", "!!a"])
@pytest.mark.parametrize("kind", ["is", "is_not"])
def test_a_filter_survives_its_way_through_an_address(kind: Any, value: str) -> None:
    filters = [(kind, "platform", [value])]

    address = MultiDict((f"segment.{name}", text) for name, text in segment_of(filters))

    assert filters_of(choices_of(address).segment) == filters


def test_filters_are_told_in_words() -> None:
    filters: Any = [("is", "platform", ["a", "b"]), ("is_not", "app_version", ["1"])]

    assert in_words(filters) == "platform: a or b; app version: not 1"


def test_options_are_lists_and_numbers_with_labels_in_words(visit: Visit) -> None:
    """Law: no name of the API is shown where a word is known."""
    for metric in METRICS:
        for question in questions.questions_of(metric, METRICS):
            dimension = dimension_of(load(question.verb), metric)
            for field in fields.fields_of(question.verb, metric, {}, dimension=dimension):
                assert field.label != field.name
                assert "_" not in field.label.partition(":")[0]  # titles follow
                assert all(words for _, words in field.choices), field
                assert field.kind != "choice" or len(field.choices) > 1


@pytest.mark.parametrize("name", ["category", "number", "boolean"])
def test_asking_again_without_a_change_asks_the_same(visit: Visit, name: str) -> None:
    """Law: what a list shows first is what the question has."""
    for question in questions.questions_of(BY_NAME[name], METRICS):
        first = visit(f"/ask?metric={name}&verb={question.verb}").text
        again = visit(f"/ask?{urlencode(sent(first))}").text

        rows = [re.findall(r'data-row="[^"]*"', text) for text in (first, again)]
        assert rows[0] == rows[1], question


def sent(text: str) -> list[tuple[str, str]]:
    """Return what a browser sends of the form as the page *text* has it."""
    form = re.search(r'<form class="ask.*?</form>', text, re.DOTALL)
    assert form
    fields = []
    for tag in re.findall(r"<input[^>]*>", form[0]):  # the metric is the first
        values = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        if values["type"] != "checkbox" or " checked" in tag:
            fields.append((values["name"], values.get("value", "")))
    for name, body in re.findall(r'<select name="([^"]+)".*?>(.*?)</select>', form[0], re.DOTALL):
        options = re.findall(r'<option value="([^"]*)"( selected)?', body)
        fields.append((name, next((v for v, chosen in options if chosen), options[0][0])))
    return [(name, html.unescape(value)) for name, value in fields]


def test_a_question_keeps_the_range_and_the_filters_of_the_one_before(visit: Visit) -> None:
    text = visit("/ask?metric=boolean&verb=frequency&range=7d&segment.platform=!mac").text
    link = next(href for href in Page(text).values("href") if "verb=compare" in href)

    assert "range=7d" in link
    assert "segment.platform=%21mac" in link


@pytest.mark.parametrize("path", ["/", "/metric/category", "/compare", "/ask"])
def test_a_range_the_wrong_way_round_is_refused_once(visit: Visit, path: str) -> None:
    """Law: not by every chart of a page."""
    response = visit(f"{path}?from=2026-03-04&to=2026-03-01")

    assert response.status_code == 400
    assert html.unescape(response.text).count("must not be after 2026-03-01; swap") == 1


def test_a_second_range_that_is_none_is_refused() -> None:
    with pytest.raises(QueryError, match="range: must be one of"):
        choices_of(MultiDict({"range": "9d"}))


def test_the_question_of_an_experiment_is_offered_where_something_looks_like_arms_only() -> None:
    """Law: whoever has no experiment is not led to read one out of platforms."""
    offered = {
        name: {q.verb for q in questions.questions_of(BY_NAME[name], METRICS)}
        for name in ("boolean", "category")
    }

    assert "lift" in offered["boolean"]
    assert "lift" not in offered["category"]


def test_each_question_stands_once_with_the_metric_that_tells_most_of_it() -> None:
    common = questions.common_questions(METRICS)

    words = [question.words for question, _ in common]
    assert len(set(words)) == len(words)
    of = {question.verb: metric for question, metric in common}
    own = {verb: of[verb].domain.verb for verb in ("map", "funnel", "retention", "top_k")}
    assert own == {verb: verb for verb in own}
    assert arms_of(of["lift"])
    assert all(of[verb].every != "once" for verb in ("compare", "trend", "actives"))


def test_every_common_question_has_an_answer_at_once_and_keeps_the_range(visit: Visit) -> None:
    page = Page(visit("/ask?range=28d").text)
    links = [href for href in page.values("href") if "verb=" in href]

    assert len(links) == len(questions.common_questions(METRICS))
    for link in links:
        answer = visit(link)
        assert answer.status_code == 200, link
        assert shown(answer.text)["date_range"] == "28d"


def test_segments_are_compared_over_the_same_days_on_both_pages(visit: Visit) -> None:
    """Law: a default is one; and what a question took by default is not kept as if chosen."""
    on_ask = visit("/ask?metric=boolean&verb=compare&against=segment.platform").text
    on_compare = visit("/compare?metric=boolean&by=platform").text
    in_time = visit("/ask?metric=boolean&verb=compare").text

    assert shown(on_ask).get("date_range") == shown(on_compare).get("date_range")
    assert shown(in_time).get("date_range") is not None
    links = [href for href in Page(in_time).values("href") if "verb=segments" in href]
    assert len(links) == 1
    assert "range=" not in links[0]


@pytest.mark.parametrize(
    ("dimension", "values", "are"),
    [
        ("Experiment", ("x", "y"), True),
        ("group", ("1", "2"), True),
        ("button", ("control", "red"), True),
        ("platform", ("linux", "mac"), False),
        ("age_group", ("young", "old"), False),
    ],
)
def test_arms_are_known_by_their_name_or_a_control(
    dimension: str, values: tuple[str, ...], are: bool
) -> None:
    assert are_arms(dimension, values) == are


def test_a_ratio_is_usual_only_of_what_makes_a_rate() -> None:
    def is_usual(name: str) -> bool:
        offered = questions.questions_of(BY_NAME[name], METRICS)
        return next(question.is_usual for question in offered if question.verb == "ratio")

    assert is_usual("number")
    assert is_usual("boolean")
    assert not is_usual("category")
    for name in ("number", "boolean"):
        partner = questions.partners_of("ratio", BY_NAME[name], METRICS)[0]
        assert partner.name in ("number", "mean", "boolean")
        assert {name, partner.name} != {"boolean"}


def test_limits_are_asked_for_only_of_numbers() -> None:
    """Law: between two items lies nothing."""
    offered = {
        metric.name
        for metric in METRICS
        for question in questions.questions_of(metric, METRICS)
        if question.verb == "range"
    }

    assert offered == {"number"}


@pytest.fixture(scope="module")
def weekly(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    """A browser on metrics of weeks: the first days of this one, and four before it."""
    storage = MemoryStorage()
    fill(storage, "7d", 30)
    folder = tmp_path_factory.mktemp("weeks")
    return browser_of(in_memory(folder, registry_text("7d"), storage=storage))


@pytest.mark.parametrize("page", ["/ask?metric=boolean&verb=compare", "/compare?metric=boolean"])
def test_a_change_is_first_asked_of_complete_weeks(weekly: FlaskClient, page: str) -> None:
    """Law: the first days of a week are not held against a whole one."""
    text = weekly.get(page, headers=BROWSER).text

    assert shown(text)["date_range"] == "14d"
    assert "16 Feb to 1 Mar against 2 to 15 Feb." in text  # it is Wednesday, the 4th of March
    assert re.search(r'data-row="[^"]*  [^"]', text)
    with_days = weekly.get(page + "&range=7d", headers=BROWSER).text
    assert shown(with_days)["date_range"] == "7d"  # whoever names days gets them


def test_the_link_to_an_answer_asks_the_same_and_fills_the_form(visit: Visit) -> None:
    first = visit("/ask?metric=number&verb=quantile&option.levels=0.5, 0.9&by=version")
    link = next(href for href in Page(first.text).values("href") if href.startswith("/ask?q="))

    again = visit(link)

    assert shown(again.text) == shown(first.text)
    assert shown(again.text)["options"] == {"levels": [0.5, 0.9]}
    assert 'name="option.levels" value="0.5, 0.9"' in again.text
    assert 'aria-current="true">What are median and p95' in again.text


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


def test_two_periods_are_compared_by_the_item_that_is_greatest_in_both_together(
    tmp_path: Path,
) -> None:
    """Law: an item that is picked for its size in one period differs from the other by noise."""
    storage, text = MemoryStorage(), registry_text()
    metric = Registry.from_text(text).metric("category")
    for back in range(15):
        light, dark = (260, 250) if back < 8 else (100, 250)
        many = [(0, 600), (1, light), (2, dark), (3, 600 - light - dark)]
        for platform, pairs in (("linux", many), ("mac", [(0, 50), (1, 2), (2, 3), (3, 45)])):
            cell = Cell(metric.digest, epoch_of("1d", NOON) - back, f'{{"platform":"{platform}"}}')
            storage.put({cell: pairs})
    site = browser_of(in_memory(tmp_path, text, storage=storage))

    asked = {"metric": "category", "range": "7d"}
    by_time = site.get("/compare", query_string={**asked, "by": "time"}, headers=BROWSER).text
    by_group = site.get("/compare", query_string={**asked, "by": "platform"}, headers=BROWSER).text

    assert "<option selected>dark</option>" in by_time
    assert "<option selected>light</option>" in by_group

    segments = {**asked, "verb": "segments", "by": "platform"}
    for days, before, item in (("7d", "previous", "dark"), ("7d", "", "light")):
        query = {"range": days, "before": before}
        page = site.get("/metric/category", query_string=query, headers=BROWSER).text
        answer = site.get("/ask", query_string={**segments, **query}, headers=BROWSER).text
        assert f"{item.capitalize()} by platform" in page
        assert f'<option value="{item}" selected>' in answer
    few = {**asked, "verb": "segments", "by": "platform", "segment.platform": "mac"}
    answer = site.get("/ask", query_string={**few, "before": "previous"}, headers=BROWSER).text
    assert '<option value="sepia" selected>' in answer
