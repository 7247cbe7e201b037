"""Sending an upload through Flask's test client."""

from __future__ import annotations

from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.support.crowds.uploads import WRITE_KEY, bearer


def post(
    client: FlaskClient,
    body: bytes,
    *,
    key: str = WRITE_KEY,
    content_type: str = "application/json",
    encoding: str | None = None,
) -> TestResponse:
    """POST *body* as an upload."""
    headers = bearer(key) | ({"Content-Encoding": encoding} if encoding else {})
    return client.post("/v1/reports", data=body, content_type=content_type, headers=headers)


def problem_of(response: TestResponse) -> dict[str, Any]:
    """Return the problem document of *response*, which must be one."""
    assert response.content_type == "application/problem+json"
    document: dict[str, Any] = response.get_json(force=True)
    assert set(document) == {"type", "title", "status", "detail"}
    assert document["status"] == response.status_code
    return document
