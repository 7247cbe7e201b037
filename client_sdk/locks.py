"""A lock that survives a fork."""

from __future__ import annotations

import os
import threading


class ProcessLock:
    """A mutual exclusion among the threads of one process.

    A child of fork finds the lock free, whichever thread of the parent held it: that thread does
    not exist in the child and would never release it.
    """

    def __init__(self) -> None:
        """Begin free."""
        self._locks = {os.getpid(): threading.Lock()}

    def acquire(self, timeout: float) -> bool:
        """Wait up to *timeout* seconds; return whether the lock is now held."""
        return self._mine().acquire(timeout=min(max(timeout, 0.0), threading.TIMEOUT_MAX))

    def release(self) -> None:
        """Let the next one in."""
        self._mine().release()

    def __enter__(self) -> None:
        self._mine().acquire()

    def __exit__(self, *exception: object) -> None:
        self.release()

    def _mine(self) -> threading.Lock:
        lock = self._locks.get(os.getpid())
        # setdefault is atomic: two threads of a new child end up with the same lock
        return lock or self._locks.setdefault(os.getpid(), threading.Lock())
