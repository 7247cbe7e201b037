"""What must be there, for tests that go on with it."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def known(value: T | None) -> T:
    """Return *value*, which must not be None."""
    assert value is not None
    return value
