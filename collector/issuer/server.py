"""The issuer over HTTP: its directory, and a token for who is attested.

It sees who asks and that a token was signed; of the token itself it sees nothing.  It keeps no
address, writes no log of requests, and knows neither reports nor the collector's store.

Source: RFC 9578, sections 4 (directory) and 6.1 to 6.3 (request, response, statuses).
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]  # its stub leaves it out

from client_sdk.core.epoch import day_of
from client_sdk.wire.private_token import (
    DIRECTORY_PATH,
    DIRECTORY_TYPE,
    REQUEST_PATH,
    REQUEST_SIZE,
    REQUEST_TYPE,
    RESPONSE_TYPE,
    week_of,
)

from ..core.errors import StorageUnavailableError
from ..core.logs import Incidents, server_config
from ..serving.listening import require_free
from .allowance import KEPT, Allowance
from .attestation import Attestation, AttestationError, Seen
from .keys import IssuerKeys, SigningKey, directory, request_in

ROLE: Final = "issuer"
LIVE: Final = "/livez"
BODY_S: Final = 5.0  # seconds in which a request of 259 bytes must have come
ASKING: Final = 16  # attestations that are asked for at once: of those seen good, and of others
WAITING: Final = 64  # of each, requests that wait for that; beyond them the device comes again
OF_ACCOUNT: Final = 4  # of both, those of one account; a device asks for its tokens one by one
_CONNECTIONS: Final = 1_024
_HEADERS_MS: Final = 5_000  # milliseconds in which the headers must have arrived
_HEADERS_SIZE: Final = 16 * 1024  # bytes
_PROBLEM: Final = "application/problem+json"
_NO_KIND: Final = "about:blank"
_NOT_GOOD: Final = "the attestation is not good here"
_ALL_GIVEN: Final = "urn:hearsay:problem:tokens-given"  # so a device knows it from a proxy's limit
_HEADERS: Final = [("cache-control", "no-store"), ("x-content-type-options", "nosniff")]
_log = logging.getLogger("hearsay.issuer")


class Answer(NamedTuple):
    """A whole response."""

    status: int
    kind: str
    body: bytes


class RefusalError(Exception):
    """Why a request gets no token."""

    def __init__(self, status: int, rule: str, kind: str = _NO_KIND) -> None:
        """Answer with *status*, and say the *rule*; *kind* is the problem's type."""
        self.status, self.rule, self.kind = status, rule, kind
        super().__init__(rule)


class IssuerApp:
    """One process's issuer, by the server's own protocol (RSGI)."""

    def __init__(
        self,
        keys: IssuerKeys,
        attestation: Attestation,
        allowance: Allowance,
        clock: Callable[[], float] = time.time,
        body_s: float = BODY_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Sign by *keys* what *attestation* vouches for, as often as *allowance* lets it."""
        self._keys, self._attestation, self._allowance = keys, attestation, allowance
        self._clock, self._body_s = clock, body_s
        self._week, self._signing = 0, dict[int, SigningKey]()
        self._directory = b""
        self._asking = {  # by whether their attestation was seen good before
            is_known: ThreadPoolExecutor(ASKING, "attestation") for is_known in (True, False)
        }
        self._counting = ThreadPoolExecutor(1, "allowance")
        self._waiting = Counter[bool | bytes | None]()  # by the same, and by account
        self._seen = Seen(monotonic)
        self._incidents = Incidents(time.monotonic)
        self._renew()

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        """Answer one request."""
        try:
            answer = await self._answer(scope, protocol)
        except ProtocolClosed:
            return  # who asked has gone
        except RefusalError as error:
            answer = _problem(error.status, error.rule, error.kind)
        except (AttestationError, StorageUnavailableError) as error:
            self._incidents.tell(_log, "tokens", str(error))
            answer = _problem(503, "no token can be given now; ask again later")
        except Exception as error:  # noqa: BLE001  # answered, and logged: it is our failure
            _log.error("internal error: %s", type(error).__name__, exc_info=error)
            answer = _problem(500, "the issuer failed; its log says why")
        protocol.response_bytes(
            answer.status, [("content-type", answer.kind), *_HEADERS], answer.body
        )

    def close(self) -> None:
        """End the threads."""
        for threads in self._asking.values():
            threads.shutdown(wait=True)
        self._counting.shutdown(wait=True)

    async def _answer(self, scope: Any, protocol: Any) -> Answer:
        place = scope.method, scope.path
        if place == ("POST", REQUEST_PATH):
            return await self._issue(scope.headers.get, protocol)
        if scope.method in ("GET", "HEAD") and scope.path == DIRECTORY_PATH:
            self._renew()
            return Answer(200, DIRECTORY_TYPE, self._directory)
        if scope.method in ("GET", "HEAD") and scope.path == LIVE:
            return Answer(200, "application/json", b'{"status":"ok"}\n')
        raise RefusalError(404, f"there is {DIRECTORY_PATH} to GET and {REQUEST_PATH} to POST")

    async def _issue(self, header: Callable[[str], str | None], protocol: Any) -> Answer:
        """Return the signature of what a device has blinded."""
        kind = (header("content-type") or "").partition(";")[0].strip().lower()
        if kind != REQUEST_TYPE:
            raise RefusalError(415, f"Content-Type: must be {REQUEST_TYPE}")
        if header("content-length") != str(REQUEST_SIZE):
            raise RefusalError(422, f"Content-Length: must be {REQUEST_SIZE}")
        try:
            body = await asyncio.wait_for(protocol(), self._body_s)
        except TimeoutError:
            raise RefusalError(408, "the body did not arrive in time") from None
        self._renew()
        signing = self._signing  # of this request: a week may end while it waits
        request = request_in(body, signing)
        if request is None:
            raise RefusalError(422, "the request is of another kind, or names no key of this week")
        week, blinded = request
        scheme, _, said = (header("authorization") or "").partition(" ")
        if scheme.lower() != "bearer" or not said.strip():
            raise RefusalError(401, "Authorization: Bearer <attestation> is needed")
        if not await self._take(week, said.strip()):
            raise RefusalError(429, "all tokens of this week have been given", _ALL_GIVEN)
        signature = signing[week].sign(blinded)
        if signature is None:
            raise RefusalError(422, "the blinded message is none for this key")
        return Answer(200, RESPONSE_TYPE, signature)

    async def _take(self, week: int, said: str) -> bool:
        """Count a token for who *said* this; see ``Allowance.take``.

        Law: however many show attestations that were never good, as many threads and places as they
        have stay for those that were; and of these no account has more than OF_ACCOUNT.
        """
        if self._seen.was_refused(said):
            raise RefusalError(403, _NOT_GOOD)
        account = self._seen.account(said)
        is_known = account is not None
        of_all = ASKING + WAITING
        most = {is_known: of_all, account: OF_ACCOUNT if is_known else of_all}
        if any(self._waiting[place] >= limit for place, limit in most.items()):
            raise RefusalError(503, "too many ask at once; ask again later")
        loop = asyncio.get_running_loop()
        self._waiting.update(most.keys())
        try:
            identify = self._attestation.identity
            identity = await loop.run_in_executor(self._asking[is_known], identify, said)
            self._seen.note(said, identity)
            if identity is None:
                raise RefusalError(403, _NOT_GOOD)
            return await loop.run_in_executor(self._counting, self._allowance.take, week, identity)
        finally:
            self._waiting.subtract(most.keys())
            self._waiting = +self._waiting  # an account without requests takes no memory

    def _renew(self) -> None:
        """Go on to the keys of this week, and forget what was counted long before."""
        week = week_of(day_of(self._clock()))
        if week == self._week:
            return
        signing = self._keys.signing(week)
        if not signing:
            _log.error("keys: there is none for this week; make new ones by hearsay issuer-keys")
        elif max(signing) == week:
            _log.warning("keys: this week has the last one; make new ones by hearsay issuer-keys")
        self._directory = directory(self._keys.plan, signing)
        self._week, self._signing = week, signing
        self._counting.submit(self._allowance.forget_before, week - KEPT)


def _problem(status: int, rule: str, kind: str = _NO_KIND) -> Answer:
    document: Mapping[str, object] = {"type": kind, "status": status, "detail": rule}
    return Answer(status, _PROBLEM, json.dumps(document).encode("ascii") + b"\n")


async def serve(app: IssuerApp, host: str, port: int) -> None:
    """Answer on *host* and *port* until SIGTERM or SIGINT.

    Raises: ConfigError: somebody listens there; two issuers would give two allowances.
    """
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings
    from granian.log import LogLevels
    from granian.server.embed import Server

    try:
        require_free("--port", host, port)
        server = Server(
            app,
            address=host,
            port=port,
            interface=Interfaces.RSGI,
            http=HTTPModes.http1,
            http1_settings=HTTP1Settings(
                header_read_timeout=_HEADERS_MS, max_buffer_size=_HEADERS_SIZE
            ),
            backpressure=_CONNECTIONS,
            websockets=False,
            log_level=LogLevels.error,  # it warns of itself at each start
            log_dictconfig=server_config(ROLE),
            log_access=False,  # an access log would hold addresses
        )
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)
        await server.serve()
    finally:
        app.close()  # whoever closes the counts next finds no thread at them
