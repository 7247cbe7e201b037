"""What comes over the server's own protocol is answered as by Flask; slow bodies hold nobody."""

from __future__ import annotations

import asyncio
import gzip
import json
from functools import partial

import pytest
from flask import Flask
from flask.testing import FlaskClient

from client_sdk.core.limits import MAX_DEVICE_BODY
from client_sdk.core.wire import Column
from collector.core.config import Config
from collector.core.errors import StorageUnavailableError
from collector.intake.keyring import TRUST_S
from collector.web import create_app
from collector.web.ingest.front import THREADS, Front
from collector.web.services import services_of
from tests.support.crowds.uploads import (
    GATEWAY_KEY,
    NOON,
    READ_TOKEN,
    TODAY,
    WRITE_KEY,
    as_json,
    as_msgpack,
    bearer,
    registry,
    upload,
)
from tests.support.sites.rsgi import Protocol, Request, Response, answers
from tests.support.store.memory_credentials import HangingCredentials
from tests.support.store.memory_storage import MemoryStorage

PAGE = registry().metric("page")
COLUMN, INVALID = (Column(PAGE.digest, TODAY - day, bytes([7 * day])) for day in (0, 1))
BODY = as_json(upload([COLUMN, INVALID]))
LARGE = as_msgpack([Column(PAGE.digest, TODAY, bytes(MAX_DEVICE_BODY + 1))])
QUESTION = b'{"metrics":["page"],"verb":"top_k"}'
JSON = {"content-type": "application/json"}
MSGPACK = {"content-type": "application/msgpack"}

Upload = partial(Request, parts=(BODY,))
UPLOAD = Upload(headers=bearer(WRITE_KEY) | JSON)

CASES = {
    "an upload": UPLOAD,
    "with a charset": Upload(
        headers=bearer(WRITE_KEY) | {"content-type": "Application/JSON; charset=utf-8"}
    ),
    "chunked": Upload(headers=bearer(WRITE_KEY) | JSON, parts=(BODY[:9], BODY[9:]), chunked=True),
    "gzip": Upload(
        headers=bearer(WRITE_KEY) | JSON | {"content-encoding": "gzip"},
        parts=(gzip.compress(BODY),),
    ),
    "large, of a gateway": Upload(headers=bearer(GATEWAY_KEY) | MSGPACK, parts=(LARGE,)),
    "large, of a device": Upload(headers=bearer(WRITE_KEY) | MSGPACK, parts=(LARGE,)),
    "large and chunked, of a device": Upload(
        headers=bearer(WRITE_KEY) | MSGPACK, parts=(LARGE[:9], LARGE[9:]), chunked=True
    ),
    "no key": Upload(headers=JSON),
    "a wrong key": Upload(headers=bearer("x" * 20) | JSON),
    "a read token": Upload(headers=bearer(READ_TOKEN) | JSON),
    "no type": Upload(headers=bearer(WRITE_KEY)),
    "another encoding": Upload(headers=bearer(WRITE_KEY) | JSON | {"content-encoding": "br"}),
    "no upload": Upload(headers=bearer(WRITE_KEY) | JSON, parts=(b"{",)),
    "too old": Upload(headers=bearer(WRITE_KEY) | JSON, parts=(as_json(upload([], sealed=0)),)),
    "another method": Request(method="GET", parts=()),
    "another path": Request("/v1/report%C3%A9s", "GET", parts=()),
    "a query": Request("/v1/metrics/page/estimate?alpha=0.1", "GET", bearer(READ_TOKEN), ()),
    "a body where none is read": Upload("/v1/metrics", headers=bearer(READ_TOKEN)),
    "a question": Request("/v1/query", headers=bearer(READ_TOKEN) | JSON, parts=(QUESTION,)),
    "a question without a token": Request("/v1/query", headers=JSON, parts=(QUESTION,)),
    "a question with a key": Request("/v1/query", headers=bearer(WRITE_KEY) | JSON),
    "a log-out": Request("/logout", parts=(b"",)),
    "readiness": Request("/readyz", "GET"),
    "a page without a token": Request("/", "GET", parts=()),
    "liveness": Request("/livez", "GET"),
}


@pytest.mark.parametrize("request_", CASES.values(), ids=CASES)
def test_a_request_is_answered_as_flask_alone_would(
    app: Flask, client: FlaskClient, storage: MemoryStorage, request_: Request
) -> None:
    """Byte for byte, with the same headers, whichever way it came."""
    [found] = answers(app, request_)
    storage.destroy()
    expected = client.open(
        request_.path,
        method=request_.method,
        headers=request_.headers,
        data=b"".join(request_.parts),
    )

    assert found is not None
    assert (found.status, json_of(found.body)) == (expected.status_code, json_of(expected.data))
    lower = {name.lower(): value for name, value in expected.headers.items()}
    assert {**found.headers, "content-length": ""} == {**lower, "content-length": ""}


def json_of(body: bytes) -> object:
    return json.loads(body) if body.startswith(b"{") else body


def test_an_upload_that_comes_twice_is_a_duplicate(app: Flask) -> None:
    twice = [UPLOAD] * 2

    found = [json.loads(answer.body) for answer in answers(app, *twice) if answer]

    assert [answer["duplicate"] for answer in found] == [False, True]
    assert [answer["accepted"] for answer in found] == [1, 1]
    assert [answer["rejected"][0]["count"] for answer in found] == [1, 1]


def test_a_body_that_does_not_come_is_given_up(app: Flask) -> None:
    """And may be sent again: 408 is no refusal for good."""
    impatient = Front(app, body_s=0.0, sweep_s=0.01)

    [found] = answers(impatient, UPLOAD, stalls=True)

    assert found is not None
    assert (found.status, json.loads(found.body)["type"]) == (408, "urn:hearsay:problem:slow-body")


def test_who_has_gone_gets_no_answer_and_leaves_nothing(app: Flask, storage: MemoryStorage) -> None:
    assert answers(app, UPLOAD, gone=True) == [None]
    assert not storage.entries


def test_while_the_store_is_away_an_upload_is_refused_at_once(
    app: Flask, storage: MemoryStorage
) -> None:
    storage.failure = StorageUnavailableError("store: away")

    [found] = answers(app, UPLOAD)

    assert found is not None
    assert (found.status, json.loads(found.body)["type"]) == (
        503,
        "urn:hearsay:problem:store-unavailable",
    )
    assert 30 <= int(found.headers["retry-after"]) < 300
    assert b"away" not in found.body


def test_an_upload_is_refused_at_once_while_every_thread_waits_for_the_store(
    config: Config, storage: MemoryStorage
) -> None:
    """Law: a store that is known to be away delays no refusal, however many questions wait."""
    credentials, ticks = HangingCredentials(), [0.0]
    app = create_app(config, storage, lambda: NOON, credentials, lambda: ticks[0])

    async def ask() -> Response | None:
        loop, front = asyncio.get_running_loop(), Front(app)
        front.__rsgi_init__(loop)
        storage.failure = StorageUnavailableError("store: away")
        services_of(app).pressure.poll()
        credentials.answers.clear()
        ticks[0] += 10 * TRUST_S
        question = Request("/v1/metrics", "GET", bearer("a token of the store"), ())
        asked = [
            asyncio.create_task(front.__rsgi__(question.scope, Protocol(())))
            for _ in range(THREADS)
        ]
        await asyncio.sleep(0)
        protocol = Protocol((BODY,))
        request = UPLOAD
        try:
            await asyncio.wait_for(front.__rsgi__(request.scope, protocol), 5)
        finally:
            credentials.answers.set()
            await asyncio.gather(*asked)
            front.__rsgi_del__(loop)
        return protocol.response

    found = asyncio.run(ask())

    assert found is not None
    assert found.status == 503
