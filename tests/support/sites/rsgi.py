"""The server's own protocol (RSGI) without a server: a request goes in, its answer comes out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from urllib.parse import unquote

from flask import Flask
from granian.rsgi import ProtocolClosed  # type: ignore[attr-defined]  # its stub leaves it out

from collector.web.ingest.front import Front


class Headers(dict[str, str]):
    """As the server gives them: lower-case names; lines part the values of a repeated one."""

    def get(self, name: str, default: Any = None) -> Any:
        return self.get_all(name)[0] if name in self else default

    def get_all(self, name: str) -> list[str]:
        return self[name].split("\n") if name in self else []


class Request(NamedTuple):
    """A request as a test writes it; ``parts`` is how its body comes."""

    path: str = "/v1/reports"
    method: str = "POST"
    headers: dict[str, str] = {}  # noqa: RUF012  # never changed
    parts: tuple[bytes, ...] = ()
    chunked: bool = False
    client: str = "127.0.0.1:50000"

    @property
    def scope(self) -> Any:
        length = {} if self.chunked else {"content-length": str(len(b"".join(self.parts)))}
        said = {"host": "localhost", **length, **self.headers}
        path, _, query = self.path.partition("?")
        fields = {
            "path": unquote(path),  # once, as the server does
            "query_string": query,
            "method": self.method,
            "headers": Headers({name.lower(): value for name, value in said.items()}),
            "server": "127.0.0.1:8000",
            "client": self.client,
            "scheme": "http",
            "http_version": "1.1",
            "authority": None,
        }
        return type("Scope", (), fields)()


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Protocol:
    """The server's end of one request.

    Args: parts: of the body.  stalls: no more than these come.  gone: the peer ends before the last
          part; ``tests/end_to_end/test_server_protocol.py`` holds this against the server.
    """

    def __init__(self, parts: tuple[bytes, ...], *, stalls: bool = False, gone: bool = False):
        self._parts, self._stalls, self._gone = parts, stalls, gone
        self.response: Response | None = None
        self.stalled = False  # whether somebody waits for what does not come

    async def __call__(self) -> bytes:
        await asyncio.sleep(0)
        if self._stalls:
            await self._stall()
        if self._gone:
            raise ProtocolClosed
        return b"".join(self._parts)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts[: -1 if self._gone else None]:  # and it ends without an error
            await asyncio.sleep(0)
            yield part
        if self._stalls:
            await self._stall()

    async def _stall(self) -> None:
        self.stalled = True
        await asyncio.Event().wait()

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        assert len(dict(headers)) == len(headers)
        self.response = Response(status, dict(headers), body)

    def response_str(self, status: int, headers: list[tuple[str, str]], body: str) -> None:
        self.response_bytes(status, headers, body.encode())


def answers(app: Any, *requests: Request, **how: bool) -> list[Response | None]:
    """Return what *app*, of Flask or of the server's protocol, answers to *requests* in turn."""

    async def ask() -> list[Response | None]:
        loop, found = asyncio.get_running_loop(), []
        front = Front(app) if isinstance(app, Flask) else app
        front.__rsgi_init__(loop)
        for request in requests:
            protocol = Protocol(request.parts, **how)
            await asyncio.create_task(front.__rsgi__(request.scope, protocol))
            found.append(protocol.response)
        if hasattr(front, "__rsgi_del__"):
            front.__rsgi_del__(loop)
        return found

    return asyncio.run(ask())
