"""Mechanisms of two rounds: a permanent response that a device keeps, and fresh noise on top.

The SDK sends first reports only, by ``randomize``; ``respond`` is for devices that keep the
permanent answer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from ..core.randomness import Randomness
from ._frequency import ItemMechanism


class TwoRounds(ItemMechanism):
    """A mechanism whose first report draws what later reports of the device reuse."""

    @abstractmethod
    def report(
        self,
        value: int,
        joining: Randomness,
        memo: Callable[[bytes], Randomness],
        fresh: Randomness,
    ) -> bytes:
        """Return a report of *value*, an item.

        Args: joining: for what a device draws once, whatever its values.
              memo: the permanent randomness for a key.  fresh: the system's randomness.
        """

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return the first report of a device: everything is drawn now."""
        self.require_item(value)
        return self.report(value, randomness, lambda _: randomness, randomness)

    def respond(self, value: int, memo: Callable[[bytes], Randomness], fresh: Randomness) -> bytes:
        """Return any report of a device.

        Args:   memo: the permanent randomness for a key, e.g. ``permanent_randomness`` with the
                device's secret and the metric's digest; the empty key is for joining.
                fresh: the system's randomness.
        Raises: InvalidValueError: *value* is outside the domain; nothing was drawn.
        """
        self.require_item(value)
        return self.report(value, memo(b""), memo, fresh)
