"""When to upload: at chance times, so that neither an app's use nor a collector's return shows.

The times are kept in the database.  A restart neither forgets what a collector asked for, nor makes
an upload of its own, and of several processes one makes the pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import meta
from .epoch import DAY, HOUR
from .randomness import Randomness

if TYPE_CHECKING:
    from .store import Transaction

UPLOAD_EVERY: Final = 4 * HOUR  # seconds on average; few enough wake-ups for a battery
FIRST_BACKOFF: Final = 30  # seconds; the ceiling after one failure, doubled by each further one
# The same for passes of the schedule, after two failures: then it is no blip, and a fleet that
# waits for its collector must not return within a minute.
FIRST_SPREAD: Final = 2 * HOUR  # seconds
MAX_BACKOFF: Final = 6 * HOUR  # seconds; a collector that returns is found the same day
MAX_RETRY_AFTER: Final = 18 * HOUR  # seconds; what is added by chance makes it a day at most

_LONGEST: Final = DAY  # seconds; no collector can silence a device for longer
_SHARE: Final = 4  # a quarter of what was asked for is added by chance

_LATEST: Final = 1 << 40  # Unix time; a number beyond it is none that was ever planned
_KEYS: Final = ("next_upload", "not_before", "failures")


class Schedule:
    """The time of the next pass, and the waiting time after failures."""

    def __init__(self, randomness: Randomness) -> None:
        """Know nothing until ``load``; *randomness* draws the times."""
        self._randomness = randomness
        self._next = 0.0  # Unix time; 0: never planned
        self._not_before = 0.0  # Unix time
        self._failures = 0  # in a row

    @property
    def failing(self) -> bool:
        """Whether the last try must be repeated."""
        return self._failures > 0

    @property
    def planned(self) -> bool:
        """Whether there is a time for the next pass."""
        return self._next > 0

    def load(self, tx: Transaction) -> None:
        """Take over what this or another process has planned."""
        self._next, self._not_before, failures = (_number(meta.get(tx, key)) for key in _KEYS)
        self._failures = int(failures)

    def wait(self, now: float) -> float:
        """Return the seconds until the next pass is due."""
        return max(_left(self._next, now), self.backoff(now))

    def backoff(self, now: float) -> float:
        """Return the seconds for which nothing at all may be sent."""
        return _left(self._not_before, now)

    def plan(self, tx: Transaction, now: float) -> None:
        """Put the next pass between a half and one and a half of UPLOAD_EVERY ahead."""
        self._next = now + UPLOAD_EVERY // 2 + self._chance(UPLOAD_EVERY)
        self._save(tx)

    def succeed(self, tx: Transaction) -> None:
        """Forget the failures."""
        if self._failures:
            self._failures, self._not_before = 0, 0.0
            self._save(tx)

    def postpone(self, tx: Transaction, now: float, retry_after: float) -> None:
        """Wait *retry_after* and a random part of a time that grows with each failure.

        Devices that came back to the second could be told apart by what each was asked to wait.
        The next pass of the schedule may be later than the next that an application asks for.
        """
        asked = min(retry_after, MAX_RETRY_AFTER) if retry_after > 0 else 0.0
        ceiling = _doubled(FIRST_BACKOFF, self._failures)
        wait = asked + self._chance(max(ceiling, int(asked) // _SHARE))
        self._next = self._not_before = now + wait
        if self._failures:
            spread = self._chance(_doubled(FIRST_SPREAD, self._failures - 1))
            self._next = max(self._next, now + spread)
        self._failures += 1
        self._save(tx)

    def _chance(self, ceiling: int) -> float:
        return self._randomness.uniform(1_000 * ceiling + 1) / 1_000

    def _save(self, tx: Transaction) -> None:
        values = (self._next, self._not_before, self._failures)
        for key, value in zip(_KEYS, values, strict=True):
            meta.put(tx, key, value)


def _doubled(first: int, times: int) -> int:
    return min(MAX_BACKOFF, first << min(times, 16))


def _number(value: object) -> float:
    """Return *value*, or 0 if it is missing or damaged."""
    if isinstance(value, int | float) and 0 <= value < _LATEST:
        return value
    return 0.0


def _left(until: float, now: float) -> float:
    """Return the seconds until *until*; 0 if that is later than anything that is ever planned."""
    left = until - now
    # a longer wait was computed before the clock was set back
    return left if 0 < left <= _LONGEST else 0.0
