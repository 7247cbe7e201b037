"""The cookie of the pages: a read token, kept by the browser and shown to no script.

It holds the token itself.  So a token that is revoked or has expired opens nothing a few seconds
later, as everywhere else, and no secret has to be shared among processes.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from flask import request
from werkzeug.wrappers import Response

from ..core.config import is_loopback
from .services import services

_PLAIN: Final = "hearsay"  # on this machine, where there may be no TLS
_HIDDEN: Final = "null"  # an origin that the page's Referrer-Policy, or its sandbox, hides
_SECURE: Final = "__Host-hearsay"  # the browser then keeps it from other hosts, and sends it by TLS


def origin() -> str:
    """Return where the browser sees this collector: as HEARSAY_ORIGIN says, or by Host.

    Without that setting TLS is taken to end before us under any name but one of this machine.
    """
    is_local = is_loopback(urlsplit(f"//{request.host}").hostname or "")
    by_host = f"{request.scheme if is_local else 'https'}://{request.host}"
    return services().config.origin or by_host


def presented() -> str:
    """Return what the cookie holds as an Authorization header would; "" without one."""
    token = request.cookies.get(_name())
    return f"Bearer {token}" if token else ""


def keep(response: Response, token: str) -> None:
    """Let the browser keep *token* until it is closed."""
    response.set_cookie(
        _name(), token, path="/", secure=_is_secure(), httponly=True, samesite="Strict"
    )


def forget(response: Response) -> None:
    """Let the browser forget the token."""
    response.delete_cookie(_name(), path="/", secure=_is_secure(), httponly=True, samesite="Strict")


def is_from_another_site() -> bool:
    """Return whether another site may have made the browser send this request.

    Browsers tell by Sec-Fetch-Site where a form came from.  One that is too old for that, and sends
    an Origin, must name this host; what is no browser sends neither.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site != "same-origin"
    return _HIDDEN in _told() or is_misplaced()


def is_misplaced() -> bool:
    """Return whether the browser sees this collector elsewhere than at ``origin``.

    A proxy then hides where that is, and the cookie would not be kept from plain HTTP.
    """
    return bool(_told() - {_HIDDEN, origin()})


def _told() -> set[str]:
    """Return what the browser says to be its own origin, if anything."""
    return set(request.headers.getlist("Origin"))


def _is_secure() -> bool:
    return origin().startswith("https:")


def _name() -> str:
    return _SECURE if _is_secure() else _PLAIN
