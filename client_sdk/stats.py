"""What became of the values and reports, counted by reason.  The set of reasons is closed.

Counts obey three laws of conservation.  Every call of ``record``, and every window that is
``window_closed``, is counted once under what became of it: the first group of reasons, or a
failure.  Every report ``recorded`` is later counted once under ``uploaded``, ``withheld``,
``rejected``, ``outbox_full``, ``too_old`` or ``revoked``, or it still waits in the outbox.  Every
window that is ``window_opened`` is later counted once under ``window_closed`` or
``window_dropped``, or it is still open.
"""

from __future__ import annotations

from enum import StrEnum
from threading import RLock
from typing import Final

from .debug_log import log_failure, warn
from .errors import (
    AlreadyReportedError,
    BudgetExhaustedError,
    ConsentError,
    EntropyError,
    ExpiredMetricError,
    InvalidValueError,
    OptedOutError,
    StoreError,
    TransportError,
    UnknownMetricError,
)
from .locks import PerProcess


class Reason(StrEnum):
    """Why a count went up."""

    # calls of record: the value became a report, or it was refused and nothing was drawn
    RECORDED = "recorded"
    AGGREGATED = "aggregated"  # the value was added to those of its epoch: the window reports them
    CONSENT = "consent"
    OPTED_OUT = "opted_out"  # by the environment, a policy of the machine or the user's setting
    UNKNOWN_METRIC = "unknown_metric"
    INVALID_VALUE = "invalid_value"
    EXPIRED = "expired"
    ALREADY_REPORTED = "already_reported"
    BUDGET = "budget"
    CLOSED = "closed"
    QUEUE_FULL = "queue_full"  # more metrics and epochs wait to be written than memory is kept for
    DROPPED = "dropped"  # charged, but the application's on_report did not let it out

    # windows, in which values are aggregated until their epoch is over
    WINDOW_OPENED = "window_opened"  # by a value, or because its metric reports every epoch
    WINDOW_CLOSED = "window_closed"  # its one report was made, or refused as a value may be
    WINDOW_DROPPED = "window_dropped"  # too old for the collector, erased, or its secret was lost

    # reports that waited
    OUTBOX_FULL = "outbox_full"  # the oldest made room
    TOO_OLD = "too_old"
    REVOKED = "revoked"  # erased when consent was denied
    UPLOADED = "uploaded"  # acknowledged by the collector
    WITHHELD = "withheld"  # would have been uploaded, but it is a dry run
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


class _Counts:
    """The counts of one process."""

    def __init__(self) -> None:
        self.by_reason = dict.fromkeys(Reason, 0)
        self.lock = RLock()  # a signal handler may record while its thread counts


# What a developer did wrong: counted in production, raised by a strict client.
MISTAKES: Final = (Reason.UNKNOWN_METRIC, Reason.INVALID_VALUE, Reason.EXPIRED, Reason.INTERNAL)


class Stats:
    """Counts by reason since the client was made.  Holds no names, values or times.

    Each process counts what it did itself: a forked child begins at zero.
    """

    def __init__(self) -> None:
        """Begin at zero."""
        self._mine = PerProcess(_Counts)
        self._logged: set[tuple[str, str]] = set()  # reason and metric: a developer was told

    def add(self, reason: Reason, count: int = 1) -> None:
        """Count *reason* another *count* times."""
        mine = self._mine()
        with mine.lock:
            mine.by_reason[reason] += count

    def fail(self, error: Exception, count: int = 1, reason: Reason | None = None) -> None:
        """Count what *error* stopped, under *reason* or that of its type.

        The first one of each reason and metric is told to the debug log.
        """
        reason = reason_of(error) if reason is None else reason
        self.add(reason, count)
        about = getattr(error, "what", "")
        if reason is Reason.EXPIRED:
            self.warn(about, f"{error}; it is recorded no more: renew or remove it")
        if (reason, about) not in self._logged:
            self._logged.add((reason, about))  # before the log, whose handlers may record, too
            if not log_failure(reason, error):
                self._logged.discard((reason, about))  # for those who listen later

    def warn(self, about: str, message: str) -> None:
        """Tell a developer *message*, once *about* each thing."""
        if ("warning", about) not in self._logged:
            self._logged.add(("warning", about))
            warn(message)

    def counts(self) -> dict[str, int]:
        """Return the count of every reason, zeros included."""
        mine = self._mine()
        with mine.lock:
            return {reason.value: count for reason, count in mine.by_reason.items()}


def reason_of(error: Exception) -> Reason:
    """Return the reason under which *error* is counted."""
    reasons: dict[type[Exception], Reason] = {
        AlreadyReportedError: Reason.ALREADY_REPORTED,
        BudgetExhaustedError: Reason.BUDGET,
        ConsentError: Reason.CONSENT,
        EntropyError: Reason.ENTROPY,
        ExpiredMetricError: Reason.EXPIRED,
        InvalidValueError: Reason.INVALID_VALUE,
        OptedOutError: Reason.OPTED_OUT,
        StoreError: Reason.STORE,
        TransportError: Reason.NETWORK,
        UnknownMetricError: Reason.UNKNOWN_METRIC,
    }
    return reasons.get(type(error), Reason.INTERNAL)
