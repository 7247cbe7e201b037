"""Sending an upload through Flask's test client, and folding it."""

from __future__ import annotations

from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from client_sdk.registry import Registry
from collector.core.catalog import Catalog
from collector.worker.worker import Worker
from tests.support.crowds.uploads import WRITE_KEY, bearer
from tests.support.store.memory_storage import MemoryStorage


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


def fold(storage: MemoryStorage, *registries: Registry) -> None:
    """Fold what waits in *storage*, as a worker that knows these registries."""
    known = Catalog(registries).by_digest
    mechanisms = {digest: metric.mechanism for digest, metric in known.items()}
    Worker(storage, mechanisms, {digest: metric.every for digest, metric in known.items()}).step()


def problem_of(response: TestResponse) -> dict[str, Any]:
    """Return the problem document of *response*, which must be one."""
    assert response.content_type == "application/problem+json"
    document: dict[str, Any] = response.get_json(force=True)
    assert set(document) == {"type", "title", "status", "detail"}
    assert document["status"] == response.status_code
    return document
