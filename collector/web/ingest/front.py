"""The application as the server runs it: uploads on the event loop, all else by Flask in threads.

A body that trickles in costs a few kilobytes, no thread and no place among those that wait for one,
and is given up after a time.  Health is answered beside all of that.

The server has parsed the head: it refuses what is no HTTP, and closes the connection after a length
beside a transfer coding, of which the coding counts.  ``require_plain`` refuses a head that a proxy
in front may have read as another request than the collector would.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeAlias

from flask import Flask
from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]  # its stub leaves it out
from msgspec import json
from werkzeug.exceptions import HTTPException
from werkzeug.test import create_environ

from client_sdk.core.limits import MAX_DEVICE_BODY
from client_sdk.wire.oblivious import PATH as OBLIVIOUS

from ...core.connections import require_plain
from ...core.credentials import OPEN
from ...core.errors import (
    BodyTooLargeError,
    CapsuleError,
    MalformedHeadError,
    OverloadedError,
    QueryError,
    SlowBodyError,
    TooFastError,
)
from ...intake.backpressure import Watch
from ...intake.capsules import MAX_CAPSULE, Opener
from ...operations.telemetry.activity import REFUSED, SharingThread
from ..api.openapi import operation_of
from ..auth import PEER, is_page, require, scope_of
from ..cors import ASKED_METHOD, PREFLIGHT, Headers
from ..forms import FORM, MOST_BYTES
from ..pages.privacy import PEOPLE
from ..pages.session import log_in
from ..problems import document_of
from ..services import CACHE, EVERY_ANSWER, NO_STORE, services_of
from .bridge import Answer, Places, call, environ_of, peer_of
from .groups import DEADLINE_S, Readiness, ServerGroups
from .oblivious import (
    OUTER,
    asks_for_list,
    head_of,
    open_capsule,
    require_length,
    seal_accepted,
    seal_refusal,
)
from .route import LIVE, READY
from .upload import PATH, Admission, Head, Judgement, acknowledgement, require_size

# Reads a body: its announced length, the most bytes, and the seconds in which it must come.
Reader: TypeAlias = Callable[[int | None, int, float], Awaitable[bytes]]
THREADS: Final = 8  # requests that Flask answers at once; they wait for the store
WAITING: Final = 128  # requests that wait for one of those threads
_INLINE_BODY: Final = 4 * 1024  # bytes judged on the loop: 256 columns in 15 kB take milliseconds
_LARGE_THREADS: Final = 2  # large or compressed uploads decoded at once, beside the loop
_MAX_LARGE: Final = 128 * 1024 * 1024  # bytes of large bodies on their way at once
BODY_S: Final = 10.0  # seconds in which a device's body must have arrived: 64 KiB at 7 kB/s
_LARGE_BODY_S: Final = 60.0  # seconds for a gateway's: 8 MiB at 140 kB/s
_FORM_S: Final = 2.0  # seconds for that of a form: 4 KiB at 2 kB/s
_SWEEP_S: Final = 0.5  # seconds between two looks for bodies that are late
_WRONG_S: Final = 1.0  # seconds until a wrong log-in is answered: one try a second a connection
MAX_WRONG: Final = 256  # wrong log-ins that wait for that at once; more are refused at once
_HEADERS: Final = [(name.lower(), value) for name, value in (*EVERY_ANSWER, (CACHE, NO_STORE))]
_ACCEPTED: Final = [("content-type", "application/json"), *_HEADERS]
_PLAIN: Final = [("content-type", "text/plain; charset=utf-8"), *_HEADERS]
_READING: Final = ("GET", "HEAD")
_CUT: Final = "the body is cut off: send all that its length says\n"


class Front:
    """One process's application, by the server's own protocol (RSGI)."""

    def __init__(
        self,
        app: Flask,
        body_s: float = BODY_S,
        sweep_s: float = _SWEEP_S,
        wrong_s: float = _WRONG_S,
        store_s: float = DEADLINE_S,
        listens: Callable[[], None] = lambda: None,
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve *app*, and its uploads without it.

        Args: body_s: seconds in which a device's body must have come.  sweep_s: seconds between
              two looks for those that have not.  wrong_s: seconds until a wrong log-in is answered.
              store_s: seconds for all that an upload asks of the store.
              listens: called once the server listens.  beat: called as long as the loop runs.
        """
        self._body_s, self._sweep_s, self._wrong_s = body_s, sweep_s, wrong_s
        self._store_s = store_s
        self._form_s = min(_FORM_S, body_s)
        self._listens, self._beat = listens, beat
        self._app, self._shared = app, services_of(app)
        self._hot, self._keyring = self._shared.hot, self._shared.keyring
        self._flask = ThreadPoolExecutor(THREADS, "flask")
        self._large = ThreadPoolExecutor(_LARGE_THREADS, "large")
        self._ready = Readiness(self._shared.pressure)
        self._routes = app.url_map.bind("")
        self._waiting = Places(self._keyring, self._shared.config.proxy, THREADS + WAITING)
        self._people = call(app.wsgi_app, create_environ(PEOPLE))  # it never changes
        self._wrong = 0  # log-ins whose answer waits
        self._large_size = 0  # bytes
        self._reading: dict[asyncio.Task[Any], float] = {}  # until when a body must have come
        self._late: set[asyncio.Task[Any]] = set()
        shared = self._shared
        self._watch = Watch(
            shared.pressure.poll,
            self._keyring.renew,
            shared.shares.exchange,
            shared.growth.exchange,
            *([] if shared.questions is None else [shared.questions.exchange]),
        )
        self._sharing = SharingThread(self._shared.activity)

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start what runs beside the requests."""
        self._loop = loop
        self._groups = ServerGroups(self._shared.storage, loop, self._hot.refusals)
        self._watch.start()
        self._sharing.start()
        self._sweep()
        loop.call_soon(self._listens)

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop what runs beside the requests."""
        self._watch.stop()
        self._sharing.stop()
        self._groups.close()

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        """Answer one request."""
        more: list[tuple[str, str]] = []  # headers that let the page of another origin read it
        try:
            require_plain(scope)
            more = [*map(_lower, self._shared.cors.headers(scope.path, _origin_of(scope)))]
            if scope.path == PATH and scope.method == "POST":
                head = Head.of(scope.headers.get, _length_of(scope))
                answer = await self._receive(head, partial(self._read, protocol))
                protocol.response_bytes(202, [*_ACCEPTED, *more], answer)
            elif scope.path == OBLIVIOUS and scope.method == "POST" and self._shared.opener:
                answer = await self._carried(self._shared.opener, scope, protocol)
                protocol.response_bytes(200, [*OUTER, *_HEADERS], answer)
            elif headers := self._preflight(scope):
                protocol.response_bytes(204, [*map(_lower, headers), *_HEADERS], b"")
            elif self._is_for_people(scope):
                status, headers, page = self._people.unless_kept(scope)
                protocol.response_bytes(status, [*map(_lower, headers), *more], page)
            elif scope.path == LIVE and scope.method in _READING:
                protocol.response_bytes(200, _ACCEPTED, b'{"status":"ok"}\n')
            elif scope.path == READY and scope.method in _READING:
                said = json.encode(await self._ready.look())
                protocol.response_bytes(200, _ACCEPTED, said + b"\n")
            else:
                await self._ask_flask(scope, protocol)
        except ProtocolClosed:  # who asked has gone, or no longer sends; a device sends again
            protocol.response_str(
                400, _PLAIN, "the body is cut off: send all that its length says\n"
            )
        except MalformedHeadError as error:
            # No problem document: by another way the same upload is good, so a device keeps it.
            protocol.response_str(400, _PLAIN, f"{error}\n")
        except Exception as error:  # noqa: BLE001  # answered, and logged where it is our failure
            problem = document_of(error, self._shared.incidents)
            self._shared.activity.add(REFUSED, problem.slug)
            protocol.response_str(
                problem.status, [*map(_lower, problem.headers), *_HEADERS, *more], problem.body
            )

    def _is_for_people(self, scope: Any) -> bool:
        """Return whether somebody who shows no credential asks for the page for all."""
        is_read = scope.path == PEOPLE and scope.method in _READING
        return is_read and not self._waiting.shows(scope)

    def _preflight(self, scope: Any) -> Headers | None:
        """Return what a browser is answered that asks before it sends; None if it does not."""
        if scope.method != PREFLIGHT or scope.headers.get(ASKED_METHOD.lower()) is None:
            return None
        return self._shared.cors.preflight(scope.path, _origin_of(scope))

    async def _carried(self, opener: Opener, scope: Any, protocol: Any) -> bytes:
        """Return the sealed answer to a capsule.  Raises CapsuleError, ProtocolClosed."""
        length = _length_of(scope)
        require_length(length)
        try:
            message = await self._read(protocol, length, MAX_CAPSULE, self._body_s)
        except (SlowBodyError, BodyTooLargeError):
            raise CapsuleError from None
        capsule = open_capsule(opener, scope.headers.get("content-type") or "", message)
        try:
            request = capsule.read()
            if asks_for_list(request):
                text = await self._loop.run_in_executor(self._flask, self._shared.retired)
                return seal_accepted(capsule, text, 200)
            answer = await self._receive(head_of(request), partial(_held, request.content))
        except Exception as error:  # noqa: BLE001  # answered, and logged where it is our failure
            shared = self._shared
            return seal_refusal(capsule, error, shared.incidents, shared.activity)
        return seal_accepted(capsule, answer)

    async def _receive(self, head: Head, read: Reader) -> bytes:
        """Return the acknowledgement of an upload; see HotRoute for what it raises."""
        # A store that is slow to tell of keys must not hold up everybody.
        if self._keyring.is_fresh:
            admission = self._hot.admit(head)
        else:
            self._shared.pressure.require_room()  # all threads may wait for a store that is away
            admission = await self._loop.run_in_executor(self._flask, self._hot.admit, head)
        limit = admission.grant.limit
        size = limit if head.length is None or admission.compressed else head.length
        if size > MAX_DEVICE_BODY or admission.compressed:  # 500 bytes may be 260,000 payloads
            judgement = await self._judge_large(admission, head, read, size)
        else:
            body = await read(head.length, limit, self._body_s)
            judgement = (
                self._hot.judge(admission, body)
                if len(body) <= _INLINE_BODY
                else await self._loop.run_in_executor(self._large, self._hot.judge, admission, body)
            )
        count = partial(self._hot.count, admission, judgement)
        first = judgement.sealed is None or await self._groups.append(
            judgement.sealed, self._hot.beginning(admission, judgement), count
        )
        if judgement.sealed is None:
            count(first)
        return acknowledgement(judgement.verdict, first)

    async def _judge_large(
        self, admission: Admission, head: Head, read: Reader, size: int
    ) -> Judgement:
        """Read and judge a body that takes milliseconds to decode, beside the loop."""
        if self._large_size + size > _MAX_LARGE:
            raise OverloadedError("large uploads: as many are on their way as fit in memory")
        self._large_size += size
        try:
            patience = _LARGE_BODY_S if size > MAX_DEVICE_BODY else self._body_s
            body = await read(head.length, admission.grant.limit, patience)
            return await self._loop.run_in_executor(self._large, self._hot.judge, admission, body)
        finally:
            self._large_size -= size

    async def _read(self, protocol: Any, length: int | None, limit: int, patience: float) -> bytes:
        """Return the body.

        Without a *length* a body that is cut off ends as a whole one does: it must be of a form
        that no part of it has.

        Raises: SlowBodyError, BodyTooLargeError, ProtocolClosed: less than *length* came.
        """
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # for the type checker: the server makes a task
        self._reading[task] = self._loop.time() + patience
        try:
            if length is not None:
                whole: bytes = await protocol()
                return whole
            parts, size = [], 0
            async for part in protocol:
                size += len(part)
                require_size(size, limit)
                parts.append(part)
            return b"".join(parts)
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            task.uncancel()
            raise SlowBodyError(f"the body must arrive within {patience:.0f} s") from None
        finally:
            del self._reading[task]
            self._late.discard(task)

    def _sweep(self) -> None:
        """Give up what is late.  One timer for all: one each costs as much again."""
        self._beat()
        now = self._loop.time()
        for task in [task for task, until in self._reading.items() if until < now]:
            self._late.add(task)
            task.cancel()
        self._groups.give_up(now - self._store_s)
        self._loop.call_later(self._sweep_s, self._sweep)

    async def _ask_flask(self, scope: Any, protocol: Any) -> None:
        view = self._view(scope)
        body = b"" if view is None else await self._body(view, scope, protocol)
        is_log_in = view is log_in and scope.method == "POST"
        is_known = self._waiting.is_good(body) if is_log_in else self._waiting.knows(scope)
        if is_log_in and not is_known and self._wrong >= MAX_WRONG:
            raise TooFastError("log-ins: too many wrong tokens are being tried")
        with self._waiting.place(is_known):
            environ = environ_of(scope, body)
            if self._shared.config.proxy is not None:  # addresses are looked at for nothing else
                environ[PEER] = peer_of(scope)
            answer: Answer = await self._loop.run_in_executor(
                self._flask, call, self._app.wsgi_app, environ
            )
        if is_log_in and answer.status == 401:
            self._wrong += 1
            try:
                await asyncio.sleep(self._wrong_s)
            finally:
                self._wrong -= 1
        protocol.response_bytes(answer.status, [*map(_lower, answer.headers)], answer.body)

    def _view(self, scope: Any) -> Callable[..., Any] | None:
        """Return what Flask will ask: its routes decide, as many paths lead to one of them."""
        try:
            endpoint, _ = self._routes.match(scope.path, scope.method)
        except HTTPException:
            return None
        return self._app.view_functions[endpoint]

    async def _body(self, view: Callable[..., Any], scope: Any, protocol: Any) -> bytes:
        """Return the body of a request to *view*: b"" where it reads none.

        Raises: UnauthorizedError, ForbiddenError: its head alone says that it is refused.
                QueryError: a form without a length.
                SlowBodyError, BodyTooLargeError, ProtocolClosed.
        """
        if scope.method in _READING:
            return b""
        operation = operation_of(view)
        if scope.method == "OPTIONS" or operation is None or not operation.takes:
            return b""
        said = scope.headers.get
        needed = scope_of(view)
        header = said("authorization") or ""
        # Of a page a cookie may say it, or a proxy, which may send a header of its own beside it.
        is_said = not is_page(view) or (header and self._shared.config.proxy is None)
        if needed not in (None, OPEN) and is_said:
            await self._require(str(needed), header, self._waiting.knows(scope))
        is_form = FORM in operation.takes
        limit = operation.most_bytes or (MOST_BYTES if is_form else MAX_DEVICE_BODY)
        length = _length_of(scope)
        if is_form and length is None:  # the server does not tell its end from a cut
            raise QueryError("body", "a form must say its length: send Content-Length")
        require_size(length or 0, limit)
        return await self._read(protocol, length, limit, self._form_s if is_form else self._body_s)

    async def _require(self, needed: str, header: str, is_known: bool) -> None:
        """Return if *header* holds a token with the scope *needed*; see ``auth.require``."""
        if self._keyring.is_fresh:
            require(self._keyring, needed, header)
            return
        # A store that is slow to tell of tokens holds up questions only.
        with self._waiting.place(is_known):
            await self._loop.run_in_executor(self._flask, require, self._keyring, needed, header)


async def _held(body: bytes, _: int | None, limit: int, __: float) -> bytes:
    """Return a *body* that is here already.  Raises BodyTooLargeError."""
    require_size(len(body), limit)
    return body


def _length_of(scope: Any) -> int | None:
    length = scope.headers.get("content-length")
    return None if length is None else int(length)  # digits: the server has checked it


def _origin_of(scope: Any) -> list[str]:
    origins: list[str] = scope.headers.get_all("origin")
    return origins


def _lower(header: tuple[str, str]) -> tuple[str, str]:
    return header[0].lower(), header[1]
