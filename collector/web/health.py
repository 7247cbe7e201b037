"""Liveness and readiness."""

from __future__ import annotations

from flask import Blueprint
from flask.typing import ResponseReturnValue

from .services import services

blueprint = Blueprint("health", __name__)


@blueprint.get("/livez")
def is_alive() -> ResponseReturnValue:
    """Say that the process answers."""
    return {"status": "ok"}


@blueprint.get("/readyz")
def is_ready() -> ResponseReturnValue:
    """Say that uploads can be stored, and how many entries wait to be folded; 503 if not."""
    storage = services().storage
    storage.ping()
    return {"status": "ok", "backlog": storage.backlog()}
