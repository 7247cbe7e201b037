"""The query API: metrics, rows, their meaning, and what is kept of who asks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from client_sdk.wire.reports import Column
from collector.core.credentials import ANALYST, READ, Credential
from collector.estimation.precision import ALPHA
from collector.operations.questions import question_rows
from collector.storage.records import QUESTIONS_ASKED
from tests.collector.web.conftest import MakeApp
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    READ_TOKEN,
    TODAY,
    as_json,
    bearer,
    registry,
    upload,
)
from tests.support.sites.posting import fold, post
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

REGISTRY = registry()
PAGE = REGISTRY.metric("page")
ESTIMATE = "/v1/metrics/page/estimate"


def send(client: FlaskClient, number: int, payloads: bytes, **segment: str) -> None:
    body = upload(
        [Column(PAGE.digest, TODAY, payloads)], upload_id=bytes([number]) * 16, segment=segment
    )
    assert post(client, as_json(body), key=GATEWAY_KEY).get_json()["accepted"] == len(payloads)


def get(client: FlaskClient, path: str, **parameters: str) -> Any:
    response = client.get(path, query_string=parameters, headers=bearer(READ_TOKEN))
    assert response.status_code == 200, response.text
    return response.get_json()


def test_every_metric_is_listed_with_what_an_analyst_needs(client: FlaskClient) -> None:
    listed = get(client, "/v1/metrics")["metrics"]

    assert [metric["name"] for metric in listed] == list(REGISTRY.metrics)
    page = listed[0]
    assert page["values"] == ["home", "news", "shop"]
    assert page["digest"] == PAGE.digest.hex()
    assert page["segments"] == {"platform": ["linux", "mac"]}
    assert 0.999 < page["epsilon_per_report"] <= 1
    assert page["delta_per_report"] == 0
    assert listed[-1] | {"min": 10.0, "max": 90.0, "step": 0.5, "unit": "years"} == listed[-1]


def test_an_answer_rests_on_every_folded_report(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    send(client, 1, b"\0" * 300 + b"\1" * 100)
    send(client, 2, b"\2" * 200, platform="mac")
    fold(storage, REGISTRY)

    found = get(client, ESTIMATE)

    assert found["meta"]["n"] == 600
    assert [row["dimensions"]["item"] for row in found["rows"]] == ["home", "news", "shop"]
    assert sum(row["value"] for row in found["rows"]) == pytest.approx(1)
    assert all(row["ci_low"] < row["value"] < row["ci_high"] for row in found["rows"])


def test_an_answer_says_what_it_means(client: FlaskClient) -> None:
    meta = get(client, ESTIMATE, **{"from": "2026-03-01", "to": "2026-03-03"})["meta"]

    (basis,) = meta["metrics"]
    assert basis["window"] == {"from": "2026-03-01", "to": "2026-03-03", "epochs": 3}
    assert basis["window_open"] is False
    assert (basis["name"], basis["question"]) == ("page", PAGE.question)
    assert (meta["alpha"], meta["intervals"]) == (ALPHA, "pointwise")
    assert (basis["mechanism"], basis["digest"]) == ("grr", PAGE.digest.hex())
    assert (basis["unit"], meta["query"]["filters"]) == ("share", [])
    assert basis["expected_half_width"] > 0


def test_a_segment_is_answered_alone(client: FlaskClient, storage: MemoryStorage) -> None:
    send(client, 1, b"\0" * 300, platform="linux")
    send(client, 2, b"\2" * 200, platform="mac")
    fold(storage, REGISTRY)

    found = get(client, ESTIMATE, **{"segment.platform": "mac"})

    assert found["meta"]["n"] == 200
    assert found["meta"]["query"]["filters"] == [["is", "platform", ["mac"]]]


def test_a_wider_level_is_a_wider_interval(client: FlaskClient, storage: MemoryStorage) -> None:
    send(client, 1, b"\0" * 300)
    fold(storage, REGISTRY)

    narrow, wide = (get(client, ESTIMATE, alpha=alpha)["rows"][0] for alpha in ("0.2", "0.001"))

    assert narrow["value"] == wide["value"]
    assert wide["ci_low"] < narrow["ci_low"] < narrow["ci_high"] < wide["ci_high"]


def test_too_few_reports_are_null_with_a_reason_and_never_zero(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    send(client, 1, b"\0" * 99)
    fold(storage, REGISTRY)

    found = get(client, ESTIMATE)

    assert [row["value"] for row in found["rows"]] == [None, None, None]
    (text,) = {row["reason"]["text"] for row in found["rows"]}
    assert {row["reason"]["code"] for row in found["rows"]} == {"too_few"}
    assert text.startswith("not enough reports: 99 of at least 100 needed; ")


def test_answers_hold_no_number_that_json_does_not_know(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    send(client, 1, b"\0" * 300)
    fold(storage, REGISTRY)

    text = client.get(ESTIMATE, headers=bearer(READ_TOKEN)).text

    json.loads(text, parse_constant=lambda token: pytest.fail(token))


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("from=yesterday", "from"),
        ("to=9999-12-31", "to"),
        ("alpha=2", "alpha"),
        ("alpha=0.05&alpha=0.5", "alpha"),
        ("segment.platform=amiga", "segment.platform"),
        ("segment.colour=red", "segment"),
        ("segment.platform=mac&segment.platform=linux", "segment.platform"),
        ("canary7f3a=1", "parameter"),
        ("From=2026-01-01", "parameter"),
    ],
)
def test_a_bad_parameter_is_a_problem_that_names_it(
    client: FlaskClient, query: str, named: str
) -> None:
    response = client.get(f"{ESTIMATE}?{query}", headers=bearer(READ_TOKEN))

    assert response.status_code == 400
    document = response.get_json(force=True)
    assert document["type"] == "urn:hearsay:problem:bad-parameter"
    assert document["detail"].startswith(named)
    assert "canary" not in document["detail"]


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
