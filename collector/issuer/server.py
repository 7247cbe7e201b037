"""The issuer over HTTP: its directory, and a token for an attested identity.

It sees the identity and that a token was signed; of the token itself it sees nothing.  It keeps no
address, writes no log of requests, and knows neither reports nor the collector's store.

Source: RFC 9578, sections 4 (directory) and 6.1 to 6.3 (request, response, statuses).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

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

from ..core.errors import SlowBodyError, StorageUnavailableError
from ..core.logs import Incidents
from ..serving.application import (
    NO_KIND,
    PROBLEM,
    Answer,
    Application,
    RefusalError,
    problem,
    reading,
)
from ..serving.bodies import Channel, Scope
from ..serving.server import require_free, serve_application, settings_of
from .allowance import KEPT, Allowance
from .attestation import Attestation, AttestationError, Seen
from .keys import IssuerKeys, SigningKey, directory, request_in

ROLE: Final = "issuer"
BODY_S: Final = 5.0  # seconds in which a request of 259 bytes must have come
ASKING: Final = 16  # attestations that are asked for at once: of those seen good, and of others
WAITING: Final = 64  # of each, requests that wait for that; beyond them the device comes again
OF_ACCOUNT: Final = 4  # of both, those of one account; a device asks for its tokens one by one
_CONNECTIONS: Final = 1_024
_NOT_GOOD: Final = "the attestation is not good here"
_ALL_GIVEN: Final = "urn:hearsay:problem:tokens-given"  # so a device knows it from a proxy's limit
_HEADERS: Final = [("cache-control", "no-store"), ("x-content-type-options", "nosniff")]
_log = logging.getLogger("hearsay.issuer")


class IssuerApp(Application):
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
        routes = {("POST", REQUEST_PATH): self._issue, **reading(DIRECTORY_PATH, self._list)}
        super().__init__(routes, _HEADERS)
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

    def refuse(self, scope: Scope, error: Exception) -> Answer:
        """Return a problem document: what is wrong, or that it is our failure."""
        if isinstance(error, RefusalError):
            return _problem(error.status, error.rule, error.kind)
        if isinstance(error, SlowBodyError):
            return _problem(408, "the body did not arrive in time")
        if isinstance(error, (AttestationError, StorageUnavailableError)):
            self._incidents.tell(_log, "tokens", str(error))
            return _problem(503, "no token can be given now; ask again later")
        _log.error("internal error: %s", type(error).__name__, exc_info=error)
        return _problem(500, "the issuer failed; its log says why")

    def close(self) -> None:
        """End the threads: those that ask others whenever they do, that of the counts at once."""
        for threads in self._asking.values():
            threads.shutdown(wait=False, cancel_futures=True)
        self._counting.shutdown(wait=True)

    async def respond(self, scope: Scope, protocol: Channel) -> Answer:
        """Refuse what is no route."""
        raise RefusalError(404, f"there is {DIRECTORY_PATH} to GET and {REQUEST_PATH} to POST")

    async def _list(self, scope: Scope, protocol: Channel) -> Answer:
        """Return the keys of now."""
        self._renew()
        return _answer(DIRECTORY_TYPE, self._directory)

    async def _issue(self, scope: Scope, protocol: Channel) -> Answer:
        """Return the signature of what a device has blinded."""
        header = scope.headers.get
        kind = (header("content-type") or "").partition(";")[0].strip().lower()
        if kind != REQUEST_TYPE:
            raise RefusalError(415, f"Content-Type: must be {REQUEST_TYPE}")
        if header("content-length") != str(REQUEST_SIZE):
            raise RefusalError(422, f"Content-Length: must be {REQUEST_SIZE}")
        body = await self._bodies.read(protocol, REQUEST_SIZE, REQUEST_SIZE, self._body_s)
        self._renew()
        signing = self._signing  # of this request: a week may end while it waits
        request = request_in(body, signing)
        if request is None:
            raise RefusalError(422, "the request is of another kind, or names no key of this week")
        week, blinded = request
        scheme, _, attestation = (header("authorization") or "").partition(" ")
        if scheme.lower() != "bearer" or not attestation.strip():
            raise RefusalError(401, "Authorization: Bearer <attestation> is needed")
        if not await self._take(week, attestation.strip()):
            raise RefusalError(429, "all tokens of this week have been given", _ALL_GIVEN)
        signature = signing[week].sign(blinded)
        if signature is None:
            raise RefusalError(422, "the blinded message is none for this key")
        return _answer(RESPONSE_TYPE, signature)

    async def _take(self, week: int, attestation: str) -> bool:
        """Count a token for the identity of *attestation*; see ``Allowance.take``.

        Law: however many show attestations that were never good, as many threads and places as they
        have stay for those that were; and of these no account has more than OF_ACCOUNT.
        """
        if self._seen.was_refused(attestation):
            raise RefusalError(403, _NOT_GOOD)
        account = self._seen.account(attestation)
        is_known = account is not None
        of_all = ASKING + WAITING
        most = {is_known: of_all, account: OF_ACCOUNT if is_known else of_all}
        if any(self._waiting[place] >= limit for place, limit in most.items()):
            raise RefusalError(503, "too many ask at once; ask again later")
        loop = asyncio.get_running_loop()
        self._waiting.update(most.keys())
        try:
            identify = self._attestation.identity
            identity = await loop.run_in_executor(self._asking[is_known], identify, attestation)
            self._seen.note(attestation, identity)
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


def _answer(kind: str, body: bytes, status: int = 200) -> Answer:
    return Answer(status, [("content-type", kind), *_HEADERS], body)


def _problem(status: int, rule: str, kind: str = NO_KIND) -> Answer:
    return _answer(PROBLEM, problem(status, rule, kind), status)


async def serve(app: IssuerApp, host: str, port: int) -> None:
    """Answer on *host* and *port* until SIGTERM or SIGINT.

    Raises: ConfigError: another process listens there; two issuers would give two allowances.
    """
    try:
        require_free("--port", host, port)
        await serve_application(app, settings_of(ROLE, host, port, _CONNECTIONS))
    finally:
        app.close()  # so that no thread is at the counts when they are closed
