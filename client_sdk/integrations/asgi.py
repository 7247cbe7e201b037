"""For ASGI (Starlette, FastAPI, Quart, any other): middleware that records requests.

>>> app = RequestMiddleware(app, client)
>>> app.add_middleware(RequestMiddleware, client=client)  # of Starlette and FastAPI

``record`` adds up in memory and waits for nothing, so the loop goes on.  WebSockets and the life of
the server pass through unseen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

from .web import RequestMetrics

if TYPE_CHECKING:
    from ..client import Client

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]


class RequestMiddleware:
    """An application that records each HTTP request of another one."""

    def __init__(
        self, app: App, client: Client, *, prefix: str = "http", leave_out: Iterable[str] = ()
    ) -> None:
        """Wrap *app*.

        Args:   prefix: of the metrics; see ``web``.  leave_out: templates of routes, as far as the
                framework puts them into the scope (FastAPI and Starlette do).
        Raises: InvalidParameterError: none of the metrics is there, or one has another shape.
        """
        self._app = app
        self._metrics = RequestMetrics(client, prefix=prefix, leave_out=leave_out)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, answer = self._metrics.clock(), list[tuple[float, int]]()

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start" and not answer:
                answer.append((self._metrics.clock(), message["status"]))
            await send(message)

        failed = True
        try:
            await self._app(scope, receive, watch)
            failed = False
        finally:
            now, status = answer[0] if answer else (self._metrics.clock(), None)
            route = getattr(scope.get("route"), "path", None)
            self._metrics.observe(now - begun, None if failed else status, route)
