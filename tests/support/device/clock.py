"""A clock that stands still until it is told to move."""

from __future__ import annotations

from typing import Final

from client_sdk.core.epoch import DAY
from client_sdk.storage.trusted_clock import Uptime

NOON: Final = 20_000 * DAY + DAY // 2  # Unix time; a day in 2024, far from its edges


class FakeClock:
    """Unix time in seconds, moved by hand."""

    def __init__(self, now: float = NOON) -> None:
        self.now = float(now)
        self.ran = 0.0  # seconds; true time, whatever the clock was set to

    def __call__(self) -> float:
        return self.now

    def advance(self, *, seconds: float = 0, days: float = 0) -> None:
        """Move forward, or backward if negative."""
        step = seconds + days * DAY
        self.now += step
        self.ran += max(0.0, step)

    def uptime(self) -> Uptime:
        """Return how long the machine has run: since the clock was made."""
        return Uptime("the only boot", self.ran)
