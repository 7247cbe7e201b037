"""Frequency oracles: mechanisms over single items, debiased to a count of every item."""

from __future__ import annotations

import math
from typing import ClassVar

from ..errors import InvalidValueError
from ._base import Mechanism
from ._supports import SupportReports


class ItemMechanism(Mechanism[int]):
    """A mechanism over items 0 … domain_size - 1 that is debiased to a count of every item."""

    def require_item(self, value: int) -> None:
        """Raise InvalidValueError unless *value* is an item.  The error does not show the value."""
        if type(value) is not int or not 0 <= value < self.domain_size:
            rule = f"must be a Python int, an item below {self.domain_size}"
            raise InvalidValueError(self.name, rule)


class FrequencyOracle(SupportReports[int], ItemMechanism):
    """A mechanism whose reports support items."""

    pure: ClassVar[bool] = True  # whether ``channel`` alone gives the estimate and its variance

    @property
    def least_support(self) -> int:
        """A lower bound of the items that a payload supports if it supports any."""
        return 1

    def predict(self, n: int) -> float:
        """Return the root mean square over items of the standard error of a share.

        Derived: the mean over items of Var/n^2 for shares that sum to 1, whatever the data.
        """
        p, q, k = float(self.channel.p), float(self.channel.q), self.domain_size
        per_report = q * (1 - q) / (p - q) ** 2 + (1 - p - q) / (k * (p - q))
        return math.sqrt(per_report / n)
