"""Every page, for metrics of every type: complete without a script, and nothing from elsewhere."""

from __future__ import annotations

import html
import json
import re
from itertools import pairwise
from typing import Final

import pytest
from flask import Flask

from collector.core.cells import Cell
from tests.collector.web.conftest import MakeApp
from tests.collector.web.pages.conftest import Visit
from tests.hostile.markup import MARKUP
from tests.support.crowds.uploads import READ_TOKEN, TODAY, bearer
from tests.support.device.every_type import EPOCHS, NAMES, N, registry_text
from tests.support.sites.page import Page
from tests.support.store.memory_storage import MemoryStorage

MOST_BYTES: Final = 150_000  # of a page with its style sheets and scripts
PAGES: Final = (
    *("/", "/compare", "/ask", "/ask?metric=category&verb=top_k", "/plan", "/privacy"),
    *(
        "/privacy/people",
        "/privacy/differencing",
        "/login",
        "/watches",
        *(f"/metric/{name}" for name in NAMES),
    ),
)
HOSTILE: Final = [text for text in MARKUP if '"' not in text and "\\" not in text][:40]

every_page = pytest.mark.parametrize("path", PAGES)
every_type = pytest.mark.parametrize("name", NAMES)


@every_page
def test_a_page_has_nothing_inline_and_nothing_from_elsewhere(visit: Visit, path: str) -> None:
    """Its policy would refuse it; and nobody else is told of a visit."""
    response = visit(path)
    page = Page(response.text)

    assert response.status_code == 200
    assert page.acting == []
    assert page.scripts.strip() == ""
    assert all(src.startswith("/static/") for src in page.values("src"))


@every_page
def test_a_page_has_the_landmarks_and_names_that_readers_of_screens_need(
    visit: Visit, path: str
) -> None:
    page = Page(visit(path).text)
    ids = page.values("id")

    assert page.tags.count("h1") == page.tags.count("main") == page.tags.count("header") == 1
    assert len(ids) == len(set(ids))
    assert set(" ".join(page.values("aria-labelledby")).split()) <= set(ids)
    assert "en" in page.values("lang", "html")
    assert set(page.values("role", "svg")) <= {"img", "group"}
    assert page.tags.count("svg") == len(page.values("role", "svg"))
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


@pytest.mark.parametrize(
    "path", ["/ask?metric=category&verb=estimate", *(f"/metric/{name}" for name in NAMES)]
)
def test_code_beside_a_chart_is_closed_at_first(visit: Visit, path: str) -> None:
    text = visit(path).text

    assert "<details><summary>The query</summary>" in text
    assert not re.search(r"<details open[^>]*><summary>The query", text)


@every_page
def test_a_page_weighs_no_more_than_it_may(visit: Visit, path: str) -> None:
    page = visit(path)
    files = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text))
    weight = len(page.data) + sum(len(visit(file).data) for file in files)

    assert len(files) >= 4
    assert weight <= MOST_BYTES


@every_type
def test_a_metric_shows_a_chart_a_table_and_its_reports(visit: Visit, name: str) -> None:
    text = visit(f"/metric/{name}").text
    page = Page(text)

    assert 'class="fault"' not in text
    assert page.tags.count("svg") >= 1
    assert page.tags.count("table") == page.text.count("Table")
    segments = {"category": 2, "boolean": 4, "number": 2}.get(name, 1)
    assert f"{EPOCHS * N * segments:,}" in page.text


@every_type
def test_the_numbers_of_every_panel_can_be_had_as_a_file(visit: Visit, name: str) -> None:
    files = Page(visit(f"/metric/{name}").text).values("data-copy")

    assert files
    for file in files:
        response = visit(file)
        assert response.status_code == 200, file
        assert response.mimetype == "text/csv"
        assert response.text.count("\r\n") >= 2, file


@every_type
def test_the_query_beside_a_chart_is_one_that_the_api_answers(
    visit: Visit, site: Flask, name: str
) -> None:
    """The body of the command line, sent as it is shown."""
    text = html.unescape(visit(f"/metric/{name}").text)
    bodies = re.findall(r"-d '(\{.*\})'", text)

    assert len(bodies) == text.count("curl -H")
    for body in bodies:
        answer = site.test_client().post(
            "/v1/query",
            data=body,
            content_type="application/json",
            headers=bearer(READ_TOKEN),
        )
        assert answer.status_code == 200, answer.text
        assert answer.get_json()["meta"]["query"]["metrics"] == json.loads(body)["metrics"]


def test_the_program_beside_a_chart_is_python(visit: Visit) -> None:
    text = html.unescape(visit("/metric/category").text)
    programs = re.findall(r"<code>(import os.*?)</code>", text, re.DOTALL)

    assert len(programs) == text.count("curl -H")
    for program in programs:
        compile(program, "program", "exec")


@pytest.mark.parametrize("path", ["/", *(f"/metric/{name}" for name in NAMES)])
def test_a_window_without_reports_says_so_and_breaks_nothing(visit: Visit, path: str) -> None:
    response = visit(f"{path}?from=2025-01-01&to=2025-01-31")

    assert response.status_code == 200
    assert "not enough reports" in response.text or "Nothing has been reported" in response.text


@pytest.mark.parametrize(
    "query",
    [
        "range=9d",
        "from=2026-03-04&to=2026-03-01",
        "from=x&to=y",
        "segment.platform=atari",
        "segment.none=x",
        "item=none",
    ],
)
@pytest.mark.parametrize("path", ["/", "/metric/category", "/compare", "/ask"])
def test_a_choice_that_cannot_be_is_told_and_is_no_failure(
    visit: Visit, path: str, query: str
) -> None:
    response = visit(f"{path}?{query}")

    assert response.status_code in (200, 400)
    assert response.mimetype == "text/html"


def test_a_page_that_has_not_changed_is_not_sent_again(visit: Visit) -> None:
    """So that a page can be kept fresh at little cost."""
    tag = visit("/metric/category").headers["ETag"]

    again = visit("/metric/category", tag=tag)

    assert again.status_code == 304
    assert again.headers["Cache-Control"] == "no-store"


def test_hostile_words_of_a_registry_stay_words_on_every_page(
    make_app: MakeApp, storage: MemoryStorage
) -> None:
    """In titles, questions, labels, steps, parts, periods, units and segments."""
    hostile = iter(HOSTILE)
    text = re.sub(
        r'"(light|opened|week 0|-40|git|a|ms|hours|linux|control|All of pair|What about set\?)"',
        lambda _: json.dumps(next(hostile), ensure_ascii=False),
        registry_text(),
    )
    app = make_app(text)
    for metric in app.extensions["hearsay"].catalog.registries[0]:
        storage.tallied[Cell(metric.digest, TODAY, "")] |= {0: 900, 1: 400, 2: 300}
    client = app.test_client()

    for path in PAGES:
        response = client.get(path, headers={**bearer(READ_TOKEN), "Accept": "text/html"})
        page = Page(response.text)
        assert response.status_code == 200, path
        assert page.acting == [], path
        assert page.scripts.strip() == ""


@pytest.mark.parametrize("label", HOSTILE[:12])
def test_hostile_words_of_an_address_stay_words(visit: Visit, label: str) -> None:
    for path in ("/login", "/compare", "/ask", "/plan", "/metric/category", "/nothing"):
        names = ("next", "item", "metric", "by", "against", "q", "option.k", "segment.platform")
        query = {name: label for name in names} | {"verb": "top_k"}
        response = visit(path, query)

        assert response.mimetype == "text/html", path
        assert Page(response.text).acting == [], path


def test_a_page_that_forgets_to_escape_would_be_caught() -> None:
    """The control of the laws above."""
    caught = [label for label in HOSTILE if Page(f"<p title={label}>{label}</p>").acting]

    assert len(caught) > len(HOSTILE) // 2


def test_an_empty_system_tells_what_to_do_next(make_app: MakeApp) -> None:
    client = make_app().test_client()

    text = client.get("/", headers=bearer(READ_TOKEN)).text

    for step in ("Nothing has been reported yet", "client.record(", "/readyz", "hearsay demo"):
        assert step in text
