"""Over the server's own protocol all is as by Flask; no slow or wrong client holds another."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from itertools import count
from typing import Any, TypeVar
from urllib.parse import urlencode

import pytest
from flask import Flask
from flask.testing import FlaskClient

from client_sdk.core.limits import MAX_DEVICE_BODY
from client_sdk.wire.reports import Column
from collector.core.config import Config
from collector.core.credentials import GATEWAY, READ, VIEWER, Credential
from collector.core.errors import StorageUnavailableError
from collector.intake.keyring import TRUST_S
from collector.intake.memory_quota import daily_uploads
from collector.storage.values import SealedUpload
from collector.web import create_app
from collector.web.ingest.front import MAX_WRONG, THREADS, WAITING, Front
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
from tests.support.patience import PATIENCE
from tests.support.sites.rsgi import Protocol, Request, Response, answers
from tests.support.store.memory_credentials import HangingCredentials, MemoryCredentials
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


@pytest.mark.parametrize("hangs", ["existing", "append_many"])
def test_an_upload_has_one_deadline_for_all_that_the_store_is_asked(
    app: Flask, storage: MemoryStorage, hangs: str
) -> None:
    """Whichever of its questions a store does not answer; it is not asked the next one for it."""
    go, asked, tries = threading.Event(), [], 0

    def hang(some: Collection[object]) -> list[bool]:
        asked.append(len(some))
        assert go.wait(PATIENCE)
        raise StorageUnavailableError("store: no answer")

    setattr(storage, hangs, hang)

    while not asked:  # on a busy machine the time may be over before the store is asked
        tries += 1
        [found] = answers(Front(app, store_s=0.0, sweep_s=0.01), UPLOAD)
    go.set()

    assert found is not None
    problem = json.loads(found.body)["type"]
    assert (found.status, problem) == (503, "urn:hearsay:problem:store-unavailable")
    assert set(asked) == {1}
    assert len(asked) <= tries
    assert not storage.entries


@pytest.mark.parametrize("limit", ["quota", "share"])
def test_an_upload_that_is_stored_after_its_deadline_counts_to_its_key(
    config: Config, storage: MemoryStorage, limit: str
) -> None:
    """Once, whatever it was answered: its repeat is a duplicate, which counts nothing."""
    credentials, go, asked = MemoryCredentials(), threading.Event(), []
    credentials.add("key", Credential(GATEWAY, quota=1 if limit == "quota" else None))
    if limit == "share":
        storage.memory_limit = next(size for size in count(1) if daily_uploads(size) == 1)
    app = create_app(config, storage, lambda: NOON, credentials, lambda: 0.0)
    services_of(app).pressure.poll()
    sent, append_many = UPLOAD._replace(headers=bearer("key") | JSON), storage.append_many

    def hang(uploads: Sequence[SealedUpload]) -> list[bool]:
        asked.append(len(uploads))
        assert go.wait(PATIENCE)
        return append_many(uploads)

    storage.append_many = hang  # type: ignore[method-assign]  # a store that is slow

    async def steps(front: Front) -> int:
        while not asked:
            assert (await ask(front, sent)).status == 503
        go.set()
        for _ in range(2):  # the first may be admitted before the upload is counted
            async with asyncio.timeout(PATIENCE):
                while (repeat := await ask(front, sent)).status == 503:
                    pass
        return repeat.status

    assert beside(Front(app, store_s=0.0, sweep_s=0.01), steps) == 429
    assert len(storage.entries) == 1


def test_a_body_that_is_cut_off_leaves_nothing(app: Flask, storage: MemoryStorage) -> None:
    (answer,) = answers(app, UPLOAD, gone=True)

    assert answer is not None
    assert (answer.status, answer.body.partition(b":")[0]) == (400, b"the body is cut off")
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
            await asyncio.wait_for(front.__rsgi__(request.scope, protocol), PATIENCE)
        finally:
            credentials.answers.set()
            await asyncio.gather(*asked)
            front.__rsgi_del__(loop)
        return protocol.response

    found = asyncio.run(ask())

    assert found is not None
    assert found.status == 503


T = TypeVar("T")
FORM = {"content-type": "application/x-www-form-urlencoded"}
LOG_IN = Request("/login", headers=FORM, parts=(b"token=wrong",))
PLACES = THREADS + WAITING
UNKNOWN = PLACES // 2
AGES = 3_600.0  # seconds: longer than any test


def beside(front: Front, steps: Callable[[Front], Awaitable[T]]) -> T:
    """Return what *steps* find out about a front that runs."""

    async def run() -> T:
        loop = asyncio.get_running_loop()
        front.__rsgi_init__(loop)
        try:
            return await steps(front)
        finally:
            front.__rsgi_del__(loop)

    return asyncio.run(run())


async def ask(front: Front, request: Request, *, stalls: bool = False) -> Response:
    protocol = Protocol(request.parts, stalls=stalls)
    await front.__rsgi__(request.scope, protocol)
    assert protocol.response is not None
    return protocol.response


async def turns() -> None:
    """Let the loop run what is ready: a place is given or refused before anything else."""
    for _ in range(100):
        await asyncio.sleep(0)


UNAUTHENTICATED = {
    "no credential": Request("/v1/query", "GET"),
    "pages": Request("/", "GET", {"cookie": "hearsay=made-up"}),
    "made-up tokens": Request("/v1/metrics", "GET", bearer("made up")),
    "write keys": Request("/v1/metrics", "GET", bearer(WRITE_KEY)),
    "wrong log-ins": LOG_IN,
    "an expired token": Request("/v1/metrics", "GET", bearer("expired")),
    "a header of no proxy": Request("/", "GET", {"x-forwarded-user": "ada"}),
}


@pytest.mark.parametrize("request_", UNAUTHENTICATED.values(), ids=UNAUTHENTICATED)
def test_requests_without_a_credential_leave_half_of_the_places(
    app: Flask, credentials: MemoryCredentials, monkeypatch: pytest.MonkeyPatch, request_: Request
) -> None:
    """However many come, and whatever they show."""
    credentials.add("expired", Credential(READ, role=VIEWER, expires=TODAY))
    goes_on, inner = threading.Event(), app.wsgi_app

    def slow(environ: Any, start: Any) -> Any:
        goes_on.wait()
        return inner(environ, start)

    front = Front(app)
    monkeypatch.setattr(app, "wsgi_app", slow)

    async def steps(front: Front) -> tuple[list[int], list[int]]:
        services_of(app).keyring.renew()
        many = [asyncio.ensure_future(ask(front, request_)) for _ in range(2 * PLACES)]
        await turns()
        refused = [one.result().status for one in many if one.done()]
        question = Request("/v1/metrics", "GET", bearer(READ_TOKEN))
        questions = [asyncio.ensure_future(ask(front, question)) for _ in range(PLACES - UNKNOWN)]
        await turns()
        goes_on.set()
        found = [answer.status for answer in await asyncio.gather(*questions)]
        for one in many:
            one.cancel()
        await asyncio.gather(*many, return_exceptions=True)
        return refused, found

    refused, found = beside(front, steps)

    assert refused == [503] * (2 * PLACES - UNKNOWN)
    assert found == [200] * (PLACES - UNKNOWN)


def test_the_page_for_the_people_measured_is_made_once(
    app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And takes no place; who shows a credential gets it with the navigation."""
    front, asked = Front(app), list[str]()
    inner = app.wsgi_app

    def counted(environ: Any, start: Any) -> Any:
        asked.append(environ["PATH_INFO"])
        return inner(environ, start)

    tag = app.test_client().get("/privacy/people").headers["etag"]
    monkeypatch.setattr(app, "wsgi_app", counted)
    plain = Request("/privacy/people", "GET", {"accept": "text/html"})

    page, head, kept, own = answers(
        front,
        plain,
        plain._replace(method="HEAD"),
        plain._replace(headers={"if-none-match": f'"other", {tag}'}),
        plain._replace(headers=bearer(READ_TOKEN)),
    )

    assert page is not None
    assert (page.status, b"What is asked of you" in page.body) == (200, True)
    assert head == page._replace(body=b"")
    assert (kept and kept.status, kept and kept.body) == (304, b"")
    assert (own and own.status, asked) == (200, ["/privacy/people"])
    assert "no-cache" in page.headers["cache-control"]
    assert "Cookie" in page.headers["vary"]


@pytest.mark.parametrize("path", ["/login", "/logout", "/v1/query"])
def test_bodies_that_do_not_come_take_no_place_from_questions(app: Flask, path: str) -> None:
    """Twice as many as there are places, and the next question is answered."""

    async def steps(front: Front) -> tuple[int, int]:
        slow = Request(path, headers=bearer(READ_TOKEN) | FORM, parts=(b"token=",))
        bodies = [Protocol(slow.parts, stalls=True) for _ in range(2 * PLACES)]
        held = [asyncio.ensure_future(front.__rsgi__(slow.scope, body)) for body in bodies]
        while not all(body.stalled or body.response for body in bodies):
            await asyncio.sleep(0)
        waiting = sum(not one.done() for one in held)
        answer = await ask(front, Request("/v1/metrics", "GET", bearer(READ_TOKEN)))
        for one in held:
            one.cancel()
        await asyncio.gather(*held, return_exceptions=True)
        return waiting, answer.status

    assert beside(Front(app), steps) == (2 * PLACES, 200)


AT_ONCE = {
    "no token": (Request("/v1/query"), 401),
    "a token that is not good": (Request("/v1/query", headers=bearer("no such token")), 401),
    "a form longer than a token": (
        Request("/login", headers=FORM | {"content-length": "4097"}),
        413,
    ),
    "a large form of a page without a good token": (
        Request("/pin", headers=FORM | {"content-length": "4097", "cookie": "hearsay=no-good"}),
        413,
    ),
    "a route that reads no body": (Request("/v1/metrics", headers=bearer(READ_TOKEN)), 405),
    "a path that is encoded twice": (LOG_IN._replace(path="/%256Cogin"), 404),
    "and each sign of it": (LOG_IN._replace(path="/%25%36Cogin"), 404),
}


@pytest.mark.parametrize(("request_", "status"), AT_ONCE.values(), ids=AT_ONCE)
def test_what_its_head_refuses_waits_for_no_body(
    app: Flask, request_: Request, status: int
) -> None:
    [found] = answers(app, request_, stalls=True)

    assert found is not None
    assert found.status == status


def test_a_form_of_a_page_may_be_large_with_a_good_token(app: Flask) -> None:
    """The form of a board is, and its sender is known before it is read."""
    form = urlencode({"q": QUESTION.decode().ljust(8_000), "title": "t", "board": "questions"})
    known = {"cookie": f"hearsay={READ_TOKEN}", "sec-fetch-site": "same-origin"}

    [found] = answers(app, Request("/pin", headers=FORM | known, parts=(form.encode(),)))

    assert found is not None
    assert found.status == 303


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_health_is_answered_while_every_place_is_taken(
    config: Config, storage: MemoryStorage, path: str
) -> None:
    """By questions that wait for a store which does not tell whose token they hold."""
    credentials, ticks = HangingCredentials(), [0.0]
    app = create_app(config, storage, lambda: NOON, credentials, lambda: ticks[0])
    question = Request("/v1/metrics", "GET", bearer("a token of the store"))

    async def steps(front: Front) -> tuple[int, int]:
        credentials.answers.clear()
        ticks[0] += 10 * TRUST_S
        waiting = [asyncio.ensure_future(ask(front, question)) for _ in range(PLACES)]
        await asyncio.sleep(0)
        try:
            refused = await ask(front, question)
            healthy = await ask(front, Request(path, "GET"))
        finally:
            credentials.answers.set()
            await asyncio.gather(*waiting)
        return refused.status, healthy.status

    assert beside(Front(app), steps) == (503, 200)


def test_readiness_tells_a_backlog_that_was_read_after_the_question(
    app: Flask, storage: MemoryStorage
) -> None:
    """However many ask at once: nobody is told of a look that began before."""

    async def steps(front: Front) -> list[int]:
        many = [Request("/readyz", "GET")] * 50
        found = await asyncio.gather(*(ask(front, one) for one in many))
        return [json.loads(answer.body)["backlog"] for answer in found]

    assert beside(Front(app), steps) == [0] * 50


def test_a_store_that_fails_is_not_ready(app: Flask, storage: MemoryStorage) -> None:
    storage.failure = StorageUnavailableError("store: away")

    [found] = answers(app, Request("/readyz", "GET"))

    assert found is not None
    assert found.status == 503
    assert int(found.headers["retry-after"]) > 0


@pytest.mark.parametrize("path", ["/login", "/%6Cogin", "//login", "/%2Flogin"])
def test_wrong_log_ins_wait_up_to_a_number_and_a_right_one_never(
    app: Flask, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a connection has one try a second, a process no more than that number: by any path."""
    log_in, calls, application = LOG_IN._replace(path=path), list[object](), app.wsgi_app

    def counted(environ: Any, start: Any) -> Any:
        calls.append(path)
        return application(environ, start)

    async def steps(front: Front) -> tuple[int, list[int], int]:
        tried: list[asyncio.Future[Response]] = []
        while not any(one.done() for one in tried):
            tried.append(asyncio.ensure_future(ask(front, log_in)))
            while len(calls) < len(tried) and not tried[-1].done():
                await asyncio.sleep(0.0005)
        answered = [one.result().status for one in tried if one.done()]
        right = LOG_IN._replace(path=path, parts=(b"token=" + READ_TOKEN.encode(),))
        good = await ask(front, right)
        for one in tried:
            one.cancel()
        await asyncio.gather(*tried, return_exceptions=True)
        return len(tried), answered, good.status

    monkeypatch.setattr(app, "wsgi_app", counted)
    tried, answered, good = beside(Front(app, wrong_s=AGES), steps)

    assert good == 303
    assert MAX_WRONG < tried <= MAX_WRONG + PLACES
    assert set(answered) == {429}


def test_a_good_log_in_does_not_wait(app: Flask) -> None:
    good = Request("/login", headers=FORM, parts=(b"token=" + READ_TOKEN.encode(),))

    [found] = answers(Front(app, wrong_s=AGES), good)

    assert found is not None
    assert found.status == 303
