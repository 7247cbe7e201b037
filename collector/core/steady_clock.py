"""A wall clock that is believed only while it runs evenly, and beside the clocks of others.

Law: a clock that steps, ahead or back, decides nothing for the first LASTING_S.  Whatever depends
on the time waits, so a step that is undone by then has had no effect at all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from .cells import MARGIN
from .errors import ClockError

LASTING_S: Final = 300.0  # seconds after which a clock that was set is believed as it is now
_STEPPED: Final = f"must not be set by more than {MARGIN}; is believed {LASTING_S:.0f} s after it"
_APART: Final = f"must be at most {MARGIN} off this machine's clock"


class SteadyClock:
    """Unix time in seconds, held against seconds that never jump.  Any thread may ask."""

    def __init__(self, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        """Read *clock*; notice by *monotonic* when it is set."""
        self._clock, self._monotonic = clock, monotonic
        self._lock = threading.Lock()
        self._trusted: float | None = (
            None  # how far the one is before the other; None before a look
        )
        self._doubted: float | None = None  # the same since a step that is not believed yet
        self._since = 0.0  # when that step was noticed, on the monotonic clock

    def look(self) -> None:
        """Note how the clock runs; call this every second or so."""
        ran = self._monotonic()
        lead = self._clock() - ran
        with self._lock:
            if self._trusted is None or abs(lead - self._trusted) <= MARGIN:
                self._trusted, self._doubted = lead, None  # small corrections add up
            elif self._doubted is None or abs(lead - self._doubted) > MARGIN:
                self._doubted, self._since = lead, ran
            elif ran - self._since >= LASTING_S:
                self._trusted, self._doubted = lead, None

    def now(self) -> float:
        """Return the Unix time.

        Raises: ClockError: the clock has been set since the last look, or shortly before.
        """
        now = self._clock()
        step = now - self._monotonic() - (self._trusted or 0.0)
        if self._trusted is not None and abs(step) > MARGIN:
            raise ClockError("clock", step, _STEPPED)
        return now

    def require_near(self, *others: float) -> None:
        """Return if the Unix times *others*, of the store, are about ours.

        Raises: ClockError: one is not, or ours is not to be believed.
        """
        now = self.now()
        furthest = max((other - now for other in others), key=abs, default=0.0)
        if abs(furthest) > MARGIN:
            raise ClockError("store.clock", furthest, _APART)
