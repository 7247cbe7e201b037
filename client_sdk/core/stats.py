"""What became of the values and reports, counted by reason, and logged for developers.

The set of reasons is closed, and counts obey three laws of conservation.  Every call of ``record``,
and every window that is ``window_closed``, is counted once under what became of it: the first group
of reasons, or a failure.  Every report ``recorded`` is later counted once under ``uploaded``,
``withheld``, ``rejected``, ``outbox_full``, ``too_old``, ``revoked`` or ``withdrawn``, or it still
waits in the outbox.  Every window that is ``window_opened`` is later counted once under
``window_closed`` or ``window_dropped``, or it is still open.

A failure is a line of the logger "hearsay" at level DEBUG.  Of a call that was refused it says
which metric, which rule, and from which line.  Of any other error it says which kind came from
where, and never its text, which may hold what was recorded.  What a developer has to fix before
the application works as meant is a WARNING, of a program that has set up ``logging``: without a
handler it would be on the terminal of a user, who can do nothing about it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from threading import RLock

from .errors import (
    AlreadyReportedError,
    AutomatedError,
    BudgetExhaustedError,
    ConsentError,
    EntropyError,
    ExpiredMetricError,
    InvalidValueError,
    NotInPanelError,
    OptedOutError,
    RegistryError,
    StoreError,
    TransportError,
    UnknownMetricError,
    UnusableFolderError,
)
from .locks import PerProcess
from .typing import Final

LOGGER: Final = "hearsay"
_CALLER_ERRORS: Final = (UnknownMetricError, InvalidValueError, ExpiredMetricError)


class Reason(StrEnum):
    """Why a count went up."""

    # calls of record: the value became a report, or it was refused and nothing was drawn
    RECORDED = "recorded"
    AGGREGATED = (
        "aggregated"  # the value was added to its epoch's aggregate, which is reported later
    )
    CONSENT = "consent"
    OPTED_OUT = "opted_out"  # by the environment, a policy of the machine or the user's setting
    AUTOMATED = "automated"  # a machine runs the application by itself
    UNKNOWN_METRIC = "unknown_metric"
    INVALID_VALUE = "invalid_value"
    EXPIRED = "expired"
    RETIRED = "retired"  # the developer stopped this metric by a signed list
    ALREADY_REPORTED = "already_reported"
    NOT_IN_PANEL = "not_in_panel"  # this device was drawn to report of other metrics now
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
    WITHDRAWN = "withdrawn"  # deleted when their metric was retired
    UPLOADED = "uploaded"  # acknowledged by the collector
    WITHHELD = "withheld"  # would have been uploaded, but it is a dry run
    REJECTED = "rejected"  # refused for good by the collector

    # uploads
    DUPLICATES = "duplicates"  # acknowledged again: an earlier answer was lost
    NETWORK = "network"  # tries without an answer
    POSTPONED = "postponed"  # tries that the collector asked to repeat later
    REFUSED = "refused"  # tries turned away because of the key, the address or a proxy
    LIST_REFUSED = "list_refused"  # of retired metrics: not signed by its developer, or an old one

    # failures of the device, whatever was being done
    ENTROPY = "entropy"
    STORE = "store"
    LATE = "late"  # ends that waited too short a time: what was recorded last may be lost
    INTERNAL = "internal"  # an error that this package does not define


# What a developer did wrong: counted in production, raised by a strict client.
MISTAKES: Final = (Reason.UNKNOWN_METRIC, Reason.INVALID_VALUE, Reason.EXPIRED, Reason.INTERNAL)


class Stats:
    """Counts by reason since the client was made.  Holds no names, values or times.

    Each process counts what it did itself: a forked child begins at zero.
    """

    def __init__(self) -> None:
        # of each process, with a lock: a signal handler may record while its thread counts
        self._mine = PerProcess(lambda: (dict.fromkeys(Reason, 0), RLock()))
        self._logged: set[tuple[str, str]] = set()  # reason and metric: a developer was warned

    def add(self, reason: Reason, count: int = 1) -> None:
        """Count *reason* another *count* times."""
        counts, lock = self._mine()
        with lock:
            counts[reason] += count

    def add_all(self, counts: Mapping[Reason, int]) -> None:
        """Count each reason of *counts* as often as it says."""
        for reason, count in counts.items():
            self.add(reason, count)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what stops the block: an application must not fail because its telemetry does."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.fail(error)

    def fail(self, error: Exception, count: int = 1, reason: Reason | None = None) -> None:
        """Count *count* failures under *reason*, by default the reason of *error*'s type.

        The first failure of each reason and metric goes to the debug log.
        """
        reason = reason_of(error) if reason is None else reason
        self.add(reason, count)
        about = getattr(error, "what", "")
        if isinstance(error, RegistryError):
            self.warn("registry", f"{error}; no device reports it: compile the registry again")
        if isinstance(error, UnusableFolderError):
            self.warn("data_dir", f"{error}; nothing is recorded")
        if reason is Reason.EXPIRED:
            self.warn(about, f"{error}; it is recorded no more: renew or remove it")
        self._once((reason, about), lambda: log_failure(reason, error))

    def warn(self, about: str, message: str) -> None:
        """Tell a developer *message*, once *about* each thing."""
        self._once(("warning", about), lambda: warn(message))

    def _once(self, subject: tuple[str, str], log: Callable[[], bool]) -> None:
        if subject not in self._logged:
            self._logged.add(subject)  # it comes before the log, whose handlers may record too
            if not log():
                self._logged.discard(subject)  # another may listen later

    def counts(self) -> dict[str, int]:
        """Return the count of every reason, zeros included."""
        counts, lock = self._mine()
        with lock:
            return {reason.value: count for reason, count in counts.items()}


def reason_of(error: Exception) -> Reason:
    """Return the reason under which *error* is counted."""
    reasons: dict[type[Exception], Reason] = {
        AlreadyReportedError: Reason.ALREADY_REPORTED,
        AutomatedError: Reason.AUTOMATED,
        BudgetExhaustedError: Reason.BUDGET,
        ConsentError: Reason.CONSENT,
        EntropyError: Reason.ENTROPY,
        ExpiredMetricError: Reason.EXPIRED,
        InvalidValueError: Reason.INVALID_VALUE,
        NotInPanelError: Reason.NOT_IN_PANEL,
        OptedOutError: Reason.OPTED_OUT,
        StoreError: Reason.STORE,
        UnusableFolderError: Reason.STORE,
        TransportError: Reason.NETWORK,
        UnknownMetricError: Reason.UNKNOWN_METRIC,
    }
    return reasons.get(type(error), Reason.INTERNAL)


def log_failure(reason: str, error: BaseException) -> bool:
    """Log that *error* was counted under *reason*; return whether any handler listens."""
    logging = sys.modules.get("logging")
    if logging is None:  # no handler can exist, and the import takes milliseconds
        return False
    logger = logging.getLogger(LOGGER)
    if not logger.isEnabledFor(logging.DEBUG):
        return False
    with suppress(Exception):  # an application's own handler may raise
        if isinstance(error, _CALLER_ERRORS):
            logger.debug("%s: %s; recorded at %s", reason, rule_of(error), caller())
        else:
            logger.debug("%s: %s at %s", reason, _kind(error), _place(error))
    return True


def warn(message: str) -> bool:
    """Log *message*, which is meant for developers; return whether any handler listens."""
    logging = sys.modules.get("logging")
    if logging is None or not logging.getLogger(LOGGER).hasHandlers():
        return False
    with suppress(Exception):  # an application's own handler may raise
        logging.getLogger(LOGGER).warning(message)
    return True


def rule_of(error: BaseException) -> str:
    """Return the rule that a call of ``record`` broke; no word of it comes from the call."""
    if isinstance(error, UnknownMetricError):
        return "the registry has no metric of that name"
    return str(error) if isinstance(error, _CALLER_ERRORS) else type(error).__name__


def caller() -> str:
    """Return module and line of the application's code that called this package."""
    frame = sys._getframe()
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__')}:{frame.f_lineno}"


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]


def _kind(error: BaseException) -> str:
    """Return the type of *error*, and of what caused it."""
    kind, cause = type(error).__name__, error.__cause__
    if cause is None:
        return kind
    code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "errno", None)
    return f"{kind} from {type(cause).__name__}" + ("" if code is None else f" {code}")


def _place(error: BaseException) -> str:
    """Return the module and line that raised *error*."""
    trace = error.__traceback__
    if trace is None:
        return "an unknown place"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
