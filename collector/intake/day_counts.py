"""Counts of a UTC day by key, in this process and, once exchanged, in all."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from client_sdk.core.epoch import day_of

from ..core.credentials import id_of

EXCHANGE_S: Final = 3.0  # seconds between two exchanges with other processes

_log = logging.getLogger("hearsay.shares")


class DayCounts:
    """Counts of a UTC day by key: our own at once, other processes' once exchanged.

    Safe to share between threads.
    """

    def __init__(
        self,
        share: Callable[[int, str, Mapping[bytes, int]], Mapping[bytes, int]],
        clock: Callable[[], float],
    ) -> None:
        """Exchange by *share*, which takes day, process and its sums, and returns all sums.

        Args: clock: Unix time in seconds.
        """
        self._share, self._clock = share, clock
        self._process = secrets.token_hex(8)  # of chance: says nothing of its machine
        self._lock = threading.Lock()
        self._day = 0
        self._own: Counter[bytes] = Counter()
        self._others: Mapping[bytes, int] = {}
        self._refused: set[bytes] = set()

    @property
    def day(self) -> int:
        """The day that is counted."""
        return day_of(self._clock())

    def of(self, key: bytes) -> int:
        """Return the count of *key* today."""
        with self._lock:
            self._turn()
            return self._own[key] + self._others.get(key, 0)

    def add(self, key: bytes, n: int = 1) -> None:
        """Count *n* more to *key*."""
        with self._lock:
            self._turn()
            self._own[key] += n

    def exchange(self) -> Mapping[bytes, int]:
        """Tell our counts and return the sums of all.  Raises what the store raises."""
        with self._lock:
            self._turn()
            day, own = self._day, dict(self._own)
        sums = self._share(day, self._process, own)
        with self._lock:
            self._turn()
            if day == self._day:
                self._others = {key: n - own.get(key, 0) for key, n in sums.items()}
        return sums

    def tell_refusal(self, key: bytes, why: str) -> None:
        """Log once a day that *key* is refused, and *why*."""
        with self._lock:
            is_new = key not in self._refused
            self._refused.add(key)
        if is_new:
            _log.warning("key=%s: is refused with 429: %s", id_of(key), why)

    def _turn(self) -> None:
        """Begin a new day with nothing."""
        if self.day != self._day:
            self._day, self._others = self.day, {}
            self._own.clear()
            self._refused.clear()
