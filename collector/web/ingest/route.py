"""POST /v1/reports under Flask, for tests and other servers.

``hearsay serve`` answers it before Flask, by the same steps: see ``front``.
"""

from __future__ import annotations

from flask import Blueprint, Response, request

from ...core.credentials import REPORT
from ...intake.wire import JSON, MSGPACK, JsonUpload
from ..api.openapi import Operation
from ..api.schemas import Acknowledgement
from ..auth import scope
from ..services import services
from ..upload import PATH, Head, read

blueprint = Blueprint("ingest", __name__)


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
