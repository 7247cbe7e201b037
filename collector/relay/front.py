"""What devices meet: one request, one wait, and one answer of one of few sizes.

A POST of ``message/ohttp-req``, at whatever path, waits for its batch (RFC 9458: the client waits).
Every answer is filled up to a multiple of ANSWER_SIZE bytes, head and all, by a header of zeros,
which touches no message: unless a sealed answer is long, its length on the wire tells neither
whether the collector took the upload nor whether there was an answer at all.
"""

from __future__ import annotations

import asyncio
import logging
import time
from http import HTTPStatus
from typing import Final

from client_sdk.core.limits import MAX_DEVICE_BODY
from client_sdk.wire.oblivious import ANSWER_TYPE, MAX_HEAD, OVERHEAD, REQUEST_TYPE

from ..core.errors import BodyTooLargeError, SlowBodyError
from ..core.logs import Incidents
from ..serving.application import TEXT, Answer, Application, Headers, RefusalError
from ..serving.bodies import Channel, Scope, length_of
from .batches import Batches
from .networks import Network, Rates, network_of

MAX_MESSAGE: Final = MAX_DEVICE_BODY + MAX_HEAD + OVERHEAD  # bytes: the largest upload, sealed
BODY_S: Final = 10.0  # seconds in which a message must have come
ANSWER_SIZE: Final = (
    2_048  # bytes on the wire; an acknowledgement, sealed and with its head, is less
)
_REPORT_S: Final = 600.0  # seconds between two lines on what passed
_HEAD: Final = len(
    "HTTP/1.1 200 \r\n"
    "content-type: \r\n"
    "cache-control: no-store\r\n"
    "padding: \r\n"
    "server: granian\r\n"
    "content-length: \r\n"
    "date: Mon, 23 Nov 2026 05:02:21 GMT\r\n"
    "\r\n"
)
_PHRASES: Final = {413: "Payload Too Large"}  # as the server writes it, and Python does not
_WHY: Final = {
    HTTPStatus.OK: "pages of this origin may send messages",
    HTTPStatus.BAD_REQUEST: "the message is empty or cut off, or its head can be read in two ways:"
    " send an encapsulated request, with one Host and one Content-Type",
    HTTPStatus.METHOD_NOT_ALLOWED: "only POST is relayed",
    HTTPStatus.REQUEST_TIMEOUT: f"the message must come within {BODY_S:.0f} s",
    HTTPStatus.LENGTH_REQUIRED: "a message must have its length: send Content-Length",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: f"a message may have at most {MAX_MESSAGE} bytes",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: f"only {REQUEST_TYPE} is relayed",
    HTTPStatus.TOO_MANY_REQUESTS: "your network sends too much: keep the message, try again later",
    HTTPStatus.SERVICE_UNAVAILABLE: "no answer: keep the message, try again later",
}
_PREFLIGHT: Final = [
    ("access-control-allow-methods", "POST"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-max-age", "86400"),  # seconds that a browser keeps an answer, at most
]
_CLOSE: Final = [("connection", "close")]
_log = logging.getLogger("hearsay.relay")


def padding(status: int, kind: str, body: bytes, more: Headers) -> str:
    """Return what fills an answer with *more* headers up to a multiple of ANSWER_SIZE bytes."""
    phrase = _PHRASES.get(status, HTTPStatus(status).phrase)
    size = _HEAD + len(phrase) + len(kind) + len(str(len(body))) + len(body)
    size += sum(len(f"{name}: {value}\r\n") for name, value in more)
    return "0" * (-size % ANSWER_SIZE)


class Front(Application):
    """The relay by the server's own protocol (RSGI)."""

    def __init__(
        self,
        batches: Batches,
        rates: Rates,
        behind: tuple[Network, ...] = (),
        origins: tuple[str, ...] = (),
        *,
        body_s: float = BODY_S,
        report_s: float = _REPORT_S,
    ) -> None:
        """Let messages wait in *batches*, as far as *rates* allow.

        Args: behind: the proxies whose X-Forwarded-For is believed.
              origins: of the sites whose pages may send from a browser.
        """
        super().__init__({}, [])
        self._batches, self._rates, self._behind = batches, rates, behind
        self._origins = frozenset(origins)
        self._body_s, self._report_s = body_s, report_s
        self._incidents = Incidents(time.monotonic)
        self._warned = False

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the beats of the batches, and the reports to the operator."""
        super().__rsgi_init__(loop)
        self._batches.start()
        self._next = loop.call_later(self._report_s, self._report)

    def stop(self) -> None:
        """Send those that wait away: their devices come again."""
        self._batches.stop()

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """End both."""
        self._next.cancel()
        self.report()
        self._batches.close()

    async def respond(self, scope: Scope, protocol: Channel) -> Answer:
        """Return the answer to the message of a device, at whatever path."""
        shared = self._shared(scope)
        if shared and scope.method == "OPTIONS":
            return _explained(HTTPStatus.OK, [*shared, *_PREFLIGHT])
        network = self._admit(scope)
        message = await self._read(scope, protocol, network)
        answer = await self._batches.pass_on(message, network)
        if answer is None:
            raise RefusalError(HTTPStatus.SERVICE_UNAVAILABLE)
        return _padded(HTTPStatus.OK, ANSWER_TYPE, answer, shared)

    def refuse(self, scope: Scope, error: Exception) -> Answer:
        """Return what the status of *error* says, or else that the message may be sent again."""
        if not isinstance(error, (RefusalError, BodyTooLargeError, SlowBodyError)):
            _log.error("internal error: %s", type(error).__name__, exc_info=error)
            error = RefusalError(HTTPStatus.SERVICE_UNAVAILABLE)
        # the server closes by itself, but only if it has not read all of the message yet
        return _explained(HTTPStatus(error.status), [*self._shared(scope), *_CLOSE])

    def explain(self, why: str) -> Answer:
        """Return one answer, whatever is wrong with the form of a message."""
        return _explained(HTTPStatus.BAD_REQUEST, _CLOSE)

    def _shared(self, scope: Scope) -> Headers:
        """Return the headers by which a browser lets the page that sends read the answer."""
        origin = scope.headers.get("origin")
        return [("access-control-allow-origin", origin)] if origin in self._origins else []

    def _admit(self, scope: Scope) -> bytes:
        """Return the network of a request that may be read.  Raises RefusalError."""
        if scope.method != "POST":
            raise RefusalError(HTTPStatus.METHOD_NOT_ALLOWED)
        if scope.headers.get("content-type") != REQUEST_TYPE:
            raise RefusalError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        forwarded = scope.headers.get_all("x-forwarded-for")
        if forwarded and not self._behind:
            text = "a proxy stands before the relay: name it by --behind, or all devices are one"
            self._incidents.tell(_log, "proxy", text)
        network = network_of(scope.client, forwarded, self._behind, self._tell_unreadable)
        if not self._rates.admit(network):
            self._batches.counts.refused += 1
            raise RefusalError(HTTPStatus.TOO_MANY_REQUESTS)
        return network

    def _tell_unreadable(self) -> None:
        """Tell the operator, once, that devices behind a proxy are not told apart."""
        if not self._warned:
            self._warned = True
            text = "a proxy of --behind names no address: all devices behind it count as one"
            _log.warning("%s; let it end X-Forwarded-For with the address of its client", text)

    async def _read(self, scope: Scope, protocol: Channel, network: bytes) -> bytes:
        """Return the message from *network*.

        Raises: RefusalError, BodyTooLargeError, SlowBodyError.
        """
        length = length_of(scope.headers)
        if length is None:  # the server does not tell the end of such a body from a cut
            raise RefusalError(HTTPStatus.LENGTH_REQUIRED)
        room = self._batches.room(network)

        def claim(size: int) -> None:
            if not room.claim(size):
                raise RefusalError(HTTPStatus.SERVICE_UNAVAILABLE)

        try:
            message = await self._bodies.read(protocol, length, MAX_MESSAGE, self._body_s, claim)
        finally:
            room.release()  # what is whole is counted again where it waits
        if not message:
            raise RefusalError(HTTPStatus.BAD_REQUEST)
        return message

    def _report(self) -> None:
        self._next = self._loop.call_later(self._report_s, self._report)
        self.report()

    def report(self) -> None:
        """Tell the operator what passed since the last time, if anything did."""
        counts = self._batches.take_counts()
        if counts.messages or counts.refused:
            _log.info(
                "%d messages in %d batches, the smallest of %d; %d without an answer, %d refused",
                counts.messages,
                counts.batches,
                counts.smallest,
                counts.unanswered,
                counts.refused,
            )


def _explained(status: HTTPStatus, more: Headers) -> Answer:
    return _padded(status, TEXT, f"{_WHY[status]}\n".encode(), more)


def _padded(status: HTTPStatus, kind: str, body: bytes, more: Headers) -> Answer:
    headers = [("content-type", kind), ("cache-control", "no-store"), *more]
    headers.append(("padding", padding(status, kind, body, more)))
    return Answer(int(status), headers, body)
