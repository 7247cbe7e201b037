"""Liveness and readiness under Flask, for the document, tests and other servers.

``hearsay serve`` answers both before Flask: see ``front``.
"""

from __future__ import annotations

from typing import Final

from flask import Blueprint
from flask.typing import ResponseReturnValue

from ..core.credentials import OPEN
from .answers import Alive, Ready
from .auth import scope
from .operations import Operation, documented
from .readiness import backlog
from .services import services

blueprint = Blueprint("health", __name__)

LIVE: Final = "/livez"
READY: Final = "/readyz"


@blueprint.get(LIVE)
@scope(OPEN)
@documented(Operation(Alive))
def is_alive() -> ResponseReturnValue:
    """Say that the process answers."""
    return {"status": "ok"}


@blueprint.get(READY)
@scope(OPEN)
@documented(Operation(Ready, problems=(503,)))
def is_ready() -> ResponseReturnValue:
    """Say that uploads can be stored, and how many entries wait to be folded; 503 if not."""
    shared = services()
    return {"status": "ok", "backlog": backlog(shared.pressure, shared.storage)}
