"""GET /metrics: the state of the whole deployment, in Prometheus' text format."""

from __future__ import annotations

from flask import Blueprint
from flask.typing import ResponseReturnValue

from ..core.credentials import OPERATE
from ..operations.telemetry.exposition import CONTENT_TYPE, expose
from .auth import scope
from .operations import Operation, documented
from .services import services

blueprint = Blueprint("metrics", __name__)


@blueprint.get("/metrics")
@scope(OPERATE)
@documented(Operation(None, media_type=CONTENT_TYPE))
def metrics() -> ResponseReturnValue:
    """Tell the state; whichever process answers, the counts are those of all."""
    return expose(services().snapshot()), {"Content-Type": CONTENT_TYPE}
