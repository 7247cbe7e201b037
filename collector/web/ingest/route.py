"""Uploads and health under Flask, for the document and for tests; and GET /metrics.

``hearsay serve`` answers all but the last before Flask, by the same steps: see ``front``.
"""

from __future__ import annotations

import hashlib
from typing import IO, Final, NoReturn

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound, ServiceUnavailable

from client_sdk.wire.oblivious import ANSWER_TYPE, REQUEST_TYPE
from client_sdk.wire.oblivious import PATH as OBLIVIOUS
from client_sdk.wire.private_token import HEADER

from ...core.credentials import OPEN, OPERATE, REPORT
from ...core.errors import ConfigError
from ...intake.wire import JSON, MSGPACK, JsonUpload
from ...operations.doctor.retirement import retired_list as retired_list
from ...operations.telemetry.exposition import CONTENT_TYPE, expose
from ...serving.application import LIVE
from ..api.openapi import Operation
from ..api.schemas import Acknowledgement, Alive, Ready
from ..auth import scope
from ..services import CACHE, FOR_EVERYBODY, Services, services
from .oblivious import RETIRED_PATH as RETIRED_PATH
from .upload import PATH, Head, acknowledgement, read

blueprint = Blueprint("ingest", __name__)
_TOKEN: Final = {
    "name": HEADER,
    "in": "header",
    "schema": {"type": "string"},
    "description": "A one-time token (RFC 9578) in base64url, whose hash is the id of the upload.",
}

READY: Final = "/readyz"


@blueprint.post(PATH)
@scope(REPORT)
@Operation(
    Acknowledgement, 202, parameters=(_TOKEN,), takes={JSON: JsonUpload, MSGPACK: JsonUpload}
)
def receive_upload() -> Response:
    """Accept an upload; 202 means that its accepted reports will be counted exactly once."""
    head = Head.of(request.headers.get, request.content_length)
    answer = accept(services(), head, request.stream)
    return Response(answer, status=202, content_type="application/json")


def accept(shared: Services, head: Head, body: IO[bytes]) -> bytes:
    """Return the acknowledgement of an upload; see HotRoute for what it raises."""
    admitted = shared.hot.admit(head)
    judged = shared.hot.judge(admitted, read(body, admitted.grant.limit))
    shared.hot.require_place(admitted, judged)
    first = judged.sealed is None or shared.storage.append(*judged.sealed)
    shared.hot.count(admitted, judged, first)
    return acknowledgement(judged.verdict, first)


@blueprint.post(OBLIVIOUS)
@scope(OPEN)
@Operation(media_type=ANSWER_TYPE, carries=REQUEST_TYPE, problems=(404, 422))
def receive_capsule() -> NoReturn:
    """Answer what is in a capsule of RFC 9458 in its own answer; 404 without keys of capsules."""
    raise NotFound  # where there are keys, it is answered before Flask


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
    """Show whether uploads can be stored, in which shards not, and how many wait; 503 if none."""
    return services().pressure.ready()


@blueprint.get(RETIRED_PATH)
@scope(OPEN)
@Operation(problems=(404, 503), is_kept=True)
def retired() -> ResponseReturnValue:
    """Give the signed list of retired metrics, the same to everybody; 404 if there is none."""
    text = services().retired()
    response = Response(text, content_type=JSON)
    response.set_etag(hashlib.sha256(text).hexdigest()[:32])
    response.headers[CACHE] = FOR_EVERYBODY
    return response.make_conditional(request)


def list_of(path: str) -> bytes:
    """Return the list in the file *path*.  Raises NotFound, ServiceUnavailable."""
    if not path:
        raise NotFound
    try:
        return retired_list(path)
    except ConfigError as error:
        raise ServiceUnavailable from error


@blueprint.get("/metrics")
@scope(OPERATE)
@Operation(media_type=CONTENT_TYPE)
def metrics() -> ResponseReturnValue:
    """Expose metrics for Prometheus: the counts of all processes, whichever answers."""
    return expose(services().snapshot()), {"Content-Type": CONTENT_TYPE}
