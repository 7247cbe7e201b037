"""Uploads and health under Flask, for the document, tests and other servers; and GET /metrics.

``hearsay serve`` answers all but the last before Flask, by the same steps: see ``front``.
"""

from __future__ import annotations

import hashlib
from typing import Final

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound, ServiceUnavailable

from ...core.credentials import OPEN, OPERATE, REPORT
from ...core.errors import ConfigError
from ...intake.wire import JSON, MSGPACK, JsonUpload
from ...operations.doctor.retirement import retired_list as retired_list
from ...operations.telemetry.exposition import CONTENT_TYPE, expose
from ..api.openapi import Operation
from ..api.schemas import Acknowledgement, Alive, Ready
from ..auth import scope
from ..services import CACHE, FOR_EVERYBODY, services
from .groups import backlog
from .upload import PATH, Head, read

blueprint = Blueprint("ingest", __name__)

LIVE: Final = "/livez"
READY: Final = "/readyz"
RETIRED_PATH: Final = "/v1/retired"


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


@blueprint.get(RETIRED_PATH)
@scope(OPEN)
@Operation(problems=(404, 503), is_kept=True)
def retired() -> ResponseReturnValue:
    """Give the signed list of retired metrics, the same to everybody; 404 if there is none."""
    path = services().config.retired
    if not path:
        raise NotFound
    try:
        text = retired_list(path)
    except ConfigError as error:
        raise ServiceUnavailable from error
    response = Response(text, content_type=JSON)
    response.set_etag(hashlib.sha256(text).hexdigest()[:32])
    response.headers[CACHE] = FOR_EVERYBODY
    return response.make_conditional(request)


@blueprint.get("/metrics")
@scope(OPERATE)
@Operation(media_type=CONTENT_TYPE)
def metrics() -> ResponseReturnValue:
    """Tell the state; whichever process answers, the counts are those of all."""
    return expose(services().snapshot()), {"Content-Type": CONTENT_TYPE}
