"""POST /v1/reports: check an upload, append it durably, acknowledge."""

from __future__ import annotations

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from client_sdk.epoch import day_of

from ..entry import encode
from ..errors import UnsupportedTypeError
from ..intake import judge
from ..wire import JSON, MSGPACK, decode
from .auth import require_write_key
from .bodies import read_body
from .services import services

blueprint = Blueprint("ingest", __name__)


@blueprint.post("/v1/reports")
def receive_upload() -> ResponseReturnValue:
    """Accept an upload; 202 means that its accepted reports will be counted exactly once."""
    shared = services()
    limit = require_write_key()
    if request.mimetype not in (JSON, MSGPACK):
        raise UnsupportedTypeError(f"Content-Type must be {JSON} or {MSGPACK}")
    upload = decode(read_body(limit), request.mimetype)
    verdict = judge(upload, shared.catalog, day_of(shared.clock()))
    first = not verdict.accepted or shared.storage.append(
        upload.id, upload.sealed, encode(verdict.accepted)
    )
    rejected = [
        {"column": rejection.column, "reason": rejection.reason, "count": rejection.count}
        for rejection in verdict.rejected
    ]
    return {"accepted": verdict.reports, "duplicate": not first, "rejected": rejected}, 202
