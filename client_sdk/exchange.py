"""An exchange in a thread of its own, so that nothing on its way can hold whoever waits for it.

Timeouts of a socket bound each single read.  They bound neither the search for an address, nor the
tries of its addresses one after another, nor a peer that sends a byte now and then.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Exchange(Generic[T]):
    """Runs a generator of ever more complete answers until it ends, fails or is given up."""

    def __init__(self, answers: Generator[T, None, None]) -> None:
        """Prepare; nothing of *answers* runs yet."""
        self._answers = answers
        # a daemon: a request that was given up must not hold the end of the process
        self._thread = Thread(target=self._run, name="hearsay-exchange", daemon=True)
        self._latest: T | None = None
        self._error: Exception | None = None
        self._given_up = False

    def latest_within(self, timeout: float) -> T | None:
        """Run, and return the latest answer after *timeout* seconds; None if there is none yet.

        Called once.  Raises what the generator raised before its first answer.
        """
        try:
            self._thread.start()
        except RuntimeError:  # no threads: too many, or the interpreter is ending
            self._run()
        else:
            self._thread.join(timeout)
        self._given_up = True
        if self._latest is None and self._error is not None:
            raise self._error
        return self._latest

    def ended_within(self, timeout: float) -> bool:
        """Wait up to *timeout* seconds, after ``latest_within``; return whether it has ended."""
        if self._thread.is_alive():
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            with closing(self._answers) as answers:
                for self._latest in answers:
                    if self._given_up:
                        return
        except Exception as error:  # noqa: BLE001 - it is raised again in the thread that waits
            self._error = error
