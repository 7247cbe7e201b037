"""What comes over the server's own protocol is answered as by Flask; slow bodies hold nobody."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
from flask import Flask
from flask.testing import FlaskClient
from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]  # its stub leaves it out

from client_sdk.limits import MAX_DEVICE_BODY
from client_sdk.report import Column
from collector.config import Config
from collector.errors import StorageUnavailableError
from collector.keyring import TRUST_S
from collector.web import create_app
from collector.web.front import THREADS, Front
from collector.web.services import services_of
from tests.support.memory_credentials import MemoryCredentials
from tests.support.memory_storage import MemoryStorage
from tests.support.uploads import (
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

PAGE = registry().metric("page")
COLUMN = Column(PAGE.digest, TODAY, b"\0\1\2\7")
BODY = as_json(upload([COLUMN]))
LARGE = as_msgpack([Column(PAGE.digest, TODAY, bytes(MAX_DEVICE_BODY + 1))])
JSON = {"content-type": "application/json"}
MSGPACK = {"content-type": "application/msgpack"}


class Headers(dict[str, str]):
    """As the server gives them: lower-case names."""

    def get_all(self, name: str) -> list[str]:
        return [self[name]]


class Request(NamedTuple):
    """A request as a test writes it; ``parts`` is how its body comes."""

    path: str = "/v1/reports"
    method: str = "POST"
    headers: dict[str, str] = {}  # noqa: RUF012  # never changed
    parts: tuple[bytes, ...] = (BODY,)
    chunked: bool = False

    @property
    def scope(self) -> Any:
        length = {} if self.chunked else {"content-length": str(len(b"".join(self.parts)))}
        said = {"host": "localhost", **length, **self.headers}
        path, _, query = self.path.partition("?")
        fields = {
            "path": path,
            "query_string": query,
            "method": self.method,
            "headers": Headers({name.lower(): value for name, value in said.items()}),
            "server": "127.0.0.1:8000",
            "scheme": "http",
            "http_version": "1.1",
        }
        return type("Scope", (), fields)()


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Protocol:
    """The server's end of one request."""

    def __init__(self, parts: tuple[bytes, ...], *, stalls: bool = False, gone: bool = False):
        self._parts, self._stalls, self._gone = parts, stalls, gone
        self.response: Response | None = None

    async def __call__(self) -> bytes:
        await asyncio.sleep(0)
        if self._stalls:
            await asyncio.Event().wait()
        if self._gone:
            raise ProtocolClosed
        return b"".join(self._parts)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            await asyncio.sleep(0)
            yield part

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        assert len(dict(headers)) == len(headers)
        self.response = Response(status, dict(headers), body)

    def response_str(self, status: int, headers: list[tuple[str, str]], body: str) -> None:
        self.response_bytes(status, headers, body.encode())


def answers(app: Flask | Front, *requests: Request, **how: bool) -> list[Response | None]:
    """Return what *app* answers to *requests*, sent one after another."""

    async def ask() -> list[Response | None]:
        loop, found = asyncio.get_running_loop(), []
        front = Front(app) if isinstance(app, Flask) else app
        front.__rsgi_init__(loop)
        for request in requests:
            protocol = Protocol(request.parts, **how)
            await asyncio.create_task(front.__rsgi__(request.scope, protocol))
            found.append(protocol.response)
        front.__rsgi_del__(loop)
        return found

    return asyncio.run(ask())


CASES = {
    "an upload": Request(headers=bearer(WRITE_KEY) | JSON),
    "with a charset": Request(
        headers=bearer(WRITE_KEY) | {"content-type": "Application/JSON; charset=utf-8"}
    ),
    "chunked": Request(headers=bearer(WRITE_KEY) | JSON, parts=(BODY[:9], BODY[9:]), chunked=True),
    "gzip": Request(
        headers=bearer(WRITE_KEY) | JSON | {"content-encoding": "gzip"},
        parts=(gzip.compress(BODY),),
    ),
    "large, of a gateway": Request(headers=bearer(GATEWAY_KEY) | MSGPACK, parts=(LARGE,)),
    "large, of a device": Request(headers=bearer(WRITE_KEY) | MSGPACK, parts=(LARGE,)),
    "large and chunked, of a device": Request(
        headers=bearer(WRITE_KEY) | MSGPACK, parts=(LARGE[:9], LARGE[9:]), chunked=True
    ),
    "no key": Request(headers=JSON),
    "a wrong key": Request(headers=bearer("x" * 20) | JSON),
    "a read token": Request(headers=bearer(READ_TOKEN) | JSON),
    "no type": Request(headers=bearer(WRITE_KEY)),
    "another encoding": Request(headers=bearer(WRITE_KEY) | JSON | {"content-encoding": "br"}),
    "no upload": Request(headers=bearer(WRITE_KEY) | JSON, parts=(b"{",)),
    "too old": Request(headers=bearer(WRITE_KEY) | JSON, parts=(as_json(upload([], sealed=0)),)),
    "another method": Request(method="GET", parts=()),
    "another path": Request("/v1/report%C3%A9s", "GET", parts=()),
    "a query": Request("/v1/metrics/page/estimate?alpha=0.1", "GET", bearer(READ_TOKEN), ()),
    "a body where none is read": Request("/v1/metrics", headers=bearer(READ_TOKEN)),
    "a page without a token": Request("/", "GET", parts=()),
    "liveness": Request("/livez", "HEAD", parts=()),
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
    twice = [Request(headers=bearer(WRITE_KEY) | JSON)] * 2

    found = [json.loads(answer.body) for answer in answers(app, *twice) if answer]

    assert [answer["duplicate"] for answer in found] == [False, True]
    assert [answer["accepted"] for answer in found] == [3, 3]
    assert [answer["rejected"][0]["count"] for answer in found] == [1, 1]


def test_a_body_that_does_not_come_is_given_up(app: Flask) -> None:
    """And may be sent again: 408 is no refusal for good."""
    impatient = Front(app, body_s=0.0, sweep_s=0.01)

    [found] = answers(impatient, Request(headers=bearer(WRITE_KEY) | JSON), stalls=True)

    assert found is not None
    assert (found.status, json.loads(found.body)["type"]) == (408, "urn:hearsay:problem:slow-body")


def test_who_has_gone_gets_no_answer_and_leaves_nothing(app: Flask, storage: MemoryStorage) -> None:
    assert answers(app, Request(headers=bearer(WRITE_KEY) | JSON), gone=True) == [None]
    assert not storage.entries


def test_while_the_store_is_away_an_upload_is_refused_at_once(
    app: Flask, storage: MemoryStorage
) -> None:
    storage.failure = StorageUnavailableError("store: away")

    [found] = answers(app, Request(headers=bearer(WRITE_KEY) | JSON))

    assert found is not None
    assert (found.status, json.loads(found.body)["type"]) == (
        503,
        "urn:hearsay:problem:store-unavailable",
    )
    assert 30 <= int(found.headers["retry-after"]) < 300
    assert b"away" not in found.body


class HangingCredentials(MemoryCredentials):
    """A store that stops to answer when it is told to, until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()
        self.answers.set()

    def records(self) -> dict[bytes, bytes]:
        self.answers.wait()
        return super().records()


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
        request = Request(headers=bearer(WRITE_KEY) | JSON)
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
