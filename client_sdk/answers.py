"""What an answer of the collector means for the upload it answers.  Pure."""

from __future__ import annotations

import json
from enum import Enum, auto
from typing import Final

from .limits import MAX_ANSWER

_ACCEPTED: Final = 202
_TRANSIENT: Final = (408, 425, 429)  # and every 5xx
_PERMANENT: Final = (400, 409, 410, 413, 415, 422)  # these blame the body, nothing else does


class Outcome(Enum):
    """What an answer means for the upload."""

    ACCEPTED = auto()  # durable at the collector: delete
    TRANSIENT = auto()  # keep, and send the same bytes later
    PERMANENT = auto()  # never accepted as it is: drop
    INCAPABLE = auto()  # this key, address or proxy cannot take it now: keep, as if transient


def outcome_of(status: int) -> Outcome:
    """Return what HTTP *status* means."""
    if status == _ACCEPTED:
        return Outcome.ACCEPTED
    if status in _TRANSIENT or 500 <= status <= 599:
        return Outcome.TRANSIENT
    return Outcome.PERMANENT if status in _PERMANENT else Outcome.INCAPABLE


def read_acknowledgement(body: bytes) -> tuple[int, bool]:
    """Return how many reports were rejected and whether the upload was known, from a 202's body.

    It only feeds the counts, so anything unexpected reads as nothing rejected, not known.
    """
    if len(body) > MAX_ANSWER:
        return 0, False
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return 0, False
    if not isinstance(answer, dict):
        return 0, False
    entries = answer.get("rejected")
    counts = [
        entry.get("count")
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
    ]
    rejected = sum(count for count in counts if type(count) is int and count > 0)
    return rejected, answer.get("duplicate") is True
