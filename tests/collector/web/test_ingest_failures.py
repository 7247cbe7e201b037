"""When an upload cannot be stored, the device is told to send it again, and is told no more."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from client_sdk.report import Column
from collector.errors import StorageFullError, StorageUnavailableError
from tests.support.memory_storage import MemoryStorage
from tests.support.posting import post, problem_of
from tests.support.uploads import (
    TODAY,
    as_json,
    registry,
    upload,
)

THEME = registry().metric("theme")
COLUMN = Column(THEME.digest, (TODAY + 3) // 7, b"\0\1\1")


@pytest.mark.parametrize("failure", [StorageUnavailableError("gone"), StorageFullError("full")])
def test_a_store_that_cannot_take_it_asks_for_a_retry(
    client: FlaskClient, storage: MemoryStorage, failure: Exception
) -> None:
    storage.failure = failure

    response = post(client, as_json(upload([COLUMN])))

    assert response.status_code == 503
    assert 30 <= int(response.headers["Retry-After"]) <= 300
    assert problem_of(response)["type"].startswith("urn:hearsay:problem:store-")
    assert "Traceback" not in response.text


def test_a_retry_after_an_outage_is_first_sight(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    storage.failure = StorageUnavailableError("gone")
    post(client, as_json(upload([COLUMN])))
    storage.failure = None

    response = post(client, as_json(upload([COLUMN])))

    assert response.get_json() == {"accepted": 3, "duplicate": False, "rejected": []}


def test_an_unexpected_error_is_a_problem_that_shows_nothing(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    storage.failure = RuntimeError("canary7f3a")

    response = post(client, as_json(upload([COLUMN])))

    assert response.status_code == 500
    assert problem_of(response)["type"].endswith("internal")
    assert "canary" not in response.text
    assert "Traceback" not in response.text
