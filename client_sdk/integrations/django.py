"""For Django: middleware that records requests, errors and response times, sync and async.

>>> MIDDLEWARE = ["client_sdk.integrations.django.RequestMiddleware", ...]
>>> HEARSAY_CLIENT = Client(...)  # or the dotted path of one
>>> HEARSAY_LEAVE_OUT = ["healthz/"]  # routes, as in urlpatterns; optional

Put it first, so that it times the others too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from .web import RequestMetrics


class RequestMiddleware:
    """Records each request with the client that the settings name."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        """Read HEARSAY_CLIENT, HEARSAY_PREFIX and HEARSAY_LEAVE_OUT of the settings.

        Raises: InvalidParameterError: none of the metrics is there, or one has another shape.
        """
        from asgiref.sync import iscoroutinefunction, markcoroutinefunction
        from django.conf import settings
        from django.utils.module_loading import import_string

        client = settings.HEARSAY_CLIENT
        self._metrics = RequestMetrics(
            import_string(client) if isinstance(client, str) else client,
            prefix=getattr(settings, "HEARSAY_PREFIX", "http"),
            leave_out=getattr(settings, "HEARSAY_LEAVE_OUT", ()),
        )
        self._get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        """Answer *request*; a coroutine below an asynchronous server."""
        if self._is_async:
            return self._answer_async(request)
        begun = self._metrics.clock()
        response = self._get_response(request)
        self._observe(request, begun, response)
        return response

    async def _answer_async(self, request: Any) -> Any:
        begun = self._metrics.clock()
        waiting: Awaitable[Any] = self._get_response(request)
        response = await waiting
        self._observe(request, begun, response)
        return response

    def _observe(self, request: Any, begun: float, response: Any) -> None:
        """Record it; Django has made a response of every exception by now."""
        match = getattr(request, "resolver_match", None)
        seconds = self._metrics.clock() - begun
        self._metrics.observe(seconds, response.status_code, None if match is None else match.route)
