"""Who may do what.  Every route declares its scope; one without is not found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from flask import Flask, current_app, g, request
from werkzeug.exceptions import NotFound

from ..core.catalog import Catalog
from ..core.credentials import GATEWAY, OPEN, REPORT, SCOPES, WRITE, Credential
from ..core.errors import CollectorError, ForbiddenError, UnauthorizedError
from ..intake.keyring import Keyring
from . import cookie
from .services import services

V = TypeVar("V", bound=Callable[..., Any])

_MARK: Final = "hearsay_scope"  # the attribute of a view that names its scope
_PAGE: Final = "hearsay_page"  # the attribute of a view that is for browsers
_UNKNOWN: Final = "this read token is not known here: it has expired, was revoked, or is another's"
_NEEDED: Final = "a read token is needed: Authorization: Bearer <read token>"


def scope(name: str, *, page: bool = False) -> Callable[[V], V]:
    """Declare that a view needs a credential with scope *name*.

    Args: page: it changes nothing, so that a cookie may present the credential.
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
    """Let every request to *app* pass only as its route's scope says."""
    files: Any = app.view_functions["static"]
    app.view_functions["static"] = scope(OPEN)(files)
    app.before_request(_enforce)


def reader() -> Credential:
    """Return what the request that is being answered may do."""
    credential: Credential = g.credential
    return credential


def visitor() -> Credential | None:
    """Return what whoever asks may do, also where nothing was needed or something else was."""
    known: Credential | None = g.get("credential")
    try:
        return known or services().keyring.find(cookie.presented())
    except CollectorError:  # the page says what else is wrong
        return None


def visible() -> Catalog:
    """Return the metrics that the request may read; any other is as unknown as a wrong name."""
    return services().keyring.view(reader())


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
        g.credential = require(services().keyring, needed, header or cookie.presented())
    else:
        g.credential = require(services().keyring, needed, header)


def require(keyring: Keyring, needed: str, header: str) -> Credential:
    """Return the credential in *header*, which must have the scope *needed*.

    Raises: UnauthorizedError: none that may read.  ForbiddenError: one that may read other things.
            StorageUnavailableError: the store holds it, and does not answer.
    """
    credential = keyring.find(header)
    if credential is None or credential.kind in (WRITE, GATEWAY):  # those are public
        raise UnauthorizedError(_UNKNOWN if header else _NEEDED)
    if needed not in credential.scopes:
        raise ForbiddenError(f"this token has no right to {needed}; another role has")
    return credential
