"""Status over HTTP: liveness, readiness, and GET /metrics for the whole deployment.

``hearsay serve`` answers the first two before Flask (see ``front``); these routes serve the
document, tests and other servers.
"""

from __future__ import annotations

from typing import Final

from flask import Blueprint
from flask.typing import ResponseReturnValue

from ...core.credentials import OPEN, OPERATE
from ...operations.telemetry.exposition import CONTENT_TYPE, expose
from ..auth import scope
from ..ingest.readiness import backlog
from ..services import services
from .openapi import Operation
from .schemas import Alive, Ready

blueprint = Blueprint("status", __name__)

LIVE: Final = "/livez"
READY: Final = "/readyz"


@blueprint.get(LIVE)
@scope(OPEN)
@Operation(Alive)
def is_alive() -> ResponseReturnValue:
    """Say that the process answers."""
    return {"status": "ok"}


@blueprint.get(READY)
@scope(OPEN)
@Operation(Ready, problems=(503,))
def is_ready() -> ResponseReturnValue:
    """Say that uploads can be stored, and how many entries wait to be folded; 503 if not."""
    shared = services()
    return {"status": "ok", "backlog": backlog(shared.pressure, shared.storage)}


@blueprint.get("/metrics")
@scope(OPERATE)
@Operation(media_type=CONTENT_TYPE)
def metrics() -> ResponseReturnValue:
    """Tell the state; whichever process answers, the counts are those of all."""
    return expose(services().snapshot()), {"Content-Type": CONTENT_TYPE}
