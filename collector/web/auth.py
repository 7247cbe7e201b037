"""Who may do what: the scope of every route, and the cookie of the pages.

A route without a scope is not found.  The cookie holds a read token, kept by the browser and shown
to no script.  It is the token itself: a revoked or expired one opens nothing a few seconds later,
as everywhere else, and processes share no secret.  Instead a trusted proxy may name the visitor,
for pages alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from flask import Flask, current_app, g, request
from werkzeug.exceptions import NotFound
from werkzeug.http import parse_cookie
from werkzeug.wrappers import Response

from client_sdk.registry.metric import Metric

from ..core.catalog import Catalog
from ..core.credentials import (
    ANALYST,
    ASK,
    GATEWAY,
    MANAGE,
    OPEN,
    OPERATE,
    OPERATOR,
    OWNER,
    REPORT,
    SCOPES,
    VIEW,
    VIEWER,
    WRITE,
    Credential,
    id_of,
)
from ..core.credentials import presented as digest_in
from ..core.errors import CollectorError, ForbiddenError, TooFastError, UnauthorizedError
from ..core.settings import is_loopback
from ..intake.keyring import Keyring
from ..query import Plan
from ..workspace.documents import Author
from .services import services

_PLAIN: Final = "hearsay"  # on this machine, where there may be no TLS
_HIDDEN: Final = "null"  # an origin that the page's Referrer-Policy, or its sandbox, hides
_SECURE: Final = "__Host-hearsay"  # the browser then keeps it from other hosts, and sends it by TLS
_READING: Final = ("GET", "HEAD", "OPTIONS")
_MARK: Final = "hearsay_scope"  # the attribute of a view that names its scope
_PAGE: Final = "hearsay_page"  # the attribute of a view that is for browsers
PEER: Final = "hearsay.peer"  # of the environment: the address of the socket, for proxies alone
_LEAST_ROLE: Final = {
    VIEW: VIEWER,
    ASK: ANALYST,
    MANAGE: OWNER,
    OPERATE: OPERATOR,
}  # with each scope
_UNKNOWN: Final = "this read token is unknown: it expired, was revoked, or is for another collector"
_OF_PROGRAM: Final = "this token is a program's: it opens the API and no page"
WRITES: Final = 1  # documents a second that a token may save in a process, in the long run
WRITES_BURST_S: Final = 60.0  # seconds' worth of it that it may save at once
_NEEDED: Final = "a read token is needed: Authorization: Bearer <read token>"


def origin() -> str:
    """Return the origin under which browsers see this collector: HEARSAY_ORIGIN, or from Host.

    Without that setting a proxy is assumed to end TLS, unless Host names this machine.
    """
    is_local = is_loopback(urlsplit(f"//{request.host}").hostname or "")
    by_host = f"{request.scheme if is_local else 'https'}://{request.host}"
    return services().config.origin or by_host


def presented() -> str:
    """Return the cookie's token as an Authorization header; "" without one."""
    token = request.cookies.get(_name())
    return f"Bearer {token}" if token else ""


def shown_in(authorization: str, cookie: str) -> list[str]:
    """Return the tokens in the two headers of a request, each as an Authorization header."""
    kept = parse_cookie(cookie)
    tokens = [kept[name] for name in (_SECURE, _PLAIN) if name in kept]
    return [*filter(None, [authorization]), *(f"Bearer {token}" for token in tokens)]


def keep(response: Response, token: str) -> None:
    """Let the browser keep *token* until it is closed."""
    response.set_cookie(
        _name(), token, path="/", secure=_is_secure(), httponly=True, samesite="Strict"
    )


def forget(response: Response) -> None:
    """Let the browser forget the token."""
    response.delete_cookie(_name(), path="/", secure=_is_secure(), httponly=True, samesite="Strict")


def _is_from_another_site() -> bool:
    """Return whether another site may have made the browser send this request.

    Browsers send in Sec-Fetch-Site where a form came from.  The Origin of a browser too old for
    that must name this host; programs send neither.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site != "same-origin"
    return _HIDDEN in _origins() or _is_misplaced()


def require_this_site() -> None:
    """Raise ForbiddenError if another site may have sent this form through a visitor's browser."""
    if _is_from_another_site():
        raise ForbiddenError(
            "this form can only be sent from a page of this collector; behind a proxy, set"
            " HEARSAY_ORIGIN to the address that people type, or let the proxy pass Host on"
        )
    if _is_misplaced():
        raise ForbiddenError(
            f"the address of this collector is {origin()}, but the browser uses another:"
            " set HEARSAY_ORIGIN to the address that people type, or let the proxy pass Host on"
        )


def _is_misplaced() -> bool:
    """Return whether the browser uses another address than ``origin``.

    A proxy then hides that address, and the cookie would not be kept from plain HTTP.
    """
    return bool(_origins() - {_HIDDEN, origin()})


def _origins() -> set[str]:
    """Return the values of Origin that the browser sent."""
    return set(request.headers.getlist("Origin"))


def _is_secure() -> bool:
    return origin().startswith("https:")


def _name() -> str:
    return _SECURE if _is_secure() else _PLAIN


V = TypeVar("V", bound=Callable[..., Any])


def scope(name: str, *, page: bool = False) -> Callable[[V], V]:
    """Declare that a view needs a credential with scope *name*.

    Args: page: a browser shows it, so that a cookie may present the credential; requests that
          change something must then come from a page of this collector.
    """
    if name not in SCOPES:
        raise ValueError(f"scope={name}: must be one of {', '.join(SCOPES)}")

    def declare(view: V) -> V:
        setattr(view, _MARK, name)
        setattr(view, _PAGE, page)
        return view

    return declare


def scope_of(view: Callable[..., Any]) -> str | None:
    """Return the scope that *view* declares, or None."""
    declared: str | None = getattr(view, _MARK, None)
    return declared


def is_page(view: Callable[..., Any]) -> bool:
    """Return whether *view* is for browsers."""
    return bool(getattr(view, _PAGE, False))


def guard(app: Flask) -> None:
    """Require the scope of its route of every request to *app*."""
    files: Any = app.view_functions["static"]
    app.view_functions["static"] = scope(OPEN)(files)
    app.before_request(_enforce)


def reader() -> Credential:
    """Return the credential of the current request."""
    credential: Credential = g.credential
    return credential


def visitor() -> Credential | None:
    """Return the visitor's credential, also where a route needs none or another one."""
    known: Credential | None = g.get("credential")
    try:
        return known or services().keyring.find(presented()) or _named_by_proxy()
    except CollectorError:  # the page says what else is wrong
        return None


def author() -> Author:
    """Return who writes: the person whom the proxy names, or a token, by its id.

    The label of a token is shown and decides nothing: a person may have the same name.
    """
    if person():
        return Author(f"person:{person()}", person())
    credential, id = reader(), id_of(digest_in(_header()) or b"")
    return Author(f"token:{id}", credential.label or f"{credential.role or credential.kind} {id}")


def writer() -> Author:
    """Return who writes, and count the write to their token.

    Raises: TooFastError: it writes faster than it may; nothing was stored.
    """
    who = author()
    if not services().writes.take(who.id.encode(), 1):
        raise TooFastError("documents: you save more than one a second; try again in a minute")
    return who


def visible() -> Catalog:
    """Return the metrics that the request may read; any other is as unknown as a wrong name."""
    return services().keyring.view(reader(), g.get("scope", VIEW))


def person() -> str:
    """Return the name that a trusted proxy gave the visitor; "" if it gave none."""
    named: str = g.get("person", "")
    return named


def admit_question(plan: Plan) -> None:
    """Count the question by visitor, if the operator wants that: see ``operations.questions``.

    Raises: ForbiddenError: it is about single keys, and the visitor does not own all its metrics.
    """
    if plan.keys and not all(_owns(reading.metric) for reading in plan.readings):
        raise ForbiddenError(
            "you need the owner role to ask about single keys: anyone who can also send with a key"
            " could single out one of its reports; leave out the filter of @source by key"
        )
    questions = services().questions
    if questions is not None:
        metrics = [reading.metric.address for reading in plan.readings]
        questions.count(_who(), plan.query.verb, metrics)


def _owns(metric: Metric) -> bool:
    """Return whether the visitor is an owner of *metric*; visitors by a shared link never are."""
    credential: Credential | None = g.get("credential")
    return (
        credential is not None
        and MANAGE in credential.scopes
        and credential.covers(metric.app, metric.name, MANAGE)
    )


def _who() -> str:
    """Return a name of the visitor: the proxy's, or label and id of the token."""
    credential: Credential | None = g.get("credential")
    if person() or credential is None:
        return person() or "(a shared link)"
    return f"{credential.label or credential.role} {id_of(digest_in(_header()) or b'')}"


def _header() -> str:
    """Return the header that presents the visitor's token."""
    return request.headers.get("Authorization", "") or presented()


def _named_by_proxy() -> Credential | None:
    """Return the credential of the person whom a trusted proxy names; None if it names no one.

    Raises: ForbiddenError: the proxy is not trusted, or the person has no role.
    """
    proxy = services().config.proxy
    user = "" if proxy is None else request.headers.get(proxy.user_header, "").strip()
    if proxy is None or not user:
        return None
    peer = request.environ.get(PEER, "")
    credential = proxy.credential(peer, user, request.headers.get(proxy.groups_header, ""))
    # Browsers may send the proxy's cookie from other sites, too: these may link to us, but not
    # load our answers.
    site = request.headers.get("Sec-Fetch-Site", "none")
    if site not in ("none", "same-origin") and request.headers.get("Sec-Fetch-Mode") != "navigate":
        raise ForbiddenError("requests from another site are not allowed; open this page by a link")
    g.person = user
    return credential


def _of_page(needed: str) -> Credential:
    """Return a page's credential: a token in the header, the cookie's, or the proxy's.

    Raises: UnauthorizedError, ForbiddenError, StorageUnavailableError.
    """
    named = _named_by_proxy()
    for header in (request.headers.get("Authorization", ""), presented()):
        if header and (named is None or services().keyring.find(header)):
            return require(services().keyring, needed, header, is_page=True)
    if named is None:
        raise UnauthorizedError(_NEEDED)
    _require_scope(named, needed)
    return named


def _enforce() -> None:
    """Raise NotFound, UnauthorizedError or ForbiddenError unless the request may go on."""
    if request.endpoint is None:
        return  # there is no such route, or not for this method
    view = current_app.view_functions[request.endpoint]
    needed = scope_of(view)
    if needed is None:
        raise NotFound
    if needed == OPEN:
        return
    header = request.headers.get("Authorization", "")
    if needed == REPORT:
        services().keyring.grant(header)
    elif is_page(view):
        g.credential, g.scope = _of_page(needed), needed
        if request.method not in _READING:
            require_this_site()
    else:
        g.credential, g.scope = require(services().keyring, needed, header), needed


def require(keyring: Keyring, needed: str, header: str, *, is_page: bool = False) -> Credential:
    """Return the credential in *header*, which must have the scope *needed*.

    Args:   is_page: it is for a page, which a program's token may not open.
    Raises: UnauthorizedError: there is none that may read.  ForbiddenError: it lacks the scope.
            StorageUnavailableError: it is in the store, which does not answer.
    """
    credential = keyring.find(header)
    if credential is None or credential.kind in (WRITE, GATEWAY):  # those are public
        raise UnauthorizedError(_UNKNOWN if header else _NEEDED)
    if is_page and credential.service:
        raise ForbiddenError(_OF_PROGRAM)
    _require_scope(credential, needed)
    return credential


def _require_scope(credential: Credential, needed: str) -> None:
    """Raise ForbiddenError unless *credential* has the scope *needed*."""
    if needed not in credential.scopes:
        role = _LEAST_ROLE.get(needed, needed)
        raise ForbiddenError(f"you need the {role} role for this: ask an operator for such a token")
