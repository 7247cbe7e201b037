"""For Flask: ``install(app, client)`` records requests, errors and response times.

>>> install(app, client, leave_out=["/healthz"])
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from .web import RequestMetrics

if TYPE_CHECKING:
    from flask import Flask, Response

    from ..client import Client

_BEGUN: Final = "_hearsay_begun"  # on flask.g, while a request is neither answered nor failed


def install(
    app: Flask, client: Client, *, prefix: str = "http", leave_out: Iterable[str] = ()
) -> None:
    """Have *app* record each request with *client*.

    Args:   prefix: of the metrics; see ``web``.  leave_out: rules of routes, as given to ``route``.
    Raises: InvalidParameterError: none of the metrics is there, or one has another shape.
    """
    from flask import g, request

    metrics = RequestMetrics(client, prefix=prefix, leave_out=leave_out)

    def begin() -> None:
        setattr(g, _BEGUN, metrics.clock())

    def observe(status: int | None) -> None:
        begun: float | None = g.pop(_BEGUN, None)
        if begun is not None:
            rule: Any = request.url_rule
            metrics.observe(metrics.clock() - begun, status, None if rule is None else rule.rule)

    def answered(response: Response) -> Response:
        observe(response.status_code)
        return response

    def ended(error: BaseException | None) -> None:
        if error is not None:  # it was raised through Flask, as in tests: nothing was answered
            observe(None)

    app.before_request_funcs.setdefault(None, []).insert(0, begin)  # before what may answer itself
    app.after_request(answered)
    app.teardown_request(ended)
