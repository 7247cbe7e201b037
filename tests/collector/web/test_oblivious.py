"""What a relay carries: answered inside its capsule, and alike for all that cannot be opened."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from client_sdk.core.limits import MAX_DEVICE_BODY, SIZE_CLASSES
from client_sdk.wire import binary_http
from client_sdk.wire.binary_http import Request
from client_sdk.wire.oblivious import HEADER_SIZE, OVERHEAD
from client_sdk.wire.reports import Column
from collector.core.cells import RELAYED, split_source
from collector.core.entry import decode
from collector.core.errors import StorageUnavailableError
from collector.intake.capsules import MAX_CAPSULE
from collector.operations.telemetry.activity import REFUSED
from collector.web.services import services_of
from tests.support.crowds.uploads import GATEWAY_KEY, TODAY, as_json, facts_of, registry, upload
from tests.support.sites.capsules import (
    FIELDS,
    Keys,
    carried,
    make_keys,
    opened,
    sealed,
    upload_request,
    with_field,
    without,
)
from tests.support.sites.rsgi import answers
from tests.support.store.memory_storage import MemoryStorage

from .conftest import MakeApp

PAGE = registry().metric("page")
BODY = as_json(upload([Column(PAGE.digest, TODAY, bytes(1))]))
SEED = 20261123
FEW, BROKEN = 600, 10_000  # messages


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return make_keys(tmp_path)


@pytest.fixture
def app(make_app: MakeApp, keys: Keys) -> Flask:
    return make_app(oblivious_keys=keys.path)


def problem(response: binary_http.Response) -> dict[str, Any]:
    assert dict(response.fields)["content-type"] == "application/problem+json"
    document: dict[str, Any] = json.loads(response.content)
    assert document["status"] == response.status
    return document


def stored_sources(storage: MemoryStorage) -> list[frozenset[str]]:
    return [
        facts_of(split_source(column.cell.segment)[0])
        for entry in storage.entries.values()
        for column in decode(entry)
    ]


def test_an_upload_in_a_capsule_is_answered_as_on_its_own(app: Flask, keys: Keys) -> None:
    first, again = sealed(keys, upload_request(BODY)), sealed(keys, upload_request(BODY))

    answer, duplicate = answers(app, carried(first.message), carried(again.message))

    response = opened(first, answer)
    assert (response.status, response.fields) == (202, (("content-type", "application/json"),))
    assert json.loads(response.content) == {"accepted": 1, "duplicate": False, "rejected": []}
    assert json.loads(opened(again, duplicate).content)["duplicate"] is True
    assert answer is not None
    assert answer.headers["content-type"] == "message/ohttp-res"
    assert len(answer.body) == SIZE_CLASSES[0]


def test_a_capsule_that_comes_twice_counts_once(app: Flask, keys: Keys) -> None:
    capsule = sealed(keys, upload_request(BODY))

    both = answers(app, *[carried(capsule.message)] * 2)

    said = [json.loads(opened(capsule, answer).content)["duplicate"] for answer in both]
    assert said == [False, True]


@pytest.mark.parametrize(
    ("columns", "source"),
    [
        ([Column(PAGE.digest, TODAY, bytes(1))], {RELAYED}),
        ([Column(PAGE.digest, TODAY - day, bytes(1)) for day in (0, 1)], set()),
    ],
)
def test_a_report_is_relayed_where_it_came_alone(
    app: Flask, keys: Keys, storage: MemoryStorage, columns: list[Column], source: set[str]
) -> None:
    """Control: two reports of one upload are linked, so neither is."""
    answers(app, carried(sealed(keys, upload_request(as_json(upload(columns)))).message))

    assert stored_sources(storage) == [frozenset(source)] * len(columns)


def test_a_report_under_the_key_of_a_gateway_is_not_relayed(
    app: Flask, keys: Keys, storage: MemoryStorage
) -> None:
    """Law: that key says whose it is, however it came."""
    fields = with_field("authorization", f"Bearer {GATEWAY_KEY}")

    answers(app, carried(sealed(keys, upload_request(BODY, fields)).message))

    assert stored_sources(storage) == [frozenset()]


def test_a_report_without_a_relay_is_not_relayed(
    client: FlaskClient, storage: MemoryStorage
) -> None:
    """Control: whoever sends itself cannot say that a relay did."""
    headers = dict(FIELDS) | {"via": "relay", "relayed": "1"}

    assert client.post("/v1/reports", data=BODY, headers=headers).status_code == 202
    assert stored_sources(storage) == [frozenset()]


INNER: dict[str, tuple[Request | bytes, int, str]] = {
    "no key": (upload_request(BODY, without(FIELDS, "authorization")), 401, "unauthorized"),
    "a wrong key": (
        upload_request(BODY, with_field("authorization", "Bearer " + "x" * 20)),
        401,
        "unauthorized",
    ),
    "no type": (upload_request(BODY, without(FIELDS, "content-type")), 415, "unsupported-type"),
    "no upload": (upload_request(b"{"), 400, "malformed-upload"),
    "too old": (upload_request(as_json(upload([], sealed=0))), 410, "upload-expired"),
    "too large": (upload_request(b" " * (MAX_DEVICE_BODY + 1)), 413, "body-too-large"),
    "another path": (
        Request("POST", "https", "t.example.org", "/v1/query", FIELDS, b"{}"),
        404,
        "unknown-request",
    ),
    "another method": (
        Request("GET", "https", "t.example.org", "/v1/reports", FIELDS),
        404,
        "unknown-request",
    ),
    "a path with a question": (
        Request("POST", "https", "t.example.org", "/v1/reports?a=b", FIELDS, BODY),
        404,
        "unknown-request",
    ),
    "two keys": (upload_request(BODY, (*FIELDS, FIELDS[0])), 400, "malformed-upload"),
    "no binary HTTP": (b"GET / HTTP/1.1\r\n\r\n", 400, "malformed-upload"),
    "binary HTTP cut off": (
        binary_http.encode_request(upload_request(BODY))[:100],
        400,
        "malformed-upload",
    ),
    "a response": (b"\x01\x40\xc8", 400, "malformed-upload"),
    "nothing": (b"", 400, "malformed-upload"),
    "no list of retired metrics": (
        Request("GET", "https", "t.example.org", "/v1/retired"),
        404,
        "not-found",
    ),
}


@pytest.mark.parametrize("name", INNER)
def test_what_is_wrong_in_a_capsule_is_said_in_its_answer_only(
    app: Flask, keys: Keys, storage: MemoryStorage, name: str
) -> None:
    inner, status, slug = INNER[name]
    capsule = sealed(keys, inner)

    [answer] = answers(app, carried(capsule.message))

    response = opened(capsule, answer)
    assert (response.status, problem(response)["type"]) == (status, f"urn:hearsay:problem:{slug}")
    assert answer is not None
    assert len(answer.body) == SIZE_CLASSES[0]
    assert storage.backlog() == 0


def test_a_store_that_is_away_is_said_inside_so_that_the_device_keeps_its_upload(
    app: Flask, keys: Keys, storage: MemoryStorage
) -> None:
    capsule = sealed(keys, upload_request(BODY))
    storage.failure = StorageUnavailableError("store: is away")

    [answer] = answers(app, carried(capsule.message))

    response = opened(capsule, answer)
    assert response.status == 503
    assert int(dict(response.fields)["retry-after"]) > 0


def test_the_list_of_retired_metrics_comes_in_a_capsule_too(
    make_app: MakeApp, keys: Keys, tmp_path: Path
) -> None:
    from client_sdk.privacy.retirement import Retirement

    text = Retirement(1_790_000_000, frozenset([PAGE.digest])).text(bytes(range(32)))
    (tmp_path / "retired.json").write_bytes(text)
    app = make_app(oblivious_keys=keys.path, retired=str(tmp_path / "retired.json"))
    capsule = sealed(keys, Request("GET", "https", "t.example.org", "/v1/retired"))

    [answer] = answers(app, carried(capsule.message))

    assert (opened(capsule, answer).status, opened(capsule, answer).content) == (200, text)


def unopened(keys: Keys) -> dict[str, Any]:
    message = sealed(keys, upload_request(BODY)).message
    another = bytes([message[0] ^ 1]) + message[1:]
    return {
        "nothing": carried(b""),
        "another key": carried(another),
        "another suite": carried(message[:6] + b"\x02" + message[HEADER_SIZE:]),
        "a bit of its end": carried(message[:-1] + bytes([message[-1] ^ 1])),
        "cut off": carried(message[:OVERHEAD]),
        "of another type": carried(message, {"content-type": "application/json"}),
        "of no type": carried(message, {}),
        "too long": carried(message + bytes(MAX_CAPSULE)),
        "too long, in parts": carried(message + bytes(MAX_CAPSULE))._replace(chunked=True),
        "an upload": carried(BODY),
    }


def test_all_that_cannot_be_opened_is_answered_alike(app: Flask, keys: Keys) -> None:
    """Law: status, headers and bytes are the same, whatever is wrong."""
    cases = unopened(keys)

    found = answers(app, *cases.values())

    assert len({(answer.status, answer.body) for answer in found if answer}) == 1
    assert all(answer is not None and answer.headers == found[0].headers for answer in found)  # type: ignore[union-attr]  # none is None
    assert found[0] is not None
    assert found[0].status == 422


def test_a_body_that_stalls_is_answered_like_one_that_cannot_be_opened(
    app: Flask, keys: Keys
) -> None:
    from collector.web.ingest.front import Front

    message = sealed(keys, upload_request(BODY)).message

    [slow] = answers(Front(app, body_s=0.01, sweep_s=0.01), carried(message), stalls=True)
    [expected] = answers(app, carried(b""))

    assert slow == expected


def test_without_keys_there_is_no_such_address(make_app: MakeApp, keys: Keys) -> None:
    [answer] = answers(make_app(), carried(sealed(keys, upload_request(BODY)).message))

    assert answer is not None
    assert answer.status == 404


def broken(keys: Keys, rnd: random.Random) -> Any:
    """Return a message that something happened to, or the capsule of a request that is none."""
    good = binary_http.encode_request(upload_request(BODY))
    match rnd.randrange(6):
        case 0:
            return carried(rnd.randbytes(rnd.randrange(200)))
        case 1:
            message = bytearray(sealed(keys, good).message)
            message[rnd.randrange(len(message))] ^= 1 << rnd.randrange(8)
            return carried(bytes(message))
        case 2:
            return carried(sealed(keys, good).message[: rnd.randrange(len(good))])
        case 3:  # of the suite and the key that are right
            return carried(
                sealed(keys, good).message[:HEADER_SIZE] + rnd.randbytes(rnd.randrange(99))
            )
        case 4:
            inner = bytearray(good)
            for _ in range(rnd.randrange(1, 4)):
                inner[rnd.randrange(60)] = rnd.randrange(256)
            return carried(sealed(keys, bytes(inner)).message)
        case _:
            return carried(sealed(keys, good[: rnd.randrange(len(good))]).message)


@pytest.mark.parametrize("count", [FEW, pytest.param(BROKEN, marks=pytest.mark.slow)])
def test_no_broken_message_is_a_failure_of_ours(app: Flask, keys: Keys, count: int) -> None:
    """Law: no status of 500 or more, one size for what cannot be opened, one for what can."""
    rnd = random.Random(SEED)
    messages = [broken(keys, rnd) for _ in range(count)]
    [expected] = answers(app, carried(b""))

    found = answers(app, *messages)

    kinds = {(answer.status, len(answer.body)) for answer in found if answer is not None}
    assert expected is not None
    assert kinds == {(422, len(expected.body)), (200, SIZE_CLASSES[0])}
    refused = services_of(app).activity.totals().of(REFUSED)
    assert set(refused) >= {"capsule", "malformed-upload", "unknown-request", "unauthorized"}
    assert not {"internal"} & set(refused)
    assert {answer.body for answer in found if answer and answer.status == 422} == {expected.body}
