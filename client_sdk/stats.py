"""What became of the values and reports, counted by reason.  The set of reasons is closed.

Reports obey a conservation law: every report ``recorded`` is later counted once under ``uploaded``,
``rejected``, ``outbox_full``, ``too_old`` or ``revoked``, or it still waits in the outbox.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from .errors import (
    AlreadyReportedError,
    BudgetExhaustedError,
    ConsentError,
    EntropyError,
    ExpiredMetricError,
    InvalidValueError,
    StoreError,
    TransportError,
    UnknownMetricError,
)
from .locks import ProcessLock


class Reason(StrEnum):
    """Why a count went up."""

    # calls of record: the value became a report, or it was refused and nothing was drawn
    RECORDED = "recorded"
    CONSENT = "consent"
    UNKNOWN_METRIC = "unknown_metric"
    INVALID_VALUE = "invalid_value"
    EXPIRED = "expired"
    ALREADY_REPORTED = "already_reported"
    BUDGET = "budget"
    CLOSED = "closed"

    # reports that waited
    OUTBOX_FULL = "outbox_full"  # the oldest made room
    TOO_OLD = "too_old"
    REVOKED = "revoked"  # wiped when consent was denied
    UPLOADED = "uploaded"  # acknowledged by the collector
    REJECTED = "rejected"  # refused for good by the collector

    # uploads
    DUPLICATES = "duplicates"  # acknowledged again: an earlier answer was lost
    NETWORK = "network"  # tries without an answer
    POSTPONED = "postponed"  # tries that the collector asked to repeat later
    REFUSED = "refused"  # tries turned away because of the key, the address or a proxy

    # failures of the device, whatever was being done
    ENTROPY = "entropy"
    STORE = "store"
    INTERNAL = "internal"  # an error that this package does not define


class Stats:
    """Counts by reason since the client was made.  Holds no names, values or times."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._counts: Counter[Reason] = Counter()
        self._lock = ProcessLock()

    def add(self, reason: Reason, count: int = 1) -> None:
        """Count *reason* another *count* times."""
        with self._lock:
            self._counts[reason] += count

    def counts(self) -> dict[str, int]:
        """Return the count of every reason, zeros included."""
        with self._lock:
            return {reason.value: self._counts[reason] for reason in Reason}


def reason_of(error: Exception) -> Reason:
    """Return the reason under which *error* is counted."""
    reasons: dict[type[Exception], Reason] = {
        AlreadyReportedError: Reason.ALREADY_REPORTED,
        BudgetExhaustedError: Reason.BUDGET,
        ConsentError: Reason.CONSENT,
        EntropyError: Reason.ENTROPY,
        ExpiredMetricError: Reason.EXPIRED,
        InvalidValueError: Reason.INVALID_VALUE,
        StoreError: Reason.STORE,
        TransportError: Reason.NETWORK,
        UnknownMetricError: Reason.UNKNOWN_METRIC,
    }
    return reasons.get(type(error), Reason.INTERNAL)
