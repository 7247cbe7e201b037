"""Failures that go on, told when they begin and once a minute after that, not by each request."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

PERIOD_S: Final = 60.0  # seconds between two lines on the same failure


class Incidents:
    """What this process has logged of late.  Any thread may tell."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Measure by *monotonic*, in seconds."""
        self._monotonic, self._lock = monotonic, threading.Lock()
        self._seen: dict[str, tuple[float, int]] = {}  # by name: the last line, repeats since

    def tell(self, log: logging.Logger, name: str, text: str) -> None:
        """Log *text* as an error, unless *name*, one of our words, was logged shortly before."""
        now = self._monotonic()
        with self._lock:
            then, repeats = self._seen.get(name, (float("-inf"), 0))
            if now - then < PERIOD_S:
                self._seen[name] = then, repeats + 1
                return
            self._seen[name] = now, 0
        more = f" (and {repeats} times more since the last line)" if repeats else ""
        log.error("%s: %s%s", name, text, more)
