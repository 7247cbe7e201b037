"""Who asked for what, by the routes that answer: off unless it is wished."""

from __future__ import annotations

from flask import Flask

from collector.core.credentials import ANALYST, READ, Credential
from collector.operations.questions import question_rows
from collector.storage.records import QUESTIONS_ASKED
from tests.collector.web.conftest import MakeApp
from tests.support.crowds.uploads import TODAY, bearer
from tests.support.store.memory_credentials import MemoryCredentials

TOKEN = "hsr_of-an-analyst-of-the-tests"


def ask(app: Flask, stored: MemoryCredentials) -> None:
    stored.add(TOKEN, Credential(READ, role=ANALYST, expires=TODAY + 9, label="Ann"))
    question = {"metrics": ["page"], "filters": [["is", "platform", ["mac"]]]}
    client = app.test_client()
    for _ in range(2):
        answer = client.post("/v1/query", json=question, headers=bearer(TOKEN))
        assert answer.status_code == 200
    assert client.get("/metric/theme", headers=bearer(TOKEN)).status_code == 200
    client.post("/v1/query", json={"metrics": ["nobody"]}, headers=bearer(TOKEN))  # no question


def test_without_the_setting_nothing_is_kept_of_who_asks(
    make_app: MakeApp, credentials: MemoryCredentials
) -> None:
    app = make_app()
    ask(app, credentials)

    assert app.extensions["hearsay"].questions is None
    assert credentials.share(QUESTIONS_ASKED, TODAY) == {}


def test_with_the_setting_who_verb_and_metric_are_kept_and_nothing_else(
    make_app: MakeApp, credentials: MemoryCredentials
) -> None:
    app = make_app(audit=True)
    ask(app, credentials)
    app.extensions["hearsay"].questions.exchange()

    rows = list(question_rows(credentials, [TODAY]))
    assert {row.who.split()[0] for row in rows} == {"Ann"}
    assert {row.metric for row in rows} == {"page", "theme"}
    [answer] = [row for row in rows if row.metric == "page"]
    assert (answer.verb, answer.times) == ("estimate", 2)
    kept = repr(credentials.share(QUESTIONS_ASKED, TODAY))
    assert not [hidden for hidden in ("mac", "platform", TOKEN, "12:00") if hidden in kept]
