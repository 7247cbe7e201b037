"""The thread that writes what waits: callers wait for no disk and no network.

It is a clock only: whoever wants everything written, and can wait, writes it himself.  Each
process has its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar

T = TypeVar("T")

GROUP_SIZE: Final = 100  # a transaction; the fsync is shared, and the database lock is short
GROUPS: Final = 20  # at once; an end, even if more keeps coming
GROUP_DELAY: Final = 0.25  # seconds that values wait for company after others were written
# seconds; a clock that was set, a long sleep or a user's no is noticed after these at the latest.
# Whatever writes, sends or shows looks for a no by itself: what is left lies in memory only, and is
# not worth waking a battery oftener.
MAX_IDLE: Final = 300.0


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
        self._wake: SimpleQueue[None] = SimpleQueue()
        self._end: SimpleQueue[None] = SimpleQueue()
        self.told = False  # whether the thread has been told since it last looked
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._turn = threading.Lock()  # held by who writes
        self._writer = 0  # the thread that does

    def tell(self) -> bool:
        """Have the thread write soon what waits; start it if there is none.

        Returns: False if there can be no thread: the caller is to write it.
        """
        if self.told:
            return True
        self.told = True  # before the token: the thread takes it back before it looks
        if self.wake():
            return True
        self.told = False
        return False

    def wake(self) -> bool:
        """Let the thread call ``idle`` now; start it if there is none.

        Returns: False if there can be no thread, so that nothing will be done.
        """
        if not self._runs:
            return self._start()
        self._wake.put(None)
        return True

    def drain(self, timeout: float) -> bool:
        """Write all that waits; return False if others were at it all the time."""
        if self._writer == threading.get_ident():
            return False  # called from within commit
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
        self._wake.put(None)
        self._end.put(None)
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
            return True  # another thread does
        try:
            if not self._runs:
                # a daemon: the end of the process is bounded by ``stop``, not by the disk
                thread = threading.Thread(target=self._run, name="hearsay", daemon=True)
                thread.start()
                self._thread = thread
        except RuntimeError:  # too many threads, or the interpreter is ending: tried again
            return False
        finally:
            self._starting.release()
        self._started()
        return True

    def _run(self) -> None:
        try:
            while True:
                self.told = False
                # the first value is written at once; those that come meanwhile share what follows
                wrote = self._drain_here()
                if self._stopping:
                    break
                wait = min(max(self._idle(), GROUP_DELAY), MAX_IDLE)
                if wrote:
                    _awaited(self._end, GROUP_DELAY)
                if not self._stopping:
                    _awaited(self._wake, wait)
            self._drain_here()  # what came before it was told to stop, but not to look
            self._finish()
        finally:
            self.told = False  # whatever ended it, the next value starts another

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
        return True


def _awaited(queue: SimpleQueue[None], timeout: float) -> None:
    with suppress(Empty):
        queue.get(timeout=timeout)
