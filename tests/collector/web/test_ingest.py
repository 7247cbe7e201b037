"""Intake over HTTP: what is acknowledged is stored once, what is rejected is counted."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from client_sdk.core.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE
from client_sdk.core.wire import Column
from collector.core.cells import Cell
from collector.core.entry import AcceptedColumn, decode
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    TODAY,
    WRITE_KEY,
    as_json,
    as_msgpack,
    registry,
    upload,
)
from tests.support.sites.posting import post, problem_of
from tests.support.store.memory_storage import MemoryStorage

THEME, AGE = (registry().metric(name) for name in ("theme", "age"))
WEEK = (TODAY + 3) // 7
COLUMN = Column(THEME.digest, WEEK, b"\1")
SEVERAL = Column(THEME.digest, WEEK, b"\0\1\1")


def test_an_upload_is_acknowledged_with_its_number_of_reports(client: FlaskClient) -> None:
    response = post(client, as_json(upload([COLUMN])))

    assert response.status_code == 202
    assert response.get_json() == {"accepted": 1, "duplicate": False, "rejected": []}


def test_an_acknowledged_upload_is_in_the_store(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    post(client, as_json(upload([COLUMN])))

    (entry,) = storage.entries.values()
    assert decode(entry) == [AcceptedColumn(Cell(THEME.digest, WEEK, ""), b"\1")]


def test_both_encodings_store_the_same(client: FlaskClient, storage: MemoryStorage) -> None:
    post(client, as_json(upload([COLUMN], upload_id=b"a" * 16)))
    post(client, as_msgpack([COLUMN], upload_id=b"b" * 16), content_type="application/msgpack")

    first, second = storage.entries.values()
    assert first == second


def test_a_repeated_upload_is_a_duplicate_and_stored_once(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    answers = [post(client, as_json(upload([COLUMN]))) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [202, 202, 202]
    assert [answer.get_json()["duplicate"] for answer in answers] == [False, True, True]
    assert len(storage.entries) == 1


def test_rejections_are_counted_by_column_and_reason(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    columns = [
        Column(THEME.digest, WEEK, b"\0\7\1\7"),
        Column(b"nobody", WEEK, b"\0"),
        Column(AGE.digest, TODAY + 9, bytes(AGE.mechanism.payload_size)),
    ]

    response = post(client, as_json(upload(columns)), key=GATEWAY_KEY)

    assert response.get_json() == {
        "accepted": 2,
        "duplicate": False,
        "rejected": [
            {"column": 0, "reason": "item_out_of_range", "count": 2},
            {"column": 1, "reason": "unknown_metric", "count": 1},
            {"column": 2, "reason": "epoch_in_future", "count": 1},
        ],
    }
    (entry,) = storage.entries.values()
    assert [column.payloads for column in decode(entry)] == [b"\0\1"]


def test_an_upload_of_which_nothing_is_accepted_is_not_stored(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    response = post(client, as_json(upload([Column(b"nobody", WEEK, b"\0")])))

    assert (response.status_code, response.get_json()["accepted"]) == (202, 0)
    assert storage.entries == {}


def test_an_upload_sealed_too_long_ago_is_gone(client: FlaskClient, storage: MemoryStorage) -> None:
    response = post(client, as_json(upload([COLUMN], sealed=TODAY - MAX_REPORT_AGE - 1)))

    assert response.status_code == 410
    assert problem_of(response)["type"].endswith("upload-expired")
    assert storage.entries == {}


def test_an_upload_sealed_in_the_future_is_unprocessable(client: FlaskClient) -> None:
    response = post(client, as_json(upload([COLUMN], sealed=TODAY + MAX_CLOCK_SKEW + 1)))

    assert response.status_code == 422
    assert problem_of(response)["type"].endswith("upload-in-future")


@pytest.mark.parametrize("content_type", ["application/json", "application/msgpack"])
@pytest.mark.parametrize(
    "body", [b"", b"canary7f3a", b'{"v":1,"canary7f3a":2}', b"\x81\xa6canary\1"]
)
def test_a_body_that_is_no_upload_is_malformed_and_not_repeated(
    client: FlaskClient, body: bytes, content_type: str
) -> None:
    response = post(client, body, content_type=content_type)

    assert response.status_code == 400
    assert problem_of(response)["type"].endswith("malformed-upload")
    assert "canary" not in response.text


@pytest.mark.parametrize(
    "content_type", ["", "text/plain", "text/html", "application/x-www-form-urlencoded", "json"]
)
def test_another_content_type_is_not_read(client: FlaskClient, content_type: str) -> None:
    response = post(client, as_json(upload([COLUMN])), content_type=content_type)

    assert response.status_code == 415
    assert problem_of(response)["type"].endswith("unsupported-type")


def test_a_content_type_may_have_parameters(client: FlaskClient) -> None:
    response = post(
        client, as_json(upload([COLUMN])), content_type="application/json; charset=utf-8"
    )

    assert response.status_code == 202


PAGE = registry().metric("page")


@pytest.mark.parametrize(
    "payloads", [b"\0\1", b"\0\7", b"\7\7", b"\0" * 500], ids=["two", "one valid", "none", "500"]
)
def test_under_a_public_key_a_column_is_one_report(
    client: FlaskClient, storage: MemoryStorage, payloads: bytes
) -> None:
    """No device makes a second: who took the key out of an application sends an upload a fake."""
    columns = [Column(PAGE.digest, TODAY, payloads), COLUMN]

    answer = post(client, as_json(upload(columns, segment={"platform": "mac"})))

    assert answer.status_code == 202
    assert answer.get_json() == {
        "accepted": 1,
        "duplicate": False,
        "rejected": [{"column": 0, "reason": "several_reports", "count": len(payloads)}],
    }
    (entry,) = storage.entries.values()
    assert decode(entry) == [AcceptedColumn(Cell(THEME.digest, WEEK, ""), b"\1")]


def test_under_the_key_of_a_gateway_a_column_is_of_many_devices(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    answer = post(client, as_json(upload([SEVERAL])), key=GATEWAY_KEY)

    assert (answer.status_code, answer.get_json()["accepted"]) == (202, 3)
    (entry,) = storage.entries.values()
    assert decode(entry) == [AcceptedColumn(Cell(THEME.digest, WEEK, ""), b"\0\1\1")]


@pytest.mark.parametrize(("key", "status"), [(WRITE_KEY, 400), (GATEWAY_KEY, 202)])
def test_a_public_key_reports_once_a_metric_and_epoch(
    client: FlaskClient, storage: MemoryStorage, key: str, status: int
) -> None:
    """A device puts them into one column, so that nothing tells them apart."""
    columns = [Column(PAGE.digest, TODAY, b"\0"), COLUMN, Column(PAGE.digest, TODAY, b"\1")]

    answer = post(client, as_json(upload(columns)), key=key)

    assert answer.status_code == status
    assert len(storage.entries) == (status == 202)
