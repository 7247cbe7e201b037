"""Errors as pages, where a browser asks for a page; a log-in where one is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from flask import current_app, request, url_for
from werkzeug.utils import redirect
from werkzeug.wrappers import Response

from .. import auth
from ..auth import is_page, visitor
from ..problems import CONTENT_TYPE, Document
from .layout import LINKS, addressed, shown

_HTML: Final = "text/html"
_API: Final = "/v1/"
_UNAUTHORIZED: Final = 401
_SEE_OTHER: Final = 303
# What is wrong with the store, to an operator; the document speaks to devices.
_OF_THE_STORE: Final[Mapping[str, str]] = {
    "store-unavailable": "The store does not answer",
    "store-full": "The store is full",
    "store-unsafe": "The store could lose reports",
    "store-clock": "The clock of the store is wrong",
}


def page_of(problem: Document) -> Response | None:
    """Return *problem* as a page; None if a program asked, which is told by a problem document."""
    if not wants_page():
        return None
    if problem.status == _UNAUTHORIZED and _is_of_a_page():
        address = request.full_path.removesuffix("?") if request.method == "GET" else "/"
        return redirect(url_for("session.login_page", next=address), _SEE_OTHER)
    details = json.loads(problem.body)
    wrong = _OF_THE_STORE.get(problem.slug, "")
    # Who shows a token cannot be known while the store is away, and is not logged out by that.
    hidden = bool(wrong and auth.presented() and visitor() is None)
    response = shown(
        "fault.html",
        problem.status,
        status=problem.status,
        phrase=HTTPStatus(problem.status).phrase,
        title=wrong or details["title"],
        detail="" if wrong else details["detail"],
        of_the_store=bool(wrong),
        **({"links": addressed(LINKS)} if hidden else {}),
    )
    for name, value in problem.headers:
        if name != "Content-Type":
            response.headers[name] = value
    return response


def wants_page() -> bool:
    """Return whether a browser asks, and not for the API, whose errors are read by programs."""
    if request.path.startswith(_API):
        return False
    accepted = request.accept_mimetypes
    return accepted.best_match([CONTENT_TYPE, "application/json", _HTML]) == _HTML


def _is_of_a_page() -> bool:
    endpoint = request.endpoint
    return endpoint is not None and is_page(current_app.view_functions[endpoint])
