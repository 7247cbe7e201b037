"""Mechanisms over sets of items: which items a device holds, however many."""

from __future__ import annotations

import math
from abc import abstractmethod

from ..core.errors import InvalidValueError
from ._supports import SupportReports


class SetMechanism(SupportReports[frozenset[int]]):
    """A mechanism over sets of the items 0 … domain_size - 1, debiased to a count of every item.

    Of ``channel``, p is the chance that a report supports an item of a set that is not too large,
    and q the chance that it supports an item that the set lacks.  So the counts are unbiased if no
    set was too large.  The variance holds for sets as for items: a device supports an item by a
    coin of chance p if it holds it and q if not.
    """

    @property
    @abstractmethod
    def most(self) -> int:
        """The largest sets for which the counts are unbiased, in items."""

    def require_set(self, value: frozenset[int]) -> None:
        """Raise InvalidValueError unless *value* is a frozenset of items.  It is never shown."""
        if type(value) is not frozenset or not all(
            type(item) is int and 0 <= item < self.domain_size for item in value
        ):
            raise InvalidValueError(self.name, f"must be a set of items below {self.domain_size}")

    def predict(self, n: int) -> float:
        """Return the root mean square over items of the standard error of a share.

        Derived: the mean over items of Var/n^2 when every set holds ``most`` items, so that the
        shares sum to it.  Smaller sets err less.
        """
        p, q = float(self.channel.p), float(self.channel.q)
        share = self.most / self.domain_size
        per_report = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2
        return math.sqrt(per_report / n)
