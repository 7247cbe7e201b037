"""Log in with a read token, log out.  Nothing is kept here: the cookie holds the token."""

from __future__ import annotations

import re
from typing import Final

from flask import Blueprint, redirect, request, url_for
from flask.typing import ResponseReturnValue
from msgspec import Struct

from ...core.credentials import ADMIN, OPEN, READ, Credential
from ...core.errors import UnauthorizedError
from .. import auth
from ..auth import require_this_site, scope
from ..forms import form_of
from ..services import services
from .layout import links_of, shown, wants_page

blueprint = Blueprint("session", __name__)

LOG_IN: Final = "/login"
# A path of this collector.  "//" and "/\" begin an address elsewhere, and browsers drop controls.
_LOCAL: Final = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*", re.ASCII)
_SEE_OTHER: Final = 303


class LogIn(Struct, forbid_unknown_fields=True):
    """What the form of the log-in sends."""

    token: str
    next: str = "/"


class LogOut(Struct, forbid_unknown_fields=True):
    """What the button of the log-out sends: nothing."""


@blueprint.get(LOG_IN)
@scope(OPEN)
def login_page() -> ResponseReturnValue:
    """Show the log-in form; a script sends it only if no page led to it."""
    # "none": the address was typed, or opened from a terminal.  No page can send that.
    own = request.headers.get("Sec-Fetch-Site") == "none"
    return _form(local(request.args.get("next", "")), own=own)


@blueprint.post(LOG_IN)
@scope(OPEN)
def log_in() -> ResponseReturnValue:
    """Let the browser keep a good read token, and show the page that was asked for."""
    require_this_site()
    form_of(LogIn)
    token = request.form.get("token", "").strip()
    address = local(request.form.get("next", ""))
    credential = services().keyring.find(f"Bearer {token}")
    if credential is None or credential.kind not in (READ, ADMIN) or credential.service:
        if not wants_page():
            raise UnauthorizedError("token: must be a valid read token")
        return _form(address, 401)
    response = redirect(address if address != "/" else _home_of(credential), _SEE_OTHER)
    auth.keep(response, token)
    return response


@blueprint.post("/logout")
@scope(OPEN)
def log_out() -> ResponseReturnValue:
    """Let the browser forget the token."""
    require_this_site()
    form_of(LogOut)
    response = redirect(url_for("session.login_page"), _SEE_OTHER)
    if auth.presented():
        auth.forget(response)
    return response


def _form(address: str, code: int = 200, *, own: bool = False) -> ResponseReturnValue:
    """Return the page of the log-in, which leads to *address*; after a wrong token as 401."""
    proxied = services().config.proxy is not None
    return shown("login.html", code, next=address, wrong=code != 200, own=own, proxied=proxied)


def local(path: str) -> str:
    """Return *path* if it belongs to this collector, else the path of the first page."""
    return path if _LOCAL.fullmatch(path) else "/"


def _home_of(credential: Credential) -> str:
    """Return the first page that *credential* opens."""
    links = links_of(credential)
    return url_for(links[0].endpoint) if links else "/"
