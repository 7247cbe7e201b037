"""When to take no more: a full or far behind store (503), and a key that sends too fast (429).

The store's state is read once a second by a thread that does nothing else, never by a request; so
while the store is away, an upload is refused at once, and no request waits for a time-out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from .errors import CollectorError, OverloadedError, TooFastError

ALARM_MEMORY: Final = 0.70  # share of the store's maxmemory from which an operator is told
SHED_MEMORY: Final = 0.85  # share from which no upload is taken; the worker needs the rest
POLL_S: Final = 1.0  # seconds
BURST_S: Final = 2.0  # seconds of its rate that a key may send at once
COST_UNIT: Final = 64 * 1024  # bytes that cost as much as one upload more

_log = logging.getLogger("hearsay.pressure")


class Gauge(Protocol):
    """The two numbers of a store that say how full it is.  Raises CollectorError."""

    def backlog(self) -> int:
        """Return the number of entries that wait to be folded."""

    def memory(self) -> float | None:
        """Return the share of its memory limit that the fullest server uses; None without one."""


@dataclass(frozen=True, slots=True)
class Load:
    """The store's state at one moment."""

    backlog: int = 0  # entries
    memory: float | None = None  # share of the limit
    failure: str | None = None  # why the store did not tell


class Pressure:
    """Decides from the last known load, and from what each key has sent.  Any thread may ask."""

    def __init__(
        self, gauge: Gauge, max_backlog: int, key_rate: int, monotonic: Callable[[], float]
    ) -> None:
        """Take no more from *max_backlog* entries on.

        Args: key_rate: uploads a second that this process takes of one key.
        """
        self._gauge, self._max_backlog = gauge, max_backlog
        self._buckets = TokenBuckets(key_rate, monotonic)
        self.load = Load()

    def poll(self) -> None:
        """Read the store's state, and tell an operator if it calls for one.  Never raises."""
        was = self.load
        try:
            self.load = Load(self._gauge.backlog(), self._gauge.memory())
        except CollectorError as error:
            self.load = Load(failure=str(error))
        if (told := self._complaint(self.load)) and told != self._complaint(was):
            _log.error("no uploads are taken: %s", told)
        if (self.load.memory or 0) >= ALARM_MEMORY > (was.memory or 0):
            _log.warning("store: memory is used to %.0f %%", 100 * (self.load.memory or 0))

    def require_room(self) -> None:
        """Return if an upload may be taken.  Raises OverloadedError."""
        complaint = self._complaint(self.load)
        if complaint is not None:
            raise OverloadedError(complaint)

    def _complaint(self, load: Load) -> str | None:
        """Return why no uploads are taken under *load*, or None."""
        if load.failure is not None:
            return load.failure
        if load.memory is not None and load.memory >= SHED_MEMORY:
            return f"store.memory: must be used to less than {SHED_MEMORY:.0%}"
        if load.backlog >= self._max_backlog:
            return f"store.backlog: must be below {self._max_backlog} entries"
        return None

    def charge(self, key: bytes, size: int) -> None:
        """Count an upload of *size* bytes to *key*.

        Raises: TooFastError: the key has sent all it may for now.
        """
        if not self._buckets.take(key, 1 + size // COST_UNIT):
            raise TooFastError("the key sends faster than it may")


class TokenBuckets:
    """One bucket a key, in memory only.  There are as many keys as people have made."""

    def __init__(self, rate: int, monotonic: Callable[[], float]) -> None:
        """Fill each bucket by *rate* tokens a second, to the tokens of BURST_S seconds."""
        self._rate, self._monotonic = rate, monotonic
        self._levels: dict[bytes, tuple[float, float]] = {}  # tokens, and when there were so many

    def take(self, key: bytes, tokens: int) -> bool:
        """Return whether *key* had a token, and take up to *tokens*: a bucket may be in debt.

        So one upload that costs more than a full bucket passes, and the key waits afterwards.
        """
        now = self._monotonic()
        full = self._rate * BURST_S
        level, then = self._levels.get(key, (full, now))
        level = min(full, level + (now - then) * self._rate)
        if level < 1:
            self._levels[key] = level, now
            return False
        self._levels[key] = level - tokens, now
        return True


class Watch:
    """A thread that does something once a second until it is stopped."""

    def __init__(self, *actions: Callable[[], None]) -> None:
        """Do *actions*, in order; they must not raise."""
        self._actions = actions
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Do the actions once, here, and from now on in the thread."""
        self._act()
        self._thread.start()

    def stop(self) -> None:
        """Do nothing more."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(POLL_S):
            self._act()

    def _act(self) -> None:
        for action in self._actions:
            action()
