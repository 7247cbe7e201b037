"""Liveness and readiness."""

from __future__ import annotations

from flask import Blueprint
from flask.typing import ResponseReturnValue

from ..credentials import OPEN
from .answers import Alive, Ready
from .auth import scope
from .operations import Operation, documented
from .services import services

blueprint = Blueprint("health", __name__)


@blueprint.get("/livez")
@scope(OPEN)
@documented(Operation(Alive))
def is_alive() -> ResponseReturnValue:
    """Say that the process answers."""
    return {"status": "ok"}


@blueprint.get("/readyz")
@scope(OPEN)
@documented(Operation(Ready, problems=(503,)))
def is_ready() -> ResponseReturnValue:
    """Say that uploads can be stored, and how many entries wait to be folded; 503 if not."""
    services().pressure.require_safe()
    storage = services().storage
    storage.ping()
    return {"status": "ok", "backlog": storage.backlog()}
