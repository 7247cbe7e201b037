"""What the demo has beside its numbers: a board that answers, notes on their days, watches."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from collector.core.catalog import Catalog
from collector.demo.fleet import DATA, DEMO_REGISTRY, REDESIGNED, RELEASED
from collector.demo.past import boards_of
from collector.workspace.documents import read_file
from collector.workspace.watch.evaluation import metric_of
from collector.workspace.watch.rules import read
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

    assert len(queries) == 6
    assert [reply.get_json().get("detail") for reply in replies] == [None] * 6
    assert all(any(row["value"] is not None for row in r.get_json()["rows"]) for r in replies)


def test_every_watch_of_the_demo_can_be_computed() -> None:
    watches = read(str(DATA / "watches.toml"))

    metrics = [metric_of(watch, CATALOG) for watch in watches.watch]

    assert len(metrics) == 2
    assert all(metric is not None and metric.every == "1d" for metric in metrics)
