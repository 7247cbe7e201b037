"""When an upload cannot be stored, the device is told to send it again, and is told no more."""

from __future__ import annotations

import pytest
from flask import Flask
from flask.testing import FlaskClient

from client_sdk.report import Column
from collector.errors import (
    ForgottenUploadError,
    StorageFullError,
    StorageUnavailableError,
    UnsafeStoreError,
)
from collector.web.services import services_of
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


@pytest.mark.parametrize(
    "failure",
    [
        *(StorageUnavailableError("gone"), StorageFullError("full")),
        *(UnsafeStoreError(["aof_enabled=0"]), ForgottenUploadError("clock")),
    ],
)
def test_a_store_that_cannot_take_it_asks_for_a_retry(
    client: FlaskClient, storage: MemoryStorage, failure: Exception
) -> None:
    storage.failure = failure

    response = post(client, as_json(upload([COLUMN])))

    assert response.status_code == 503
    assert 30 <= int(response.headers["Retry-After"]) <= 300
    assert problem_of(response)["type"].startswith("urn:hearsay:problem:store-")
    assert "Traceback" not in response.text


def test_a_store_that_was_started_again_unsafe_is_not_ready_and_acknowledges_nothing(
    app: Flask, client: FlaskClient, storage: MemoryStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """It answers as before; only its settings tell that it would forget.  They are logged once."""
    before = client.get("/readyz").status_code
    storage.faults = ("aof_enabled=0: must be 1, for profile strict",)
    services_of(app).pressure.poll()

    uploads = [post(client, as_json(upload([COLUMN]))) for _ in range(3)]
    ready = client.get("/readyz")

    assert before == 200
    assert [problem_of(one)["type"][-12:] for one in (*uploads, ready)] == ["store-unsafe"] * 4
    assert not storage.entries
    assert len([one for one in caplog.records if "aof_enabled=0" in one.getMessage()]) == 1


def test_a_store_that_is_full_is_not_ready(
    app: Flask, client: FlaskClient, storage: MemoryStorage
) -> None:
    """Readiness says what an upload would be told."""
    storage.memory_share = 0.9
    services_of(app).pressure.poll()

    answers = [post(client, as_json(upload([COLUMN]))), client.get("/readyz")]

    assert [problem_of(one)["type"][-10:] for one in answers] == ["store-full"] * 2


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
