"""The application as the server runs it: uploads on the event loop, all else by Flask in threads.

A body that trickles in costs a few kilobytes and no thread, and is given up after a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from flask import Flask
from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]  # its stub leaves it out

from client_sdk.limits import MAX_DEVICE_BODY

from ..errors import OverloadedError, SlowBodyError
from ..pressure import Watch
from ..telemetry.activity import REFUSED, Sharing
from .bodies import require_size
from .bridge import call, environ_of
from .groups import Groups
from .headers import CACHE, EVERY_ANSWER, NO_STORE
from .hot import PATH, Admitted, Head, Judged
from .problems import document_of
from .services import services_of

THREADS: Final = 8  # requests that Flask answers at once; they wait for the store
WAITING: Final = 128  # requests that wait for one of those threads
INLINE_BODY: Final = 4 * 1024  # bytes judged on the loop: 256 columns in 15 kB take milliseconds
LARGE_THREADS: Final = 2  # large or compressed uploads decoded at once, beside the loop
MAX_LARGE: Final = 128 * 1024 * 1024  # bytes of large bodies on their way at once
BODY_S: Final = 10.0  # seconds in which a device's body must have arrived: 64 KiB at 7 kB/s
LARGE_BODY_S: Final = 60.0  # and a gateway's: 8 MiB at 140 kB/s
SWEEP_S: Final = 0.5  # seconds between two looks for bodies that are late
_HEADERS: Final = [(name.lower(), value) for name, value in (*EVERY_ANSWER, (CACHE, NO_STORE))]
_ACCEPTED: Final = [("content-type", "application/json"), *_HEADERS]
_FLASK_BODY: Final = MAX_DEVICE_BODY  # bytes; a question has at most as many

_log = logging.getLogger("hearsay.web")


class Front:
    """One process's application, by the server's own protocol (RSGI)."""

    def __init__(self, app: Flask, body_s: float = BODY_S, sweep_s: float = SWEEP_S) -> None:
        """Serve *app*, and its uploads without it.

        Args: body_s: seconds in which a device's body must have come.  sweep_s: seconds between
              two looks for those that have not.
        """
        self._body_s, self._sweep_s = body_s, sweep_s
        self._app, self._shared = app, services_of(app)
        self._hot, self._keyring = self._shared.hot, self._shared.keyring
        self._flask = ThreadPoolExecutor(THREADS, "flask")
        self._large = ThreadPoolExecutor(LARGE_THREADS, "large")
        self._in_flask = 0  # requests
        self._large_size = 0  # bytes
        self._reading: dict[asyncio.Task[Any], float] = {}  # until when a body must have come
        self._late: set[asyncio.Task[Any]] = set()
        self._watch = Watch(self._shared.pressure.poll, self._keyring.renew)
        self._sharing = Sharing(self._shared.activity)

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start what runs beside the requests."""
        self._loop = loop
        self._groups = Groups(self._shared.storage, loop)
        self._watch.start()
        self._sharing.start()
        self._sweep()

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop what runs beside the requests."""
        self._watch.stop()
        self._sharing.stop()
        self._groups.close()

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        """Answer one request."""
        try:
            if scope.path == PATH and scope.method == "POST":
                answer = await self._receive(scope.headers.get, protocol)
                protocol.response_bytes(202, _ACCEPTED, answer)
            else:
                await self._ask_flask(scope, protocol)
        except ProtocolClosed:
            pass  # who asked has gone; a device sends again
        except Exception as error:  # noqa: BLE001  # answered, and logged where it is our failure
            made = document_of(error)
            self._shared.activity.add(REFUSED, made.slug)
            protocol.response_str(made.status, [*map(_lower, made.headers), *_HEADERS], made.body)

    async def _receive(self, said: Callable[..., Any], protocol: Any) -> bytes:
        """Return the acknowledgement of an upload; see HotRoute for what it raises."""
        length = said("content-length")
        head = Head(
            said("authorization") or "",
            said("content-type") or "",
            said("content-encoding") or "",
            None if length is None else int(length),  # digits: the server has checked it
        )
        # A store that is slow to tell of keys must not hold up everybody.
        if self._keyring.is_fresh:
            admitted = self._hot.admit(head)
        else:
            self._shared.pressure.require_room()  # all threads may wait for a store that is away
            admitted = await self._loop.run_in_executor(self._flask, self._hot.admit, head)
        limit = admitted.grant.limit
        size = limit if length is None or admitted.compressed else head.length or 0
        if size > MAX_DEVICE_BODY or admitted.compressed:  # 500 bytes may be 260,000 payloads
            judged = await self._judge_large(admitted, head, protocol, size)
        else:
            body = await self._read(protocol, head.length, limit, self._body_s)
            judged = (
                self._hot.judge(admitted, body)
                if len(body) <= INLINE_BODY
                else await self._loop.run_in_executor(self._large, self._hot.judge, admitted, body)
            )
        first = judged.sealed is None or await self._groups.append(judged.sealed)
        return self._hot.answer(admitted, judged, first)

    async def _judge_large(
        self, admitted: Admitted, head: Head, protocol: Any, size: int
    ) -> Judged:
        """Read and judge a body that takes milliseconds to decode, beside the loop."""
        if self._large_size + size > MAX_LARGE:
            raise OverloadedError("large uploads: as many are on their way as fit in memory")
        self._large_size += size
        try:
            patience = LARGE_BODY_S if size > MAX_DEVICE_BODY else self._body_s
            body = await self._read(protocol, head.length, admitted.grant.limit, patience)
            return await self._loop.run_in_executor(self._large, self._hot.judge, admitted, body)
        finally:
            self._large_size -= size

    async def _read(self, protocol: Any, length: int | None, limit: int, patience: float) -> bytes:
        """Return the body.  Raises SlowBodyError, BodyTooLargeError, ProtocolClosed."""
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
        """Give up the bodies that are late.  One timer for all: one each costs as much again."""
        now = self._loop.time()
        for task in [task for task, until in self._reading.items() if until < now]:
            self._late.add(task)
            task.cancel()
        self._loop.call_later(self._sweep_s, self._sweep)

    async def _ask_flask(self, scope: Any, protocol: Any) -> None:
        if self._in_flask >= THREADS + WAITING:
            raise OverloadedError("pages and queries: as many wait as may")
        self._in_flask += 1
        try:
            body = b""
            if scope.method not in ("GET", "HEAD"):
                body = await self._read(protocol, None, _FLASK_BODY, self._body_s)
            environ = environ_of(scope, body)
            answer = await self._loop.run_in_executor(
                self._flask, call, self._app.wsgi_app, environ
            )
        finally:
            self._in_flask -= 1
        protocol.response_bytes(answer.status, [*map(_lower, answer.headers)], answer.body)


def _lower(header: tuple[str, str]) -> tuple[str, str]:
    return header[0].lower(), header[1]
