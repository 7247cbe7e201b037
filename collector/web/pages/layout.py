"""What all pages share: their navigation, an answer that can be refreshed, errors as pages.

Also the parameters that many pages share, for the description of the routes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from flask import current_app, render_template, request, url_for
from werkzeug.utils import redirect
from werkzeug.wrappers import Response

from client_sdk import __version__
from client_sdk.core.errors import UnknownMetricError

from ...core.catalog import Catalog
from ...core.credentials import ASK, OPERATE, VIEW, Credential
from ...core.errors import QueryError
from ...query.window import RANGES
from ...serving.application import PROBLEM
from .. import auth
from ..api.openapi import in_query
from ..auth import is_page, visitor
from ..problems import Document
from ..services import services

CONTENT_TYPE: Final = "text/html; charset=utf-8"
OPENED: Final = "shared.shared_page"  # what another site may frame: the same for everybody
# A form sends a day that was not filled in as an empty one.
DATE: Final = {"anyOf": [{"type": "string", "format": "date"}, {"const": ""}]}
RANGE_PARAMETERS: Final = (
    in_query("range", {"enum": [*RANGES, "dates", ""]}, "The period, up to today."),
    in_query("from", DATE, "First day, with ``to``."),
    in_query("to", DATE, "Last day, with ``from``."),
)
EARLIER_PARAMETERS: Final = (
    in_query("against.from", DATE, "First day of the other dates."),
    in_query("against.to", DATE, "Last day of the other dates."),
)
_HTML: Final = "text/html"
_API: Final = "/v1/"
_UNAUTHORIZED: Final = 401
_OF_METRICS: Final = frozenset({"ask.ask_page", "compare.compare"})
_KEPT: Final = ("range", "from", "to")  # of an address, in another app
_SEE_OTHER: Final = 303
# What is wrong with the store, to an operator; the document speaks to devices.
_OF_THE_STORE: Final[Mapping[str, str]] = {
    "store-unavailable": "The store does not answer",
    "store-full": "The store is full",
    "store-unsafe": "The store could lose reports",
    "store-clock": "The clock of the store is wrong",
}


class Link(NamedTuple):
    """A page of the navigation."""

    title: str
    endpoint: str
    scope: str


_LINKS: Final = (
    Link("Overview", "overview.overview", VIEW),
    Link("Boards", "boards.boards_page", VIEW),
    Link("Compare", "compare.compare", ASK),
    Link("Ask", "ask.ask_page", ASK),
    Link("Watches", "watches.watches", VIEW),
    Link("Plan", "plan.plan_page", VIEW),
    Link("Privacy", "privacy.privacy", VIEW),
    Link("Operations", "operations.operations", OPERATE),
)


def shown(template: str, code: int = 200, **context: Any) -> Response:
    """Return the page of *template*, or a 304 if the browser has it already.

    Args: context: of the template; its ``links`` are shown in place of the visitor's.
    """
    is_for_all = request.endpoint == OPENED
    who = None if is_for_all else visitor()
    frame = {
        "links": addressed(links_of(who)),
        "here": request.endpoint or "",
        "apps": _apps_of(who),
        "logged_in": bool(who and auth.presented()),
        "person": "" if is_for_all else auth.person(),
        "version": __version__,
    }
    page = render_template(template, **{**frame, **context})
    response = Response(page, code, content_type=CONTENT_TYPE)
    response.headers["Vary"] = "Accept, Authorization, Cookie"
    if code == 200 and request.method in ("GET", "HEAD"):
        response.add_etag(weak=True)
        response.make_conditional(request)
    return response


def _apps_of(credential: Credential | None) -> list[dict[str, Any]]:
    """Return the switch between the apps that *credential* may see; nothing if there is one."""
    if credential is None or VIEW not in credential.scopes:
        return []
    catalog = services().keyring.view(credential)
    if len(catalog.apps) < 2:
        return []
    here, name = (request.view_args or {}).get("app", ""), _metric_shown()
    if not here and name:
        with suppress(UnknownMetricError, QueryError):
            here = catalog.metric(name).app
    every = {"title": "All apps", "url": url_for("overview.overview"), "is_here": False}
    every["is_here"] = request.endpoint == "overview.overview"
    return [
        every,
        *(
            {
                "title": app,
                "url": _page_in(app, name, catalog),
                "is_here": app == here,
            }
            for app in catalog.apps
        ),
    ]


def _metric_shown() -> str:
    """Return the name of the one metric that this page is about, "" if it is about none."""
    if request.endpoint == "metric.metric_page":
        return str((request.view_args or {})["name"])
    names = request.args.getlist("metric") if request.endpoint in _OF_METRICS else []
    return names[0] if len(names) == 1 else ""


def _page_in(app: str, name: str, catalog: Catalog) -> str:
    """Return the address of this page about the metric of the same *name* in *app*, if it has one.

    Otherwise the overview of *app*.  The chosen time stays; other choices may not exist there.
    """
    bare = name.rpartition("/")[2]
    address = f"{app}/{bare}"
    if name and any((metric.app, metric.name) == (app, bare) for metric in catalog):
        kept: dict[str, Any] = {key: request.args[key] for key in _KEPT if request.args.get(key)}
        if request.endpoint == "metric.metric_page":
            return url_for("metric.metric_page", name=address, **kept)
        return url_for(request.endpoint or "", metric=address, **kept)
    return url_for("overview.app_overview", app=app)


def utc(moment: int) -> str:
    """Return a Unix time as a moment of UTC, as templates write it."""
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%MZ")


def links_of(credential: Credential | None) -> list[Link]:
    """Return the pages that *credential* opens, in order."""
    return [link for link in _LINKS if credential and link.scope in credential.scopes]


def addressed(links: Iterable[Link]) -> list[dict[str, str]]:
    """Return *links* as the navigation shows them."""
    return [
        {"title": link.title, "url": url_for(link.endpoint), "endpoint": link.endpoint}
        for link in links
    ]


def page_of(problem: Document) -> Response | None:
    """Return *problem* as a page; None if a program asked, which gets a problem document."""
    if not wants_page():
        return None
    view = current_app.view_functions.get(request.endpoint or "")
    if problem.status == _UNAUTHORIZED and view and is_page(view):
        address = request.full_path.removesuffix("?") if request.method == "GET" else "/"
        return redirect(url_for("session.login_page", next=address), _SEE_OTHER)
    details = json.loads(problem.body)
    wrong = _OF_THE_STORE.get(problem.slug, "")
    # While the store does not answer, tokens cannot be checked: no visitor is logged out for that.
    hidden = bool(wrong and auth.presented() and visitor() is None)
    response = shown(
        "fault.html",
        problem.status,
        status=problem.status,
        phrase=HTTPStatus(problem.status).phrase,
        title=wrong or details["title"],
        detail="" if wrong else details["detail"],
        of_the_store=bool(wrong),
        back=_back(),
        **({"links": addressed(_LINKS)} if hidden else {}),
    )
    for name, value in problem.headers:
        if name != "Content-Type":
            response.headers[name] = value
    return response


def _back() -> str:
    """Return the page whose form was sent, by the browser's Referer; "" if unknown."""
    came = request.referrer or ""
    return came if request.method == "POST" and came.startswith(f"{auth.origin()}/") else ""


def wants_page() -> bool:
    """Return whether a browser asks, and not for the API, whose errors are read by programs."""
    if request.path.startswith(_API):
        return False
    accepted = request.accept_mimetypes
    return accepted.best_match([PROBLEM, "application/json", _HTML]) == _HTML
