"""Mechanisms over sets of items: which items a device holds, however many."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from fractions import Fraction

from ..errors import InvalidTallyError, InvalidValueError
from ._base import Array, Debiased, Mechanism, Numpy
from ._frequency import Channel


class SetMechanism(Mechanism[frozenset[int]]):
    """A mechanism over sets of the items 0 … domain_size - 1, debiased to a count of every item.

    Of ``channel``, p is the chance that a report supports an item of a set that is not too large,
    and q the chance that it supports an item that the set lacks.
    """

    @property
    @abstractmethod
    def most(self) -> int:
        """The largest sets for which the counts are unbiased, in items."""

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """The exact probabilities of support, read by device and collector alike."""

    @property
    @abstractmethod
    def likelihood_ratio(self) -> Fraction:
        """The largest Pr[payload | S] / Pr[payload | T] over all payloads and sets: e^spent."""

    @abstractmethod
    def supports(self, payload: bytes) -> Iterable[int]:
        """Return the items that a valid payload supports."""

    def require_set(self, value: frozenset[int]) -> None:
        """Raise InvalidValueError unless *value* is a frozenset of items.  It is never shown."""
        if type(value) is not frozenset or not all(
            type(item) is int and 0 <= item < self.domain_size for item in value
        ):
            raise InvalidValueError(self.name, f"must be a set of items below {self.domain_size}")

    @property
    def tally_size(self) -> int:
        """One cell an item."""
        return self.domain_size

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Sum the supports of every payload."""
        cells = np.zeros(self.domain_size, dtype=np.int64)
        for payload in self.split(payloads):
            cells[list(self.supports(payload))] += 1
        return cells

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Turn supports into unbiased counts: (C - n q) / (p - q), if no set was too large.

        Source: Wang et al. 2017, pure protocols.  Derived: a device supports an item by a coin of
                chance p if it holds it and q if not, so the variance is that of these coins,
                with the estimate of the holders, clipped to [0, n], plugged in.
        """
        counts = self.require_tally(tally, n, np)
        if counts.min() < 0 or counts.max() > n:
            raise InvalidTallyError(f"tally: every entry must be between 0 and n={n}")
        p, q = float(self.channel.p), float(self.channel.q)
        totals = (counts - n * q) / (p - q)
        holders = np.clip(totals, 0, n)
        variances = (holders * p * (1 - p) + (n - holders) * q * (1 - q)) / (p - q) ** 2
        return Debiased(totals, variances)

    def predict(self, n: int) -> float:
        """Return the root mean square over items of the standard error of a share.

        Derived: the mean over items of Var/n^2 when every set holds ``most`` items, so that the
        shares sum to it.  Smaller sets err less.
        """
        p, q = float(self.channel.p), float(self.channel.q)
        share = self.most / self.domain_size
        per_report = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2
        return math.sqrt(per_report / n)
