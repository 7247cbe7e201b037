"""Every error as an RFC 9457 problem document: what, why, and the next step; never a traceback."""

from __future__ import annotations

import json
import logging
import secrets
from typing import Final

from flask import Flask
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from client_sdk.errors import UnknownMetricError

from ..errors import (
    BodyTooLargeError,
    CollectorError,
    ExpiredUploadError,
    FutureUploadError,
    MalformedUploadError,
    QueryError,
    StorageFullError,
    StorageUnavailableError,
    UnauthorizedError,
    UnsupportedTypeError,
)

log = logging.getLogger("hearsay.web")

CONTENT_TYPE: Final = "application/problem+json"
_RETRY_LEAST, _RETRY_MOST = 30, 300  # seconds; spread, so that devices do not come back at once

_STATUS: Final[tuple[tuple[type[Exception], int, str, str], ...]] = (
    (MalformedUploadError, 400, "malformed-upload", "The body is not an upload"),
    (QueryError, 400, "bad-parameter", "A parameter cannot be used"),
    (UnauthorizedError, 401, "unauthorized", "A key or token is needed"),
    (UnknownMetricError, 404, "unknown-metric", "There is no such metric"),
    (ExpiredUploadError, 410, "upload-expired", "The upload is too old to be counted once"),
    (BodyTooLargeError, 413, "body-too-large", "The body is too large"),
    (UnsupportedTypeError, 415, "unsupported-type", "The body has a type that is not read here"),
    (FutureUploadError, 422, "upload-in-future", "The upload was sealed on a day to come"),
    (StorageUnavailableError, 503, "store-unavailable", "The store does not answer; send again"),
    (StorageFullError, 503, "store-full", "The store takes no more reports now; send again later"),
)


def register(app: Flask) -> None:
    """Answer every error of *app* as a problem document."""
    app.register_error_handler(Exception, _answer)


def problem(status: int, slug: str, title: str, detail: str) -> Response:
    """Return a problem document of type ``urn:hearsay:problem:<slug>``."""
    document = {
        "type": f"urn:hearsay:problem:{slug}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    response = Response(json.dumps(document) + "\n", status=status, content_type=CONTENT_TYPE)
    if status in (429, 503):
        delay = _RETRY_LEAST + secrets.randbelow(_RETRY_MOST - _RETRY_LEAST)
        response.headers["Retry-After"] = str(delay)
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _answer(error: Exception) -> ResponseReturnValue:
    for kind, status, slug, title in _STATUS:
        if isinstance(error, kind):
            if status < 500:
                return problem(status, slug, title, str(error))
            log.error("%s: %s", slug, error)  # there, and not in the answer: it names the store
            return problem(status, slug, title, "The upload was not stored, or may be sent again.")
    if isinstance(error, HTTPException) and error.code is not None:
        slug = error.name.lower().replace(" ", "-")
        response = problem(error.code, slug, error.name, error.description or "")
        for name, value in error.get_headers():
            if name.lower() not in ("content-type", "content-length"):
                response.headers[name] = value
        return response
    kind_of = "collector" if isinstance(error, CollectorError) else "internal"
    log.error("%s error: %s", kind_of, type(error).__name__, exc_info=error)
    return problem(500, "internal", "The collector failed", "The failure is in its log.")
