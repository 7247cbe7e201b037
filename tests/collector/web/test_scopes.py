"""Every route × every credential × every metric: nothing is opened that was not meant to be."""

from __future__ import annotations

import os
import re
from typing import Final

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from client_sdk.registry import Registry
from client_sdk.wire.reports import Column
from collector.core.credentials import ASK, OPERATE, Credential
from collector.web import create_app
from collector.web.auth import scope
from tests.support.crowds.uploads import NOON, TODAY, as_json, bearer, upload
from tests.support.sites.in_memory import in_memory
from tests.support.store.credential_cases import (
    ALL_METRICS,
    METRICS,
    NOBODY,
    OURS,
    THEIRS,
    Case,
    canary,
    cases,
    registry_text,
)
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

CASES: Final = {case.name: case for case in cases()}
REGISTRIES: Final = {app: Registry.from_text(registry_text(app)) for app in METRICS}
DIGESTS: Final = {m.name: m.digest for r in REGISTRIES.values() for m in r} | {NOBODY: b"nobody"}
ASKED: Final = (*ALL_METRICS, NOBODY)
UPLOADS: Final = "/v1/reports"

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    stored = MemoryCredentials()
    for case in CASES.values():
        if case.credential:
            stored.add(case.secret, case.credential)
    folder, texts = tmp_path_factory.mktemp("registries"), map(registry_text, METRICS)
    application = in_memory(folder, *texts, credentials=stored, settings={})
    application.add_url_rule(
        "/operate", view_func=scope(OPERATE)(lambda: "state"), endpoint="state"
    )
    return application


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def headers_of(case: Case) -> dict[str, str]:
    return bearer(case.secret) if case.secret else {}


def leaks(text: str, case: Case) -> list[str]:
    """Return the metrics that *text* tells of and that *case* may not read."""
    return [name for name in ALL_METRICS if canary(name) in text and name not in case.reads]


def refusal(case: Case) -> int:
    """Return the status by which *case* is refused what it has no right to."""
    return 401 if case.is_public else 403


def test_the_matrix_is_as_large_as_it_claims() -> None:
    routes = 6 + 3 * len(ASKED)  # pages, list, state, three open ones; estimate, HEAD, upload

    assert len(CASES) * routes >= 300
    assert len({case.secret for case in CASES.values()}) == len(CASES)


@every_case
def test_pages_show_the_metrics_of_the_token_and_no_other(client: FlaskClient, case: Case) -> None:
    for path in ("/", "/v1/metrics"):
        response = client.get(path, headers=headers_of(case))

        assert response.status_code == (200 if case.views else refusal(case))
        assert leaks(response.text, case) == []
        shown = [name for name in case.reads if canary(name) in response.text]
        assert sorted(shown) == (sorted(case.reads) if case.views else [])


@every_case
def test_the_state_of_the_collector_is_for_operators_and_admins(
    client: FlaskClient, case: Case
) -> None:
    response = client.get("/metrics", headers=headers_of(case))

    assert response.status_code == (200 if case.operates else refusal(case))
    assert leaks(response.text, case) == []


@every_case
def test_an_estimate_is_given_of_the_metrics_of_an_analyst_and_of_no_other(
    client: FlaskClient, case: Case
) -> None:
    for metric in ASKED:
        response = ask(client, case, metric)
        head = client.head(path_of(metric), headers=headers_of(case))

        expected = 200 if metric in case.reads else 404
        assert response.status_code == (expected if case.asks else refusal(case))
        assert head.status_code == response.status_code
        assert leaks(response.text, case) == []


def without_nearest(text: str) -> tuple[set[str], str]:
    """Return the names that a refusal takes for meant, and the refusal as it is without them."""
    nearest = set(re.findall(r" \(did you mean (\w+)\?\)", text))
    plain = re.sub(r" \(did you mean \w+\?\)", "", text)
    return nearest, re.sub(
        r"known are ([\w, ]+)", lambda match: f"known are {sorted(match[1].split(', '))}", plain
    )


@every_case
def test_a_metric_that_is_forbidden_is_as_unknown_as_one_that_is_not_there(
    client: FlaskClient, case: Case
) -> None:
    unknown = ask(client, case, NOBODY)

    for metric in set(ALL_METRICS) - case.reads:
        forbidden = ask(client, case, metric)
        nearest, text = without_nearest(forbidden.text)
        assert text.replace(metric, NOBODY) == without_nearest(unknown.text)[1]
        assert nearest <= case.reads
        assert forbidden.status_code == unknown.status_code
        assert sorted(forbidden.headers.keys()) == sorted(unknown.headers.keys())


@every_case
def test_a_key_reports_to_its_metrics_and_every_other_is_unknown_to_it(
    client: FlaskClient, case: Case
) -> None:
    for metric in ASKED:
        body = as_json(upload([Column(DIGESTS[metric], TODAY, b"\0")], upload_id=os.urandom(16)))

        response = client.post(
            UPLOADS, data=body, content_type="application/json", headers=headers_of(case)
        )

        is_key = "key of" in case.name
        assert response.status_code == (202 if is_key else 401)
        if is_key:
            reasons = [one["reason"] for one in response.get_json()["rejected"]]
            assert reasons == ([] if metric in case.writes else ["unknown_metric"])


@every_case
def test_what_is_open_is_open_to_all_and_tells_of_no_metric(
    client: FlaskClient, case: Case
) -> None:
    for path in ("/livez", "/readyz", "/static/hearsay.css"):
        response = client.get(path, headers=headers_of(case), buffered=True)

        assert response.status_code == 200
        assert leaks(response.text, case) == []


@pytest.mark.parametrize("case", [CASES["analyst of every app"], CASES["admin"]])
def test_a_route_without_a_scope_is_not_found_by_anybody(app: Flask, case: Case) -> None:
    config = app.extensions["hearsay"].config
    stored = MemoryCredentials()
    stored.add(case.secret, case.credential or Credential(ASK))
    other = create_app(config, MemoryStorage(), lambda: NOON, stored)
    other.add_url_rule("/forgotten", view_func=lambda: "secret", endpoint="forgotten")

    response = other.test_client().get("/forgotten", headers=headers_of(case))

    assert response.status_code == 404
    assert "secret" not in response.text


def test_a_scope_that_is_none_is_refused_when_it_is_declared() -> None:
    with pytest.raises(ValueError, match="must be one of"):
        scope("everything")


def test_an_oracle_that_forgets_the_app_would_be_caught(client: FlaskClient) -> None:
    """The control: a leaking text must be seen as one."""
    case = CASES[f"analyst of {OURS}, all"]
    theirs = ask(client, CASES[f"analyst of {THEIRS}, all"], METRICS[THEIRS][0])

    assert leaks(theirs.text, case) == [METRICS[THEIRS][0]]


def path_of(metric: str) -> str:
    return f"/v1/metrics/{metric}/estimate"


def ask(client: FlaskClient, case: Case, metric: str) -> TestResponse:
    return client.get(path_of(metric), headers=headers_of(case))
