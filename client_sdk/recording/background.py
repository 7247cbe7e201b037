"""The thread that writes what waits: callers wait for no disk and no network.

It is a clock only: whoever wants everything written, and can wait, writes it himself.  Each
process has its own.  Some servers decide where a thread may run, and how their children end; none
of them is imported here: what is not loaded is not the host.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum

from ..core.errors import InvalidParameterError
from ..core.typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

T = TypeVar("T")

GROUP_SIZE: Final = 100  # a transaction; the fsync is shared, and the database lock is short
GROUPS: Final = 20  # at once; an end, even if more keeps coming
GROUP_DELAY: Final = 0.25  # seconds that values wait for company after others were written
# seconds; a clock that was set, a long sleep or a user's no is noticed after these at the latest.
# Whatever writes, sends or shows looks for a no by itself: what is left lies in memory only, and is
# not worth waking a battery oftener.
MAX_IDLE: Final = 300.0

_OFF: Final = ("", "0", "false", "off", "no")
_THREADS: Final = ("enable-threads", "threads")  # each of these lets threads run
THREADS_STAND_STILL: Final = (
    "uwsgi: enable-threads is off, so values are written by the requests that record them and"
    " sent when their worker ends; start uWSGI with --enable-threads"
)
_FORKS_IN_C: Final = "uwsgi: a thread of the master would be copied into its workers"


class Mode(StrEnum):
    """Who writes values down and sends reports."""

    BACKGROUND = "background"  # a thread, on a schedule
    MANUAL = "manual"  # the caller of record and flush; there is no thread

    @classmethod
    def of(cls, mode: object) -> Mode:
        """Return *mode* as a Mode.  Raises InvalidParameterError."""
        if not isinstance(mode, str) or mode not in tuple(cls):
            raise InvalidParameterError("mode", mode, f"must be one of {', '.join(cls)}")
        return cls(mode)


ModeLike: TypeAlias = "Mode | Literal['background', 'manual']"


class _Call:
    """What one thread waits for; calls that come before it waits are one.

    It is a lock that is released: a signal's handler may do that, and what makes greenlets of
    threads (gevent, eventlet) also makes locks for them, but not every kind of queue.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def make(self) -> None:
        with suppress(RuntimeError):  # a call waits already
            self._lock.release()

    def wait(self, timeout: float) -> None:
        """Return after a call, or after *timeout* seconds."""
        self._lock.acquire(timeout=timeout)


class Background(Generic[T]):
    """Writes in groups what one process has put down, from a thread of its own."""

    def __init__(
        self,
        take: Callable[[int], list[T]],
        commit: Callable[[list[T]], None],
        idle: Callable[[], float],
        finish: Callable[[], None],
        started: Callable[[], None] = lambda: None,
        forbidden: Callable[[], bool] = lambda: False,
    ) -> None:
        """Start nothing yet.  None of these may raise.

        Args: take: removes and returns up to so many of what waits.
              commit: writes 1 to GROUP_SIZE of them.
              idle: is called by the thread before each wait and says how many seconds to wait.
              finish: is called by the thread when it ends.
              started: is called when a thread was started.
              forbidden: whether this process must have no thread.
        """
        self._take, self._commit, self._idle, self._finish = take, commit, idle, finish
        self._started, self._forbidden = started, forbidden
        self._wake, self._end = _Call(), _Call()
        self.notified = False  # whether the thread was notified since it last looked
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        # The writing thread holds it.  A signal's handler that records may come right after that,
        # before the thread is known to write: it must not wait for itself.
        self._turn = threading.RLock()
        self._writer = 0  # the thread that writes
        self._wrote = -GROUP_DELAY  # when anything was, on the monotonic clock

    def notify(self) -> bool:
        """Have the thread write soon what waits; start it if there is none.

        Returns: False if there can be no thread: the caller is to write it.
        """
        if self.notified:
            return True
        # the flag comes before the call: the thread takes the flag back before it looks
        self.notified = True
        if self.wake():
            return True
        self.notified = False
        return False

    def wake(self) -> bool:
        """Let the thread call ``idle`` now; start it if there is none.

        Returns: False if there can be no thread, so that nothing will be done.
        """
        if not self._runs:
            return self._start()
        self._wake.make()
        return True

    @property
    def may_wait(self) -> bool:
        """Whether a process without a thread may leave what waits to its next value, or its end."""
        recent = time.monotonic() - self._wrote < GROUP_DELAY
        return recent and why_no_thread() == THREADS_STAND_STILL

    @property
    def writes_here(self) -> bool:
        """Whether this thread writes just now, so that something it called asks."""
        return self._writer == threading.get_ident()

    @property
    def writing(self) -> bool:
        """Whether another thread writes just now."""
        return self._writer not in (0, threading.get_ident())

    def drain(self, timeout: float) -> bool:
        """Write all that waits; return False if others were at it all the time."""
        if self.writes_here:
            return False  # commit itself called this
        if not self._turn.acquire(timeout=min(max(timeout, 0.0), threading.TIMEOUT_MAX)):
            return False
        try:
            self._writer = threading.get_ident()
            self._write()
        finally:
            self._writer = 0
            self._turn.release()
        return True

    def stop(self, timeout: float) -> bool:
        """Let the thread write what waits, finish and end, and wait up to *timeout* seconds.

        Returns: False if this process has no thread, so that nothing was or will be done.
        """
        thread = self._thread
        if thread is None or not thread.is_alive():
            return False
        self._stopping = True
        self._wake.make()
        self._end.make()
        if thread is not threading.current_thread():
            thread.join(timeout)
        return True

    @property
    def _runs(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _start(self) -> bool:
        """Start the thread; return False if that cannot be."""
        if self._stopping or self._forbidden():
            return False
        if not self._starting.acquire(blocking=False):
            return True  # another thread writes
        try:
            if not self._runs:
                # it is a daemon: ``stop`` bounds the end of the process, not the disk
                thread = threading.Thread(target=self._run, name="hearsay", daemon=True)
                thread.start()
                self._thread = thread
        except RuntimeError:  # too many threads, an interpreter that ends, or one that has none
            return False
        finally:
            self._starting.release()
        self._started()
        return True

    def _run(self) -> None:
        try:
            while True:
                self.notified = False
                # the first value is written at once; those that come meanwhile share what follows
                wrote = self._drain_here()
                if self._stopping:
                    break
                wait = min(max(self._idle(), GROUP_DELAY), MAX_IDLE)
                if wrote:
                    self._end.wait(GROUP_DELAY)
                if not self._stopping:
                    self._wake.wait(wait)
            self._drain_here()  # values may have come before the stop
            self._finish()
        finally:
            self.notified = False  # the next value starts another thread, whatever ended this

    def _drain_here(self) -> bool:
        """Write all that waits; return whether anything did."""
        with self._turn:
            self._writer = threading.get_ident()
            try:
                return self._write()
            finally:
                self._writer = 0

    def _write(self) -> bool:
        for groups in range(GROUPS):
            group = self._take(GROUP_SIZE)
            if not group:
                return groups > 0
            self._commit(group)
            self._wrote = time.monotonic()
        return True


def seconds_of(timeout: float) -> float:
    """Return *timeout*, within what a lock can wait.  Raises TypeError, ValueError: no number."""
    try:
        seconds = float(timeout)
    except OverflowError:
        return threading.TIMEOUT_MAX
    if seconds != seconds:
        raise ValueError("timeout=nan: must be a number")
    return min(max(seconds, 0.0), threading.TIMEOUT_MAX)


def run_within(timeout: float, action: Callable[[], None]) -> None:
    """Run *action* and wait for it no longer than *timeout* seconds, if a thread may run it."""
    if why_no_thread() is not None:
        action()
        return
    try:
        thread = threading.Thread(target=action, name="hearsay-close", daemon=True)
        thread.start()
    except RuntimeError:  # too many threads, an interpreter that ends, or one that has none
        action()
    else:
        thread.join(timeout)


def why_no_thread() -> str | None:
    """Return why this process must have no thread of ours; None if it may have one.

    uWSGI forks its workers in C, without a word to Python: a thread of the master that runs at that
    moment holds, in the child, locks of the interpreter that nobody ever releases.  And without
    its option for threads they stand still while no request is served.
    """
    uwsgi: Any = sys.modules.get("uwsgi")
    if uwsgi is None:
        return None
    try:
        if uwsgi.worker_id() == 0:
            return _FORKS_IN_C
        return None if _threads_run(uwsgi) else THREADS_STAND_STILL
    except Exception:  # noqa: BLE001 - something else of that name
        return None


def at_end_of_child(action: Callable[[], None]) -> None:
    """Have *action* run when this process ends, if it is one that runs no function of ``atexit``.

    Those are the children of multiprocessing, and of billiard, by which Celery forks; the workers
    of Celery's pool do not even run the finalizers of billiard, but send a signal of their own.
    """
    for package in ("multiprocessing", "billiard"):
        process: Any = sys.modules.get(f"{package}.process")
        util: Any = sys.modules.get(f"{package}.util")
        if process is not None and util is not None and _is_child(process):
            util.Finalize(None, action, exitpriority=0)
            signals: Any = sys.modules.get("celery.signals")
            if package == "billiard" and signals is not None:
                signals.worker_process_shutdown.connect(lambda **_: action(), weak=False)


def _is_child(process: Any) -> bool:
    if hasattr(process, "parent_process"):
        return process.parent_process() is not None
    return getattr(process.current_process(), "_parent_pid", None) is not None


def _threads_run(uwsgi: Any) -> bool:
    """Whether threads run in this worker.  Later versions say so; the option is of earlier ones."""
    if getattr(uwsgi, "has_threads", 0):
        return True
    for key, value in uwsgi.opt.items():
        name = key.decode() if isinstance(key, bytes) else key
        if name in _THREADS and _text(value) not in _OFF:
            return True
    return False


def _text(value: Any) -> str:
    """Return the value of an option; a flag is True, and an option given twice is a list."""
    last = value[-1] if isinstance(value, list) and value else value
    return last.decode().lower() if isinstance(last, bytes) else str(last).lower()
