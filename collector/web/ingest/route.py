"""Uploads and health under Flask, for the document, tests and other servers; and GET /metrics.

``hearsay serve`` answers all but the last before Flask, by the same steps: see ``front``.
"""

from __future__ import annotations

from typing import Final

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from ...core.credentials import OPEN, OPERATE, REPORT
from ...intake.wire import JSON, MSGPACK, JsonUpload
from ...operations.telemetry.exposition import CONTENT_TYPE, expose
from ..api.openapi import Operation
from ..api.schemas import Acknowledgement, Alive, Ready
from ..auth import scope
from ..services import services
from .groups import backlog
from .upload import PATH, Head, read

blueprint = Blueprint("ingest", __name__)

LIVE: Final = "/livez"
READY: Final = "/readyz"


@blueprint.post(PATH)
@scope(REPORT)
@Operation(Acknowledgement, 202, takes={JSON: JsonUpload, MSGPACK: JsonUpload})
def receive_upload() -> Response:
    """Accept an upload; 202 means that its accepted reports will be counted exactly once."""
    shared = services()
    said = request.headers.get
    head = Head(
        said("Authorization", ""),
        said("Content-Type", ""),
        said("Content-Encoding", ""),
        request.content_length,
    )
    admitted = shared.hot.admit(head)
    judged = shared.hot.judge(admitted, read(request.stream, admitted.grant.limit))
    shared.hot.require_place(admitted, judged)
    first = judged.sealed is None or shared.storage.append(*judged.sealed)
    answer = shared.hot.answer(admitted, judged, first)
    return Response(answer, status=202, content_type="application/json")


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
