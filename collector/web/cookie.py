"""The cookie of the pages: a read token, kept by the browser and shown to no script.

It holds the token itself.  So a token that is revoked or has expired opens nothing a few seconds
later, as everywhere else, and no secret has to be shared among processes.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from flask import request
from werkzeug.wrappers import Response

from ..config import is_loopback

_PLAIN: Final = "hearsay"  # on this machine, where there may be no TLS
_SECURE: Final = "__Host-hearsay"  # the browser then keeps it from other hosts, and sends it by TLS


def is_local() -> bool:
    """Return whether the page was asked for under a name of this machine."""
    return is_loopback(urlsplit(f"//{request.host}").hostname or "")


def origin() -> str:
    """Return where the browser sees this collector: TLS ends before it, but on this machine."""
    return f"{request.scheme if is_local() else 'https'}://{request.host}"


def presented() -> str:
    """Return what the cookie holds as an Authorization header would; "" without one."""
    token = request.cookies.get(_name())
    return f"Bearer {token}" if token else ""


def keep(response: Response, token: str) -> None:
    """Let the browser keep *token* until it is closed."""
    response.set_cookie(
        _name(), token, path="/", secure=not is_local(), httponly=True, samesite="Strict"
    )


def forget(response: Response) -> None:
    """Let the browser forget the token."""
    response.delete_cookie(
        _name(), path="/", secure=not is_local(), httponly=True, samesite="Strict"
    )


def is_from_another_site() -> bool:
    """Return whether another site may have made the browser send this request.

    Browsers tell by Sec-Fetch-Site where a form came from.  One that is too old for that, and sends
    an Origin, must name this host; what is no browser sends neither.
    """
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site != "same-origin"
    told = request.headers.get("Origin")
    return told is not None and told != origin()


def _name() -> str:
    return _PLAIN if is_local() else _SECURE
