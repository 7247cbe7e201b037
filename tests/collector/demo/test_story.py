"""What the demo has beside its numbers: a board that answers, notes on their days, watches."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Final

import msgspec
import pytest

from collector.core.catalog import Catalog
from collector.demo.fleet import DATA, DEMO_REGISTRY, REDESIGNED, RELEASED
from collector.demo.past import boards_of
from collector.workspace.documents import read_file
from collector.workspace.watch.evaluation import metric_of
from collector.workspace.watch.rules import read
from tests.collector.web.pages.conftest import BROWSER
from tests.support.crowds.uploads import bearer
from tests.support.sites.demo_site import TOKEN, demo_app

CATALOG = Catalog.from_files([str(DEMO_REGISTRY)])


@pytest.fixture
def boards(tmp_path: Path) -> str:
    path = tmp_path / "boards.toml"
    path.write_text(boards_of(time.time()), encoding="utf-8")
    return str(path)


def test_the_notes_of_the_demo_are_on_the_days_of_what_they_tell(boards: str) -> None:
    today = datetime.fromtimestamp(time.time(), UTC).date()

    notes = {str(note.text): str(note.at) for note in read_file(boards).notes}

    assert notes == {
        "Version 4.9 out": str(today - timedelta(days=RELEASED)),
        "New front page": str(today - timedelta(days=REDESIGNED)),
    }


def test_every_panel_and_saved_question_of_the_demo_has_an_answer(boards: str) -> None:
    file = read_file(boards)
    queries = [panel.query for board in file.boards.values() for panel in board.panels]
    queries += [question.query for question in file.questions.values()]
    client = demo_app(days=(0, 1, 9)).test_client()

    replies = [
        client.post("/v1/query", json=msgspec.to_builtins(query), headers=bearer(TOKEN))
        for query in queries
    ]

    assert len(queries) == 10
    assert [reply.get_json().get("detail") for reply in replies] == [None] * 10
    assert all(any(row["value"] is not None for row in r.get_json()["rows"]) for r in replies)


def test_every_watch_of_the_demo_can_be_computed() -> None:
    watches = read(str(DATA / "watches.toml"))

    metrics = [metric_of(watch, CATALOG) for watch in watches.watch]

    assert len(metrics) == 2
    assert all(metric is not None and metric.every == "1d" for metric in metrics)


TEN: Final = (
    "Which are most common?",
    "How many devices reported?",
    "Did it change?",
    "Does it differ by platform or version?",
    "What did the experiment change?",
    "Where?",
    "Who came back?",
    "What are median and p95?",
    "How far did they get?",
    "How do marital and income relate?",
)


def test_the_ten_commonest_questions_are_answered_two_clicks_from_the_overview() -> None:
    client = demo_app(days=(0, 1, 9)).test_client()
    client.set_cookie("hearsay", TOKEN)

    overview, ask = (client.get(path, headers=BROWSER).text for path in ("/", "/ask"))
    links = {
        words: unescape(href)
        for href, words in re.findall(r'<li><a href="([^"]*)">([^<]*?) <span', ask)
    }
    pages = {words: client.get(links[words], headers=BROWSER).text for words in TEN}

    assert 'href="/ask"' in overview
    marks = {words: re.findall(r'data-row="[^"]*  [^"]*\d', page) for words, page in pages.items()}
    assert all(marks.values()), [words for words in TEN if not marks[words]]
