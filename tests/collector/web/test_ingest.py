"""Intake over HTTP: what is acknowledged is stored once; what cannot be stored is sent again."""

from __future__ import annotations

import logging

import pytest
from flask import Flask
from flask.testing import FlaskClient

from client_sdk.wire.reports import Column
from collector.core.cells import ATTESTED, RELAYED, key_source, split_source
from collector.core.credentials import digest_of, id_of
from collector.core.entry import decode
from collector.core.errors import (
    ForgottenUploadError,
    NotPreparedError,
    RefusedByStoreError,
    ReplacedStoreError,
    StorageFullError,
    StorageUnavailableError,
    UnsafeStoreError,
)
from collector.core.logs import PERIOD_S, Incidents
from collector.intake.wire import JSON
from collector.web.ingest.upload import Head
from collector.web.services import services_of
from tests.support.crowds.uploads import (
    READ_TOKEN,
    TODAY,
    WRITE_KEY,
    as_json,
    bearer,
    registry,
    upload,
)
from tests.support.device.clock import FakeClock
from tests.support.sites.posting import post, problem_of
from tests.support.store.memory_storage import MemoryStorage

THEME, AGE = (registry().metric(name) for name in ("theme", "age"))
WEEK = (TODAY + 3) // 7
COLUMN = Column(THEME.digest, WEEK, b"\1")


def test_a_repeated_upload_is_a_duplicate_and_stored_once(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    answers = [post(client, as_json(upload([COLUMN]))) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [202, 202, 202]
    assert [answer.get_json()["duplicate"] for answer in answers] == [False, True, True]
    assert len(storage.entries) == 1


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
    assert len([record for record in caplog.records if "aof_enabled=0" in record.getMessage()]) == 1


@pytest.mark.parametrize(
    "failure",
    [
        *(StorageFullError("cannot write its log"), NotPreparedError("lacks the library")),
        *(ForgottenUploadError("clock"), ReplacedStoreError(), RefusedByStoreError("ERR")),
    ],
)
def test_what_refuses_every_upload_is_logged_once_and_not_by_each(
    app: Flask,
    client: FlaskClient,
    storage: MemoryStorage,
    caplog: pytest.LogCaptureFixture,
    failure: Exception,
) -> None:
    """On the disk that is full, and before the next poll as well as after it."""
    services_of(app).pressure.poll()
    storage.failure = failure
    body = as_json(upload([COLUMN]))

    answers = [post(client, body).status_code for _ in range(50)]
    services_of(app).pressure.poll()
    services_of(app).pressure.poll()
    answers += [post(client, body).status_code for _ in range(50)]

    assert answers == [503] * 100
    assert len(caplog.records) <= 2


def test_a_failure_that_goes_on_is_told_again_with_how_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    incidents = Incidents(clock)
    for _ in range(3):
        for _ in range(10):
            incidents.tell(logging.getLogger("hearsay.web"), "store-full", "is out of memory")
        clock.advance(seconds=PERIOD_S)

    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "store-full: is out of memory",
        *["store-full: is out of memory (and 9 times more since the last line)"] * 2,
    ]


def test_a_store_that_was_emptied_is_not_ready_and_acknowledges_nothing(
    app: Flask, client: FlaskClient, storage: MemoryStorage, caplog: pytest.LogCaptureFixture
) -> None:
    services_of(app).pressure.poll()
    storage.failure = ReplacedStoreError()
    services_of(app).pressure.poll()
    storage.failure = None  # what the poll has noticed holds until the next one

    answers = [
        post(client, as_json(upload([COLUMN]))),
        client.get("/readyz"),
        client.get("/v1/metrics/page/estimate", headers=bearer(READ_TOKEN)),
        client.post("/v1/query", json={"metrics": ["page"]}, headers=bearer(READ_TOKEN)),
    ]

    # a question too: 0 would stand for what nobody knows any more
    assert [problem_of(answer)["type"][-12:] for answer in answers] == ["store-unsafe"] * 4
    assert services_of(app).snapshot().is_replaced
    assert services_of(app).snapshot().refused == {0: True}
    assert "store.generation=gone" in caplog.text


def test_a_store_that_is_full_is_not_ready(
    app: Flask, client: FlaskClient, storage: MemoryStorage
) -> None:
    """Readiness says what an upload would be told."""
    storage.memory_share = 0.9
    services_of(app).pressure.poll()

    answers = [post(client, as_json(upload([COLUMN]))), client.get("/readyz")]

    assert [problem_of(answer)["type"][-10:] for answer in answers] == ["store-full"] * 2


def test_a_retry_after_an_outage_is_first_sight(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    storage.failure = StorageUnavailableError("gone")
    post(client, as_json(upload([COLUMN])))
    storage.failure = None

    response = post(client, as_json(upload([COLUMN])))

    assert response.get_json() == {"accepted": 1, "duplicate": False, "rejected": []}


def test_an_unexpected_error_is_a_problem_that_shows_nothing(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    storage.failure = RuntimeError("canary7f3a")

    response = post(client, as_json(upload([COLUMN])))

    assert response.status_code == 500
    assert problem_of(response)["type"].endswith("internal")
    assert "canary" not in response.text
    assert "Traceback" not in response.text


@pytest.mark.parametrize("columns", [[COLUMN], [COLUMN, Column(AGE.digest, TODAY, b"\0" * 8)]])
def test_what_is_known_of_how_an_upload_came_reaches_the_store_with_its_reports(
    app: Flask, storage: MemoryStorage, columns: list[Column]
) -> None:
    """Whoever opens a capsule or checks a token says it with the headers; see HotRoute."""
    hot, body = services_of(app).hot, as_json(upload(columns))
    source = frozenset({RELAYED, ATTESTED})

    admission = hot.admit(Head(bearer(WRITE_KEY)["Authorization"], JSON, "", len(body), source))
    judgement = hot.judge(admission, body)

    assert judgement.sealed is not None
    stored = decode(judgement.sealed.entry)
    key = key_source(id_of(digest_of(WRITE_KEY)))
    expected = key | (source if len(columns) == 1 else {ATTESTED})
    assert {split_source(column.cell.segment)[0] for column in stored} == {expected}
