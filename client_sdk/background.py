"""A queue in memory and the thread that empties it: callers wait for no disk and no network.

A value is put down without a lock, so a signal handler or a finalizer may do it at any moment.
The thread is a clock only: whoever wants the queue empty, and can wait, empties it himself.  Each
process has its own queue and thread.  A forked child begins with none: what its parent had queued
is its parent's to report.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar

from .locks import this_process

T = TypeVar("T")

QUEUE_SIZE: Final = 1_000  # values; some 200 kB, and more than an application means in a second
GROUP_SIZE: Final = 100  # values a transaction; the fsync is shared, and the database lock is short
GROUP_DELAY: Final = 0.25  # seconds that values wait for company; what a kill -9 can lose
# seconds; a clock that was set, a long sleep or a user's no is noticed after these at the latest.
# Whatever writes, sends or shows looks for a no by itself: what is left lies in memory only, and is
# not worth waking a battery oftener.
MAX_IDLE: Final = 300.0


class _Mine(Generic[T]):
    """What one process has of a queue."""

    def __init__(self) -> None:
        self.values: deque[T] = deque()
        self.wake: SimpleQueue[None] = SimpleQueue()
        self.awake = False  # whether the thread has been told since it last looked
        self.stopping = False
        self.thread: threading.Thread | None = None
        self.starting = threading.Lock()
        self.turn = threading.Lock()  # held by who empties the queue
        self.emptier = 0  # the thread that holds the turn

    @property
    def has_thread(self) -> bool:
        """Whether the thread runs; it may have died of what no ``except Exception`` catches."""
        return self.thread is not None and self.thread.is_alive()


class Background(Generic[T]):
    """Takes values at once and hands them on in groups, from a thread of its own."""

    def __init__(
        self,
        commit: Callable[[list[T]], None],
        idle: Callable[[], float],
        finish: Callable[[], None],
        started: Callable[[], None] = lambda: None,
    ) -> None:
        """Start nothing yet.  None of these may raise.

        Args: commit: takes 1 to GROUP_SIZE values.
              idle: is called by the thread before each wait and says how many seconds to wait.
              finish: is called by the thread when it ends.
              started: is called in each process that starts a thread.
        """
        self._commit, self._idle, self._finish, self._started = commit, idle, finish, started
        self._processes = {this_process(): _Mine[T]()}

    def put(self, value: T) -> bool:
        """Queue *value*, without I/O; return False if there is no room."""
        mine = self._mine()
        if len(mine.values) >= QUEUE_SIZE:
            return False
        mine.values.append(value)
        if not mine.has_thread:
            self._start(mine)
        if mine.thread is not None and not mine.awake:
            mine.awake = True  # before the token: the thread takes it back before it looks
            mine.wake.put(None)
        elif len(mine.values) == GROUP_SIZE:
            mine.wake.put(None)
        return True

    def wake(self) -> bool:
        """Let the thread call ``idle`` now, without a value; start it if there is none.

        Returns: False if no thread can be started, so that nothing will be done.
        """
        mine = self._mine()
        if mine.has_thread:
            mine.wake.put(None)
        else:
            self._start(mine)
        return mine.has_thread

    def drain(self, timeout: float) -> bool:
        """Hand on all that was put before; return False if others were at it all the time."""
        mine = self._mine()
        if mine.emptier == threading.get_ident():
            return False  # called from within commit
        if not mine.turn.acquire(timeout=min(max(timeout, 0.0), threading.TIMEOUT_MAX)):
            return False
        try:
            mine.emptier = threading.get_ident()
            for _ in range(QUEUE_SIZE // GROUP_SIZE):  # an end, even if values keep coming
                group = _take(mine.values, GROUP_SIZE)
                if not group:
                    break
                self._commit(group)
        finally:
            mine.emptier = 0
            mine.turn.release()
        return True

    def clear(self) -> int:
        """Forget all that waits; return how many values that were."""
        return len(_take(self._mine().values, QUEUE_SIZE))

    def stop(self, timeout: float) -> bool:
        """Let the thread hand on what waits, finish and end, and wait up to *timeout* seconds.

        Returns: False if this process has no thread, so that nothing was or will be done.
        """
        mine = self._mine()
        thread = mine.thread
        if thread is None or not thread.is_alive():
            return False
        mine.stopping = True
        mine.wake.put(None)
        if thread is not threading.current_thread():
            thread.join(timeout)
        return True

    def __len__(self) -> int:
        """Return how many values wait in this process."""
        return len(self._mine().values)

    def _mine(self) -> _Mine[T]:
        process = this_process()
        mine = self._processes.get(process)
        if mine is None:  # a forked child; setdefault is atomic, so its threads agree
            mine = self._processes.setdefault(process, _Mine())
            self._processes = {process: mine}  # a child holds no values of its parent
        return mine

    def _start(self, mine: _Mine[T]) -> None:
        if mine.stopping or not mine.starting.acquire(blocking=False):
            return  # it is over, or another thread does
        try:
            if mine.has_thread:
                return
            mine.awake = False  # a thread that died may have left it set
            # a daemon: the end of the process is bounded by ``stop``, not by the disk
            thread = threading.Thread(target=self._run, args=(mine,), name="hearsay", daemon=True)
            thread.start()
            mine.thread = thread
        except RuntimeError:  # too many threads, or the interpreter is ending: tried again
            return
        finally:
            mine.starting.release()
        self._started()

    def _run(self, mine: _Mine[T]) -> None:
        while not mine.stopping:
            wait = min(max(self._idle(), GROUP_DELAY), MAX_IDLE)
            if _woken(mine, wait) and not mine.stopping:
                _woken(mine, GROUP_DELAY)  # for company; a full group or the end come earlier
            mine.awake = False
            self.drain(threading.TIMEOUT_MAX)
        self.drain(threading.TIMEOUT_MAX)  # what came before it was told to stop, but not to look
        self._finish()


def _woken(mine: _Mine[T], timeout: float) -> bool:
    try:
        mine.wake.get(timeout=timeout)
    except Empty:
        return False
    return True


def _take(values: deque[T], count: int) -> list[T]:
    """Remove and return up to *count* of the oldest, while others add and take."""
    taken: list[T] = []
    try:
        while len(taken) < count:
            taken.append(values.popleft())
    except IndexError:
        pass
    return taken
