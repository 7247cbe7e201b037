"""What an answer means for the upload it answers.  Pure.

Only the collector can say that it has an upload, by its acknowledgement, or that it will never take
it, by a problem document of its own.  A proxy or a captive portal speaks for the way, not for the
upload: nothing is deleted on its word.
"""

from __future__ import annotations

import json
from enum import Enum, auto
from typing import Any, Final

from .core.dataclass import dataclass
from .core.limits import MAX_ANSWER

ACCEPTED: Final = 202
TOO_LARGE: Final = 413
PROBLEM: Final = "application/problem+json"  # RFC 9457
PROBLEM_TYPE: Final = "urn:hearsay:problem:"  # how the type of every problem of a collector begins
_TRANSIENT: Final = (408, 425, 429)  # and every 5xx
_PERMANENT: Final = (400, 409, 410, 413, 415, 422)  # these blame the body, nothing else does


@dataclass(frozen=True)
class Answer:
    """What was answered, by the collector or by whatever stands before it."""

    status: int
    retry_after: float | None = None  # seconds
    body: bytes = b""
    content_type: str = ""


class Outcome(Enum):
    """What an answer means for the upload."""

    ACCEPTED = auto()  # durable at the collector: delete
    TRANSIENT = auto()  # keep, and send the same bytes later
    PERMANENT = auto()  # never accepted as it is, by the collector's own word: drop
    INCAPABLE = auto()  # this key, address or proxy cannot take it now: keep, as if transient


def outcome_of(answer: Answer) -> Outcome:
    """Return what *answer* means."""
    status = answer.status
    if status == ACCEPTED and is_acknowledgement(answer.body):
        return Outcome.ACCEPTED
    if status in _TRANSIENT or 500 <= status <= 599:
        return Outcome.TRANSIENT
    return Outcome.PERMANENT if status in _PERMANENT and _is_ours(answer) else Outcome.INCAPABLE


def is_acknowledgement(body: bytes) -> bool:
    """Whether *body* is that of a collector's 202, come whole."""
    return type(_object_in(body).get("accepted")) is int


def read_acknowledgement(body: bytes) -> tuple[int, bool]:
    """Return how many reports were rejected and whether the upload was known, from a 202's body.

    It only feeds the counts, so anything unexpected reads as nothing rejected, not known.
    """
    answer = _object_in(body)
    entries = answer.get("rejected")
    counts = [
        entry.get("count")
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
    ]
    rejected = sum(count for count in counts if type(count) is int and count > 0)
    return rejected, answer.get("duplicate") is True


def _is_ours(answer: Answer) -> bool:
    """Whether the collector itself answered, and its document came whole."""
    if answer.content_type.partition(";")[0].strip().lower() != PROBLEM:
        return False
    document = _object_in(answer.body)
    kind = document.get("type")
    ours = isinstance(kind, str) and kind.startswith(PROBLEM_TYPE)
    return ours and document.get("status") == answer.status


def _object_in(body: bytes) -> dict[str, Any]:
    """Return the JSON object that *body* is; an empty one if it is none."""
    if len(body) > MAX_ANSWER:
        return {}
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}
