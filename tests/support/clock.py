"""A clock that stands still until it is told to move."""

from __future__ import annotations

from typing import Final

from client_sdk.epoch import DAY

NOON: Final = 20_000 * DAY + DAY // 2  # Unix time; a day in 2024, far from its edges


class FakeClock:
    """Unix time in seconds, moved by hand."""

    def __init__(self, now: float = NOON) -> None:
        self.now = float(now)

    def __call__(self) -> float:
        return self.now

    def advance(self, *, seconds: float = 0, days: float = 0) -> None:
        """Move forward, or backward if negative."""
        self.now += seconds + days * DAY
