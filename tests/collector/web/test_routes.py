"""The OpenAPI document says what the routes do, and what they refuse without a credential."""

from __future__ import annotations

import json
from re import findall
from typing import Any, Final

import pytest
from flask import Flask
from flask.testing import FlaskClient

from client_sdk.core.epoch import DAY, epoch_of
from collector.core.cells import Cell
from collector.core.credentials import OPEN, REPORT
from collector.core.errors import StorageUnavailableError
from collector.web.api.openapi import PATH, document, path_of
from collector.web.auth import scope, scope_of
from tests.collector.web.conftest import MakeApp
from tests.collector.web.test_browsers import HEADERS
from tests.support.crowds.uploads import NOON, READ_TOKEN, TODAY, bearer, registry
from tests.support.store.memory_storage import MemoryStorage

SILENT: Final = {"HEAD", "OPTIONS"}


@pytest.fixture
def told(app: Flask) -> dict[str, Any]:
    return document(app)


def operations(told: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (path, method.upper()): operation
        for path, methods in told["paths"].items()
        for method, operation in methods.items()
    }


def test_each_part_of_a_path_is_declared_and_no_other(told: dict[str, Any]) -> None:
    """Law of OpenAPI: generators refuse an operation that leaves one out."""
    wrong = {
        operation: (parts, declared)
        for operation, described in operations(told).items()
        if (parts := sorted(findall(r"{([^}]+)}", operation[0])))
        != (
            declared := sorted(
                each["name"] for each in described.get("parameters", ()) if each["in"] == "path"
            )
        )
    }

    assert wrong == {}


def test_the_document_has_every_route_but_the_pages(
    app: Flask, client: FlaskClient, told: dict[str, Any]
) -> None:
    """What is left out answers a browser in HTML, or takes the form of such a page."""
    routes = {
        (path_of(rule), method)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - SILENT
    }
    pages = routes - set(operations(told))
    headers = bearer(READ_TOKEN) | {"Accept": "text/html"}

    kinds = {
        client.get(path, headers=headers).mimetype for path, method in pages if method == "GET"
    }

    assert set(operations(told)) < routes
    assert kinds == {"text/html"}
    assert {path for path, _ in pages if path.startswith(("/v1/", "/metrics"))} == set()


def test_a_route_that_declares_nothing_is_missing_and_so_would_be_noticed(app: Flask) -> None:
    """The control of the law above."""
    app.add_url_rule("/forgotten", view_func=scope(OPEN)(lambda: ""), endpoint="forgotten")

    assert "/forgotten" not in document(app)["paths"]


def test_every_route_tells_the_credential_that_its_scope_needs(
    app: Flask, told: dict[str, Any]
) -> None:
    for rule in app.url_map.iter_rules():
        needed = scope_of(app.view_functions[rule.endpoint])
        for operation in told["paths"].get(path_of(rule), {}).values():
            names = [name for one in operation["security"] for name in one]
            scheme = "writeKey" if needed == REPORT else "readToken"
            assert names == ([] if needed == OPEN else [scheme])
    [of_uploads] = told["paths"]["/v1/reports"]["post"]["security"]
    assert list(of_uploads) == ["writeKey"]


def test_the_document_is_served_to_everybody_and_names_no_metric(
    client: FlaskClient, told: dict[str, Any]
) -> None:
    """It is about the program, and the same for every deployment of it."""
    response = client.get(PATH)

    assert response.get_json() == told
    text = response.text
    assert not [m for m in registry() if m.title in text or f'"{m.name}"' in text]


def test_every_reference_leads_to_a_form_and_every_form_is_used(told: dict[str, Any]) -> None:
    text = json.dumps(told)
    schemas = told["components"]["schemas"]

    referred = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}

    assert referred == set(schemas)
    closed = {n: form for n, form in schemas.items() if n != "Row" and "enum" not in form}
    assert len(closed) > 20
    assert all(form.get("additionalProperties") is False for form in closed.values())


def test_every_operation_has_a_name_of_its_own_and_a_summary(told: dict[str, Any]) -> None:
    found = operations(told).values()

    assert len({operation["operationId"] for operation in found}) == len(found)
    assert all(operation["summary"] for operation in found)


def test_a_refusal_tells_what_the_document_says_it_may(
    client: FlaskClient, storage: MemoryStorage, told: dict[str, Any]
) -> None:
    """Of each route the statuses without a credential, with one, and while the store is away."""
    for path, method in operations(told):
        named = path.replace("{name}", "page").replace("{panel}", "answer")
        address = named.replace("{filename}", "hearsay.css")
        for secret in ("", READ_TOKEN):
            response = client.open(address, method=method, headers=bearer(secret), buffered=True)
            responses = told["paths"][path][method.lower()]["responses"]

            assert str(response.status_code) in responses
            kinds = responses[str(response.status_code)]["content"]
            assert response.content_type in kinds


def test_no_rule_is_routed_twice(app: Flask) -> None:
    rules = [
        (rule.rule, method)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"OPTIONS"}
    ]

    assert len(rules) == len(set(rules))


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        f"Basic {READ_TOKEN}",
        READ_TOKEN,
        f"Bearer {READ_TOKEN}x",
        f"Bearer {READ_TOKEN[:-1]}",
        f"Bearer {READ_TOKEN} {READ_TOKEN}",
        "Bearer ü",
    ],
)
def test_a_credential_in_any_other_form_is_none(client: FlaskClient, header: str) -> None:
    response = client.get("/v1/metrics", headers={"Authorization": header})

    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert READ_TOKEN not in response.text


def test_the_scheme_of_a_credential_is_read_in_any_case(client: FlaskClient) -> None:
    response = client.get("/v1/metrics", headers={"Authorization": f"bearer {READ_TOKEN}"})

    assert response.status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/v1/metrics/", 404),
        ("GET", "/v1//metrics", 404),
        ("GET", "/static/../app.py", 404),
        ("GET", "/static/%2e%2e/app.py", 404),
        ("GET", "/v1/reports", 405),
        ("DELETE", "/v1/metrics", 405),
        ("POST", "/", 405),
    ],
)
def test_what_is_not_routed_is_a_problem_with_the_security_headers(
    client: FlaskClient, method: str, path: str, status: int
) -> None:
    response = client.open(path, method=method, headers=bearer(READ_TOKEN))

    assert response.status_code == status
    assert response.content_type == "application/problem+json"
    assert response.get_json(force=True)["status"] == status
    assert {name: response.headers[name] for name in HEADERS} == HEADERS


def test_a_wrong_method_names_the_right_one(client: FlaskClient) -> None:
    assert "POST" in client.get("/v1/reports").headers["Allow"]


@pytest.mark.parametrize("failure", [StorageUnavailableError("gone"), RuntimeError("canary7f3a")])
@pytest.mark.parametrize("path", ["/", "/readyz", "/v1/metrics/page/estimate"])
def test_a_failing_store_is_a_problem_without_a_traceback(
    client: FlaskClient, storage: MemoryStorage, path: str, failure: Exception
) -> None:
    storage.failure = failure

    response = client.get(path, headers=bearer(READ_TOKEN))

    assert response.status_code == (503 if isinstance(failure, StorageUnavailableError) else 500)
    assert response.content_type == "application/problem+json"
    assert {name: response.headers[name] for name in HEADERS} == HEADERS
    assert ("Retry-After" in response.headers) == (response.status_code == 503)
    assert not any(word in response.text for word in ("Traceback", "canary"))


def test_a_process_lives_whatever_its_store_does(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    storage.failure = StorageUnavailableError("gone")

    assert client.get("/livez").get_json() == {"status": "ok"}


def test_readiness_says_how_many_entries_wait(client: FlaskClient, storage: MemoryStorage) -> None:
    storage.append(b"a" * 16, 1, b"entry", 1)

    assert client.get("/readyz").get_json() == {
        "status": "ok",
        "backlog": 1,
        "lost": 0,
        "refusing": [],
    }


REGISTRY = registry()
PATHS = ("/", "/privacy", "/operations", "/metric/page", "/ask", "/plan", "/compare")


@pytest.mark.parametrize(
    ("name", "mimetype"),
    [
        ("hearsay.css", "text/css"),
        ("charts.css", "text/css"),
        ("documents.css", "text/css"),
        ("plan.css", "text/css"),
        ("privacy.css", "text/css"),
        ("theme.js", "text/javascript"),
        ("login.js", "text/javascript"),
        ("pages.js", "text/javascript"),
        ("sort.js", "text/javascript"),
        ("icon.svg", "image/svg+xml"),
    ],
)
def test_a_file_of_the_pages_is_there_with_its_type(
    client: FlaskClient, name: str, mimetype: str
) -> None:
    """Browsers are told to believe the type and nothing else."""
    response = client.get(f"/static/{name}", buffered=True)

    assert (response.status_code, response.mimetype) == (200, mimetype)


OF_PROXIES = [
    {"Host": "127.0.0.1:8000"},
    {"Host": "localhost:8000"},
    {"Host": "[::1]:8000"},
    {"Host": "rebound.example"},
    {"Host": "127.0.0.1", "X-Forwarded-For": "203.0.113.7", "Via": "1.1 proxy"},
]


@pytest.mark.parametrize("headers", OF_PROXIES, ids=str)
def test_pages_that_are_open_are_so_to_those_who_have_the_link_alone(
    make_app: MakeApp, headers: dict[str, str]
) -> None:
    """Whatever a proxy says or leaves out: what it passes on looks like a visit of this machine."""
    client = make_app(open_dashboard=True).test_client()

    statuses = [client.get(path, headers=headers).status_code for path in PATHS]

    assert statuses == [401] * len(PATHS)


def test_a_damaged_tally_costs_only_the_answer_of_its_own_metric(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    """The page shows the others; the API names the damage, as a problem document."""
    page_metric, theme = REGISTRY.metric("page"), REGISTRY.metric("theme")
    today = Cell(page_metric.digest, TODAY, "")
    storage.put({today: [(0, 12_000), (1, 6_000), (2, 4_000), (3, 2_000)]})
    week = epoch_of(theme.every, NOON - 7 * DAY)
    storage.put({Cell(theme.digest, week, ""): [(0, 5_000), (1, 5_001)]})

    page = client.get("/", headers=bearer(READ_TOKEN))
    detail = client.get("/metric/theme", headers=bearer(READ_TOKEN))
    answer = client.get("/v1/metrics/theme/estimate", headers=bearer(READ_TOKEN))

    assert (detail.status_code, "hearsay fsck" in detail.text) == (200, True)
    assert "12,000 reports" in page.text
    assert page.text.count("hearsay fsck") == 1
    assert answer.status_code == 500
    assert "urn:hearsay:problem:damaged-tally" in answer.text


def test_a_route_of_a_metric_takes_its_address_too(app: Flask) -> None:
    """A metric of a name that two apps have is reached as app/name only."""
    rules = [rule.rule for rule in app.url_map.iter_rules() if "name>" in rule.rule]

    assert [rule for rule in rules if "<name>" in rule] == []
    assert len([rule for rule in rules if "<metric:name>" in rule]) >= 3
