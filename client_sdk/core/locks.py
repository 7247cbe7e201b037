"""Locks that survive a fork, and a number that tells a child from its parent."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from os import getpid

from .typing import Final, Generic, TypeAlias, TypeVar

FORK_WAIT: Final = 1.0  # seconds that a fork waits for a database transaction; most take 10 ms

T = TypeVar("T")

Process: TypeAlias = tuple[int, int]


class _Forks:
    """How many forks lie between the first process and this one, and what a fork waits for.

    The one state of this package that belongs to the process: the hooks of fork know no object.
    """

    def __init__(self) -> None:
        self.depth = 0
        self._quiet: weakref.WeakValueDictionary[int, QuietLock] = weakref.WeakValueDictionary()
        self._held: list[QuietLock] = []
        self._first = False
        if hasattr(os, "register_at_fork"):  # Windows has neither
            os.register_at_fork(
                before=self._before, after_in_parent=self._release, after_in_child=self._in_child
            )

    def go_first(self) -> None:
        if not self._first and hasattr(os, "register_at_fork"):
            self._first = True
            os.register_at_fork(before=self._before)  # the hook registered last is called first

    def wait_for(self, lock: QuietLock) -> None:
        self._quiet[id(lock)] = lock

    def _before(self) -> None:
        # it is a list, as other threads may add meanwhile
        for reference in self._quiet.valuerefs():
            lock = reference()
            # a lock that this thread holds is skipped: waiting for it would never end
            if lock is not None and not lock.is_mine and lock.acquire(lock.fork_wait):
                self._held.append(lock)

    def _release(self) -> None:
        while self._held:
            self._held.pop().release()

    def _in_child(self) -> None:
        self.depth += 1
        self._held.clear()  # every lock of the child is new and free


_forks: Final = _Forks()


def this_process() -> Process:
    """Return what no fork shares.  A process id alone comes back after its process ended."""
    return getpid(), _forks.depth


class PerProcess(Generic[T]):
    """A value that each process has separately: a forked child makes a new one.

    The process is looked up at each use, since a server in C forks without a word to Python.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        """Call *make* at the first use in each process, after anything patched ``threading``."""
        self._make = make
        self._last: tuple[int, int, T] | None = None
        self._values: dict[Process, T] = {}

    def __call__(self) -> T:
        """Return this process' value."""
        last = self._last
        if last is not None and last[0] == getpid() and last[1] == _forks.depth:
            return last[2]
        return self._begin()

    def _begin(self) -> T:
        process = this_process()
        # setdefault is atomic: two threads of a new child end up with the same one
        value = self._values.setdefault(process, self._make())
        self._values = {process: value}
        self._last = (*process, value)
        return value


def fork_waits_first() -> None:
    """Let a fork wait for every QuietLock before it calls the hooks registered until now.

    ``logging`` takes its lock when a process forks.  The holder of a QuietLock may need that lock,
    so the fork must not hold it while it waits.
    """
    _forks.go_first()


class ProcessLock:
    """A mutual exclusion among the threads of one process.

    A child of fork finds the lock free, whichever thread of the parent held it: that thread does
    not exist in the child and would never release it.
    """

    def __init__(self) -> None:
        self._mine = PerProcess(lambda: threading.Lock())  # as ``threading`` has it by then

    def acquire(self, timeout: float) -> bool:
        """Wait up to *timeout* seconds; return whether the lock is now held."""
        return self._mine().acquire(timeout=min(max(timeout, 0.0), threading.TIMEOUT_MAX))

    def release(self) -> None:
        """Let the next one in."""
        self._mine().release()

    def __enter__(self) -> None:
        self.acquire(threading.TIMEOUT_MAX)

    def __exit__(self, *exception: object) -> None:
        self.release()


class QuietLock(ProcessLock):
    """A ProcessLock that a fork waits for, so that no thread is inside when memory is copied.

    For calls into C code with locks of its own, such as SQLite: one that was held at the moment
    of the fork would stay locked in the child for ever.  So would a module in the middle of its
    import.
    """

    def __init__(self, fork_wait: float = FORK_WAIT) -> None:
        """Begin free; a fork waits up to *fork_wait* seconds, then goes ahead."""
        super().__init__()
        self.fork_wait = fork_wait
        self._owner: tuple[Process, int] | None = None
        _forks.wait_for(self)

    @property
    def is_mine(self) -> bool:
        """Whether the calling thread holds it."""
        return self._owner == (this_process(), threading.get_ident())

    def acquire(self, timeout: float) -> bool:
        """Wait up to *timeout* seconds; return whether the lock is now held."""
        held = super().acquire(timeout)
        if held:
            self._owner = (this_process(), threading.get_ident())
        return held

    def release(self) -> None:
        """Let the next one in."""
        self._owner = None
        super().release()
