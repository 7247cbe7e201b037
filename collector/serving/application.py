"""What web, relay and issuer have in common as applications of the server's own protocol (RSGI).

The server has parsed the head: it refuses what is not HTTP.  If a head has a length and a transfer
coding, the coding counts, and the server closes the connection afterwards.  ``require_plain``
refuses a head that a proxy in front may have read differently.
"""

from __future__ import annotations

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]  # its stub leaves it out

from ..core.errors import MalformedHeadError
from .bodies import SWEEP_S, Bodies, Channel, Scope

LIVE: Final = "/livez"
READING: Final = ("GET", "HEAD")
PROBLEM: Final = "application/problem+json"
NO_KIND: Final = "about:blank"  # type of a problem that its status says
TEXT: Final = "text/plain; charset=utf-8"
_HOST: Final = re.compile(r"[A-Za-z0-9._~%-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?", re.ASCII)
_OLD: Final = "1"  # HTTP/1.0, in which a health check need not name a host
_CUT: Final = "the body is cut off: send all that its length says"

Headers: TypeAlias = list[tuple[str, str]]


class Answer(NamedTuple):
    """A whole response."""

    status: int
    headers: Headers  # by names in small letters, where the server sends them
    body: bytes


Route: TypeAlias = Callable[[Scope, Channel], Awaitable[Answer]]


class RefusalError(Exception):
    """Why a request is not served; the status says it, the *rule* in words."""

    def __init__(self, status: int, rule: str = "", kind: str = NO_KIND) -> None:
        """Keep the parts as data; *kind* is the problem's type."""
        self.status, self.rule, self.kind = status, rule, kind
        super().__init__(rule)


def reading(path: str, route: Route) -> dict[tuple[str, str], Route]:
    """Return *route* for each method that reads *path*."""
    return {(method, path): route for method in READING}


def problem(
    status: int, detail: str, kind: str = NO_KIND, title: str = "", **more: object
) -> bytes:
    """Return a problem document of RFC 9457."""
    head = {"type": kind} | ({"title": title} if title else {})
    return json.dumps(head | {"status": status, "detail": detail} | more).encode() + b"\n"


def require_plain(scope: Scope) -> None:
    """Return if there is one way to read the head of the request *scope*.

    Raises: MalformedHeadError: says which part is not plain, and nothing of what it holds.
    """
    headers = scope.headers
    hosts = headers.get_all("host")
    if len(hosts) != 1 and (hosts or scope.http_version != _OLD):
        raise MalformedHeadError("Host: must be given once")
    if hosts and not _HOST.fullmatch(hosts[0]):
        raise MalformedHeadError("Host: must be a name and perhaps a port")
    if scope.authority is not None and [scope.authority] != hosts:
        raise MalformedHeadError("Host: must be the one that the request names")
    codings = headers.get_all("transfer-encoding")
    if codings and (len(codings) > 1 or codings[0].strip().lower() != "chunked"):
        raise MalformedHeadError("Transfer-Encoding: must be chunked, once, or absent")
    if len(headers.get_all("content-type")) > 1:
        raise MalformedHeadError("Content-Type: must be given at most once")
    if not scope.method.isupper():
        raise MalformedHeadError("method: must be in capital letters")
    if not scope.path.startswith("/") and scope.path != "*":
        raise MalformedHeadError("path: must begin with a slash")


class Application(ABC):
    """One process's answers.  What comes by no route is for ``respond``.

    A head that can be read in two ways, and a body that is cut off, are refused in plain text: by
    another way the same request is good, so a device keeps what it sends.
    """

    def __init__(
        self,
        routes: Mapping[tuple[str, str], Route],
        headers: Headers,
        sweep_s: float = SWEEP_S,
    ) -> None:
        """Answer by *routes*, and say by itself that it lives.

        Args: routes: by method and path.  headers: of what is answered here.
              sweep_s: seconds between two looks for bodies that are late.
        """
        self._routes = {**reading(LIVE, self._live), **routes}
        self._headers, self._sweep_s = headers, sweep_s
        self._bodies = Bodies()

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to look for bodies that are late."""
        self._loop = loop
        self._sweep()

    async def __rsgi__(self, scope: Scope, protocol: Channel) -> None:
        """Answer one request."""
        try:
            require_plain(scope)
            route = self._routes.get((scope.method, scope.path), self.respond)
            answer = await route(scope, protocol)
        except ProtocolClosed:  # who asked has gone, or no longer sends; a device sends again
            answer = self.explain(_CUT)
        except MalformedHeadError as error:
            answer = self.explain(str(error))
        except Exception as error:  # noqa: BLE001  # answered, and logged where it is our failure
            answer = self.refuse(scope, error)
        protocol.response_bytes(*answer)

    @abstractmethod
    async def respond(self, scope: Scope, protocol: Channel) -> Answer:
        """Return the answer to a request that none of the routes is for."""

    @abstractmethod
    def refuse(self, scope: Scope, error: Exception) -> Answer:
        """Return the answer to a request that ended in *error*."""

    def explain(self, why: str) -> Answer:
        """Return the answer to a request that did not come as it was sent."""
        return Answer(400, [("content-type", TEXT), *self._headers], f"{why}\n".encode())

    def look(self, now: float) -> None:
        """Give up what is late *now*.  One timer for all: one each costs as much again."""
        self._bodies.give_up(now)

    def _sweep(self) -> None:
        self.look(self._loop.time())
        self._loop.call_later(self._sweep_s, self._sweep)

    async def _live(self, scope: Scope, protocol: Channel) -> Answer:
        headers = [("content-type", "application/json"), *self._headers]
        return Answer(200, headers, b'{"status":"ok"}\n')
