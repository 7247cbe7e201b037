"""The application as the server runs it: uploads on the event loop, all else by Flask in threads.

A body that trickles in costs a few kilobytes, no thread and no place among those that wait for one,
and is given up after a time.  Health is answered outside of these queues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeAlias

from flask import Flask
from msgspec import json
from werkzeug.exceptions import HTTPException
from werkzeug.test import create_environ

from client_sdk.core.limits import MAX_DEVICE_BODY
from client_sdk.wire.oblivious import PATH as OBLIVIOUS

from ...core.credentials import OPEN
from ...core.errors import (
    BodyTooLargeError,
    CapsuleError,
    OverloadedError,
    QueryError,
    SlowBodyError,
    TooFastError,
)
from ...intake.backpressure import Watch
from ...intake.capsules import MAX_CAPSULE, Opener
from ...operations.telemetry.activity import REFUSED, SharingThread
from ...serving.application import READING, Answer, Application, Headers, reading
from ...serving.bodies import SWEEP_S, Channel, Scope, length_of, require_size
from ..api.openapi import operation_of
from ..auth import PEER, is_page, require, scope_of
from ..cors import ASKED_METHOD, PREFLIGHT
from ..forms import LARGE_FORM, MOST_BYTES
from ..pages.privacy import PEOPLE
from ..pages.session import log_in
from ..problems import document_of
from ..services import CACHE, EVERY_ANSWER, NO_STORE, services_of
from .bridge import Places, call, environ_of, peer_of, small, unless_kept
from .groups import DEADLINE_S, Readiness, ServerGroups
from .oblivious import (
    OUTER,
    asks_for_list,
    head_of,
    open_capsule,
    seal_accepted,
    seal_refusal,
)
from .route import READY
from .upload import PATH, Admission, Head, Judgement, acknowledgement

# Reads a body: its announced length, the most bytes, and the seconds in which it must come.
Reader: TypeAlias = Callable[[int | None, int, float], Awaitable[bytes]]
THREADS: Final = 8  # requests that Flask answers at once; they wait for the store
WAITING: Final = 128  # requests that wait for one of those threads
_INLINE_BODY: Final = 4 * 1024  # bytes judged on the loop: 256 columns in 15 kB take milliseconds
_LARGE_THREADS: Final = 2  # large or compressed uploads decoded at once, outside of the loop
_MAX_LARGE: Final = 128 * 1024 * 1024  # bytes of large bodies on their way at once
BODY_S: Final = 10.0  # seconds in which a device's body must have arrived: 64 KiB at 7 kB/s
_LARGE_BODY_S: Final = 60.0  # seconds for a gateway's: 8 MiB at 140 kB/s
_FORM_S: Final = 2.0  # seconds for a form's: 4 KiB at 2 kB/s
_WRONG_S: Final = 1.0  # seconds until a wrong log-in is answered: one try a second a connection
MAX_WRONG: Final = 256  # wrong log-ins that wait for that at once; more are refused at once
_HEADERS: Final = small((*EVERY_ANSWER, (CACHE, NO_STORE)))
_JSON: Final = [("content-type", "application/json"), *_HEADERS]


class Front(Application):
    """One process's application, by the server's own protocol (RSGI)."""

    def __init__(
        self,
        app: Flask,
        body_s: float = BODY_S,
        sweep_s: float = SWEEP_S,
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
        routes = {("POST", PATH): self._take, **reading(READY, self._tell_ready)}
        if (opener := services_of(app).opener) is not None:
            routes["POST", OBLIVIOUS] = partial(self._carry, opener)
        super().__init__(routes, _HEADERS, sweep_s)
        self._body_s, self._wrong_s = body_s, wrong_s
        self._store_s = store_s
        self._form_s = min(_FORM_S, body_s)
        self._listens, self._beat = listens, beat
        self._app, self._shared = app, services_of(app)
        self._hot, self._keyring = self._shared.hot, self._shared.keyring
        self._flask = ThreadPoolExecutor(THREADS, "flask")
        self._large = ThreadPoolExecutor(_LARGE_THREADS, "large")
        self._ready = Readiness(self._shared.pressure)
        self._views = app.url_map.bind("")
        self._waiting = Places(self._keyring, self._shared.config.proxy, THREADS + WAITING)
        self._people = call(app.wsgi_app, create_environ(PEOPLE))  # it never changes
        self._wrong = 0  # log-ins whose answer waits
        self._large_size = 0  # bytes
        shared = self._shared
        self._watch = Watch(
            shared.pressure.poll,
            self._keyring.renew,
            shared.id_quota.exchange,
            shared.tally_quota.exchange,
            *([] if shared.questions is None else [shared.questions.exchange]),
        )
        self._sharing = SharingThread(self._shared.activity)

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the background tasks."""
        self._groups = ServerGroups(self._shared.storage, loop, self._hot.refusals)
        self._watch.start()
        self._sharing.start()
        super().__rsgi_init__(loop)
        loop.call_soon(self._listens)

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop the background tasks."""
        self._watch.stop()
        self._sharing.stop()
        self._groups.close()

    async def respond(self, scope: Scope, protocol: Channel) -> Answer:
        """Return what Flask answers, or what stands ready."""
        if headers := self._preflight(scope):
            return Answer(204, [*small(headers), *_HEADERS], b"")
        if self._is_for_people(scope):
            answer = unless_kept(self._people, scope)
            return answer._replace(headers=[*answer.headers, *self._shown_to(scope)])
        return await self._ask_flask(scope, protocol)

    def refuse(self, scope: Scope, error: Exception) -> Answer:
        """Return the problem document of *error*."""
        problem = document_of(error, self._shared.incidents)
        if scope.path in (PATH, OBLIVIOUS):
            self._shared.activity.refuse_upload(problem.slug)
        else:
            self._shared.activity.add(REFUSED, problem.slug)
        headers = [*small(problem.headers), *_HEADERS, *self._shown_to(scope)]
        return Answer(problem.status, headers, problem.body)

    def look(self, now: float) -> None:
        """Say that the loop runs, and give up what is late."""
        self._beat()
        super().look(now)
        self._groups.give_up(now - self._store_s)

    def _shown_to(self, scope: Scope) -> Headers:
        """Return the headers that let the page of another origin read the answer."""
        cors = self._shared.cors
        return small(cors.headers(scope.path, _origin_of(scope))) if cors.origins else []

    async def _tell_ready(self, scope: Scope, protocol: Channel) -> Answer:
        return Answer(200, _JSON, json.encode(await self._ready.look()) + b"\n")

    async def _take(self, scope: Scope, protocol: Channel) -> Answer:
        """Return the acknowledgement of an upload."""
        fields = scope.headers
        head = Head.of(fields.get, length_of(fields))
        text = await self._receive(head, partial(self._bodies.read, protocol))
        return Answer(202, [*_JSON, *self._shown_to(scope)], text)

    def _is_for_people(self, scope: Scope) -> bool:
        """Return whether it is a request without a credential for the public page."""
        is_read = scope.path == PEOPLE and scope.method in READING
        return is_read and not self._waiting.shows(scope)

    def _preflight(self, scope: Scope) -> Iterable[tuple[str, str]] | None:
        """Return the answer to a browser's preflight request; None if it is none."""
        if scope.method != PREFLIGHT or scope.headers.get(ASKED_METHOD.lower()) is None:
            return None
        return self._shared.cors.preflight(scope.path, _origin_of(scope))

    async def _carry(self, opener: Opener, scope: Scope, protocol: Channel) -> Answer:
        """Return the sealed answer to a capsule.  Raises CapsuleError, ProtocolClosed."""
        shared = self._shared
        try:
            message = await self._bodies.read(
                protocol, length_of(scope.headers), MAX_CAPSULE, self._body_s
            )
        except (SlowBodyError, BodyTooLargeError):
            raise CapsuleError from None
        capsule = open_capsule(opener, scope.headers.get("content-type") or "", message)
        try:
            request = capsule.read()
            if asks_for_list(request):
                text = await self._loop.run_in_executor(self._flask, shared.retired)
                sealed = seal_accepted(capsule, text, 200)
            else:
                text = await self._receive(head_of(request), partial(_held, request.content))
                sealed = seal_accepted(capsule, text)
        except Exception as error:  # noqa: BLE001  # answered, and logged where it is our failure
            sealed = seal_refusal(capsule, error, shared.incidents, shared.activity)
        return Answer(200, [*OUTER, *_HEADERS], sealed)

    async def _receive(self, head: Head, read: Reader) -> bytes:
        """Return the acknowledgement of an upload; see HotRoute for what it raises."""
        # A store that is slow to read keys must not hold up all requests.
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
        """Read and judge a body that takes milliseconds to decode, outside of the loop."""
        if self._large_size + size > _MAX_LARGE:
            raise OverloadedError("too many large uploads in progress; try again in a minute")
        self._large_size += size
        try:
            patience = _LARGE_BODY_S if size > MAX_DEVICE_BODY else self._body_s
            body = await read(head.length, admission.grant.limit, patience)
            return await self._loop.run_in_executor(self._large, self._hot.judge, admission, body)
        finally:
            self._large_size -= size

    async def _ask_flask(self, scope: Scope, protocol: Channel) -> Answer:
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
        return answer

    def _view(self, scope: Scope) -> Callable[..., Any] | None:
        """Return the view that Flask will call: many paths may lead to one."""
        try:
            endpoint, _ = self._views.match(scope.path, scope.method)
        except HTTPException:
            return None
        return self._app.view_functions[endpoint]

    async def _body(self, view: Callable[..., Any], scope: Scope, protocol: Channel) -> bytes:
        """Return the body of a request to *view*: b"" where it reads none.

        Raises: UnauthorizedError, ForbiddenError: its head alone says that it is refused.
                QueryError: a form without a length.
                SlowBodyError, BodyTooLargeError, ProtocolClosed.
        """
        if scope.method in READING:
            return b""
        operation = operation_of(view)
        is_form = operation is None  # a page's
        if scope.method == "OPTIONS" or (operation is not None and not operation.takes):
            return b""
        said = scope.headers.get
        needed = scope_of(view)
        header = said("authorization") or ""
        # For a page it may be in a cookie, or from a proxy, which may also send its own header.
        is_said = not is_page(view) or (header and self._shared.config.proxy is None)
        if needed not in (None, OPEN) and is_said:
            await self._require(str(needed), header, self._waiting.knows(scope))
        # Without a good credential a form is as small as at the log-in, which is open to all.
        of_form = LARGE_FORM if is_page(view) and self._waiting.knows(scope) else MOST_BYTES
        limit = of_form if is_form else MAX_DEVICE_BODY
        length = length_of(scope.headers)
        if is_form and length is None:  # the server cannot distinguish its end from a cut
            raise QueryError("body", "a form must say its length: send Content-Length")
        patience = self._form_s if is_form else self._body_s
        return await self._bodies.read(protocol, length, limit, patience)

    async def _require(self, needed: str, header: str, is_known: bool) -> None:
        """Check that *header* holds a token with the scope *needed*; see ``auth.require``."""
        if self._keyring.is_fresh:
            require(self._keyring, needed, header)
            return
        # A store that is slow to read tokens holds up questions only.
        with self._waiting.place(is_known):
            await self._loop.run_in_executor(self._flask, require, self._keyring, needed, header)


async def _held(body: bytes, _: int | None, limit: int, __: float) -> bytes:
    """Return a *body* that is here already.  Raises BodyTooLargeError."""
    require_size(len(body), limit)
    return body


def _origin_of(scope: Scope) -> list[str]:
    return scope.headers.get_all("origin")
