"""Questions to a web process under test, and the reports that they are about."""

from __future__ import annotations

import json
from typing import Any, Final

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from client_sdk.registry.metric import Metric
from collector.core.cells import Cell, segment_text
from tests.support.crowds.uploads import READ_TOKEN, bearer
from tests.support.store.memory_storage import MemoryStorage

JANUARY: Final = ["2026-01-05", "2026-01-18"]  # long over, on the tests' day; two whole weeks
JANUARY_5: Final = 20_458  # epoch day
PATH: Final = "/v1/query"


def store(storage: MemoryStorage, metric: Metric, epoch: int, n: int, **segment: str) -> None:
    """Put *n* reports of the first item into the tally of an epoch and segment."""
    cell = Cell(metric.digest, epoch, segment_text(metric, segment))
    storage.put({cell: [(0, n), (1, n)]})


def post(
    client: FlaskClient, question: Any, *, token: str = READ_TOKEN, **more: Any
) -> TestResponse:
    """Return the answer to *question*, of JSON types, or bytes as they are."""
    body = question if isinstance(question, bytes) else json.dumps(question).encode()
    headers = {**bearer(token), **more.pop("headers", {})}
    kind = more.pop("kind", "application/json")
    return client.post(PATH, data=body, content_type=kind, headers=headers, **more)


def follow(client: FlaskClient, question: Any, **parameters: str) -> TestResponse:
    """Return the answer to *question* as a link."""
    said = {"q": json.dumps(question), **parameters}
    return client.get(PATH, query_string=said, headers=bearer(READ_TOKEN))
