"""Who may do what: write keys for intake, read tokens for queries.  Only digests are compared."""

from __future__ import annotations

import hmac
from urllib.parse import urlsplit

from flask import request

from client_sdk.limits import MAX_DEVICE_BODY, MAX_GATEWAY_BODY

from ..config import GATEWAY, digest_of, is_loopback
from ..errors import UnauthorizedError
from .services import services


def require_write_key() -> int:
    """Return the bytes that the sender's key allows a body to have.

    Raises: UnauthorizedError: no key, or one that is not known.
    """
    presented = _presented()
    for known, kind in services().config.write_keys.items():
        if presented and hmac.compare_digest(presented, known):
            return MAX_GATEWAY_BODY if kind == GATEWAY else MAX_DEVICE_BODY
    raise UnauthorizedError("a write key is needed: Authorization: Bearer <write key>")


def require_read_token() -> None:
    """Raise UnauthorizedError unless the request carries a known read token."""
    presented = _presented()
    tokens = services().config.read_tokens
    if not presented or not any(hmac.compare_digest(presented, known) for known in tokens):
        raise UnauthorizedError("a read token is needed: Authorization: Bearer <read token>")


def require_page_reader() -> None:
    """Raise UnauthorizedError unless pages are open to this machine or a token is given.

    The name asked for must be this machine's too: a web page that makes its own name point here
    could otherwise read the answers through a visitor's browser.
    """
    asked = urlsplit(f"//{request.host}").hostname or ""
    if not (services().config.open_dashboard and is_loopback(asked)):
        require_read_token()


def _presented() -> bytes | None:
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    return digest_of(secret.strip()) if scheme.lower() == "bearer" and secret.strip() else None
