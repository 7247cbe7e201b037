"""A clock that stands still until it is told to move."""

from __future__ import annotations

from client_sdk.testing import NOON as NOON
from client_sdk.testing import FrozenClock

FakeClock = FrozenClock
