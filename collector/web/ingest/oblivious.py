"""POST /v1/oblivious: requests of devices in capsules that a relay carried.

What is in a capsule is answered in its own answer, as it would be on its own, refusals included.
What cannot be opened has one answer, of one size, whatever is wrong with it.  So a relay learns
that capsules came through, and nothing else; and the collector sees the relay's address only.

A capsule holds an upload, or asks for the list of retired metrics, and nothing else.
"""

from __future__ import annotations

from typing import Final

from client_sdk.wire.binary_http import Fields, Request
from client_sdk.wire.oblivious import ANSWER_TYPE, REQUEST_TYPE

from ...core.cells import RELAYED
from ...core.errors import CapsuleError, UnknownRequestError
from ...core.logs import Incidents
from ...intake.capsules import OpenCapsule, Opener
from ...intake.wire import JSON
from ...operations.telemetry.activity import Activity
from ..problems import document_of
from .upload import PATH, Head

RETIRED_PATH: Final = "/v1/retired"
OUTER: Final = (("content-type", ANSWER_TYPE),)  # headers of what carries an answer
_INNER: Final[Fields] = (("content-type", JSON),)
_RELAYED: Final = frozenset((RELAYED,))


def open_capsule(opener: Opener, content_type: str, message: bytes) -> OpenCapsule:
    """Return what is in the capsule *message*.  Raises CapsuleError."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind != REQUEST_TYPE:
        raise CapsuleError
    return opener.open(message)


def asks_for_list(request: Request) -> bool:
    """Return whether *request* asks for the list of retired metrics."""
    return (request.method, request.path) == ("GET", RETIRED_PATH)


def head_of(request: Request) -> Head:
    """Return the head of the upload that *request* is.  Raises UnknownRequestError."""
    if (request.method, request.path) != ("POST", PATH):
        rule = f"must be POST {PATH} or GET {RETIRED_PATH}"
        raise UnknownRequestError(f"capsule: {rule}")
    said = dict(request.fields).get
    return Head.of(said, len(request.content), _RELAYED)


def seal_accepted(capsule: OpenCapsule, body: bytes, status: int = 202) -> bytes:
    """Return the sealed answer that is the JSON *body*."""
    return capsule.answer(status, _INNER, body)


def seal_refusal(
    capsule: OpenCapsule, error: Exception, incidents: Incidents, activity: Activity
) -> bytes:
    """Return the sealed answer to a request that ended in *error*: its problem document."""
    problem = document_of(error, incidents)
    activity.refuse_upload(problem.slug)
    fields = tuple((name.lower(), value) for name, value in problem.headers)
    return capsule.answer(problem.status, fields, problem.body)
