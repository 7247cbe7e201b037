"""Every error as an RFC 9457 problem document: what, why, and the next step; never a traceback."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from flask import Flask, has_request_context, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from client_sdk.core.errors import UnknownMetricError, nearest

from ..core import errors
from ..core.errors import CollectorError, QueryError
from ..core.logs import Incidents
from ..operations.telemetry.activity import REFUSED
from ..serving.application import PROBLEM, problem
from .services import services

log = logging.getLogger("hearsay.web")

_SEND_AGAIN: Final = "The upload was not stored, or may be sent again."
_ASK_AGAIN: Final = "There is no answer now, and nothing is lost. Ask again in a minute."
_QUERY: Final = "/v1/query"  # where the question is a document, but for these parameters
_PARAMETERS: Final = ("q", "format", "parameter")
_OPERATOR: Final = "There is no answer until an operator has run hearsay fsck."
_RETRY_LEAST, _RETRY_MOST = 30, 300  # seconds; spread, so that devices do not come back at once

_UNKNOWN_METRIC: Final = 404, "unknown-metric", "There is no such metric"


class Document(NamedTuple):
    """A problem document as it is sent, with the headers that belong to its status."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...]
    slug: str


def register(
    app: Flask, show: Callable[[Document], Response | None] = lambda refused: None
) -> None:
    """Answer every error of *app* as a problem document, or as *show* shows it to a browser."""
    app.register_error_handler(Exception, partial(_answer, show))


def document(
    status: int, slug: str, title: str, detail: str, faults: Sequence[Mapping[str, str]] = ()
) -> Document:
    """Return a problem document of type ``urn:hearsay:problem:<slug>``.

    Args: faults: what is wrong with which part of the question.
    """
    more = {"errors": list(faults)} if faults else {}
    text = problem(status, detail, f"urn:hearsay:problem:{slug}", title, **more)
    headers = [("Content-Type", PROBLEM)]
    if status in (429, 503):
        delay = _RETRY_LEAST + secrets.randbelow(_RETRY_MOST - _RETRY_LEAST)
        headers.append(("Retry-After", str(delay)))
    if status == 401:
        headers.append(("WWW-Authenticate", "Bearer"))
    return Document(status, text, tuple(headers), slug)


def titles(status: int) -> list[str]:
    """Return what an answer of *status* may say."""
    answers = [_UNKNOWN_METRIC]
    answers += [
        (kind.status, kind.slug, kind.title)
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, CollectorError) and "slug" in vars(kind)
    ]
    return [title for its_status, slug, title in answers if slug and its_status == status]


def document_of(error: Exception, incidents: Incidents) -> Document:
    """Return the answer to a request that ends in *error*; log it if it is our own failure."""
    if isinstance(error, HTTPException) and error.code is not None:
        slug = error.name.lower().replace(" ", "-")
        return document(error.code, slug, error.name, error.description or "")
    if isinstance(error, UnknownMetricError):
        return document(*_UNKNOWN_METRIC, _detail(error), _faults(error))
    if isinstance(error, CollectorError) and error.slug:
        answer = error.status, error.slug, error.title
        if error.status < 500:
            return document(*answer, _detail(error), _faults(error))
        if not error.is_told:
            incidents.tell(log, error.slug, str(error))  # not in the answer: it names the store
        return document(*answer, _again() if error.status == 503 else _OPERATOR)
    kind_of = "collector" if isinstance(error, CollectorError) else "internal"
    log.error("%s error: %s", kind_of, type(error).__name__, exc_info=error)
    return document(500, "internal", "The collector failed", "The failure is in its log.")


def _again() -> str:
    """Return the next step if the store does not answer, for a device or a reader."""
    is_question = has_request_context() and (request.method == "GET" or request.path == _QUERY)
    return _ASK_AGAIN if is_question else _SEND_AGAIN


def _detail(error: Exception) -> str:
    """Return the text of *error* for its document."""
    return str(_unknown(error) if isinstance(error, UnknownMetricError) else error)


def _unknown(error: UnknownMetricError) -> QueryError:
    """Return *error* without the name of the metric, which may be a pasted token."""
    like = nearest(error.name, error.known)
    return QueryError(
        "metrics", f"is not known{like}; known are {', '.join(error.known) or 'none'}"
    )


def _faults(error: Exception) -> list[dict[str, str]]:
    """Return where in the question the fault is: a parameter, and a JSON Pointer of RFC 6901."""
    fault = _unknown(error) if isinstance(error, UnknownMetricError) else error
    if not isinstance(fault, QueryError):
        return []
    place = fault.place
    query = request if has_request_context() and request.path == _QUERY else None
    if query is None or place in _PARAMETERS:
        where = {"parameter": "name" if isinstance(error, UnknownMetricError) else place}
    else:
        steps = () if place == "body" else place.split(".")
        pointer = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
        where = {"pointer": pointer} | ({} if query.method == "POST" else {"parameter": "q"})
    return [{**where, "detail": fault.rule}]


def _answer(show: Callable[[Document], Response | None], error: Exception) -> ResponseReturnValue:
    response = _respond(document_of(error, services().incidents), show)
    if isinstance(error, HTTPException) and error.code is not None:
        for name, value in error.get_headers():
            if name.lower() not in ("content-type", "content-length"):
                response.headers[name] = value
    return response


def _respond(refused: Document, show: Callable[[Document], Response | None]) -> Response:
    services().activity.add(REFUSED, refused.slug)
    return show(refused) or Response(
        refused.body, status=refused.status, headers=list(refused.headers)
    )
