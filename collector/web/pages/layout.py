"""The layout of all pages: navigation, the log-in, and an answer that can be refreshed.

Also the parameters that many pages share, as the description of the routes tells them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from flask import render_template, request, url_for
from werkzeug.wrappers import Response

from client_sdk import __version__

from ...core.credentials import ASK, OPERATE, VIEW, Credential
from ...query.window import RANGES
from .. import auth
from ..api.openapi import in_query
from ..auth import visitor

CONTENT_TYPE: Final = "text/html; charset=utf-8"
# A form sends a day that was not filled in as an empty one.
_DATE: Final = {"anyOf": [{"type": "string", "format": "date"}, {"const": ""}]}
RANGE_PARAMETERS: Final = (
    in_query("range", {"enum": [*RANGES, "dates", ""]}, "The period, up to today."),
    in_query("from", _DATE, "First day, with ``to``."),
    in_query("to", _DATE, "Last day, with ``from``."),
)


class Link(NamedTuple):
    """A page of the navigation."""

    title: str
    endpoint: str
    scope: str


LINKS: Final = (
    Link("Overview", "overview.overview", VIEW),
    Link("Compare", "compare.compare", ASK),
    Link("Ask", "ask.ask_page", ASK),
    Link("Plan", "plan.plan_page", VIEW),
    Link("Privacy", "privacy.privacy", VIEW),
    Link("Operations", "operations.operations", OPERATE),
)


def shown(template: str, code: int = 200, **context: Any) -> Response:
    """Return the page of *template*; a browser that has it already is told so.

    Args: context: what the template shows; ``links`` in it is shown for those of the visitor.
    """
    response = Response(
        render_template(template, **{**_frame(), **context}), code, content_type=CONTENT_TYPE
    )
    response.headers["Vary"] = "Accept, Authorization, Cookie"
    if code == 200 and request.method in ("GET", "HEAD"):
        response.add_etag(weak=True)
        response.make_conditional(request)
    return response


def links_of(credential: Credential | None) -> list[Link]:
    """Return the pages that *credential* opens, in order."""
    return [link for link in LINKS if credential and link.scope in credential.scopes]


def addressed(links: Iterable[Link]) -> list[dict[str, str]]:
    """Return *links* as the navigation shows them."""
    return [
        {"title": link.title, "url": url_for(link.endpoint), "endpoint": link.endpoint}
        for link in links
    ]


def _frame() -> dict[str, Any]:
    who = visitor()
    return {
        "links": addressed(links_of(who)),
        "here": request.endpoint or "",
        "logged_in": bool(who and auth.presented()),
        "version": __version__,
    }
