"""The OpenAPI document says what the routes do: every route, its scope, its forms, its errors."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from flask import Flask
from flask.testing import FlaskClient

from collector.core.credentials import OPEN, REPORT
from collector.web.api.openapi import PATH, document, path_of
from collector.web.auth import scope, scope_of
from tests.support.crowds.uploads import READ_TOKEN, bearer, registry
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


def test_the_document_has_exactly_the_routes(app: Flask, told: dict[str, Any]) -> None:
    """No route is left out, and none is told that is not there."""
    routes = {
        (path_of(rule), method)
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - SILENT
    }

    assert set(operations(told)) == routes


def test_a_route_that_declares_nothing_is_missing_and_so_would_be_noticed(app: Flask) -> None:
    """The control of the law above."""
    app.add_url_rule("/forgotten", view_func=scope(OPEN)(lambda: ""), endpoint="forgotten")

    assert "/forgotten" not in document(app)["paths"]


def test_every_route_tells_the_credential_that_its_scope_needs(
    app: Flask, told: dict[str, Any]
) -> None:
    for rule in app.url_map.iter_rules():
        needed = scope_of(app.view_functions[rule.endpoint])
        for operation in told["paths"][path_of(rule)].values():
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
    assert all(
        form.get("additionalProperties") is False for n, form in schemas.items() if n != "Row"
    )


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
