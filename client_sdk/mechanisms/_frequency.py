"""Frequency oracles: mechanisms whose reports *support* items, so that counts can be recovered.

Source: Wang, Blocki, Li, Jha, *Locally Differentially Private Protocols for Frequency Estimation*,
USENIX Security 2017: pure protocols, their estimator and its variance.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from ..errors import InvalidParameterError, InvalidTallyError, InvalidValueError
from ._base import Array, Debiased, Mechanism, Numpy
from ._exact import ln_ceil


@dataclass(frozen=True)
class Channel:
    """p = Pr[report supports v, given v], q = Pr[report supports v, given another value]."""

    p: Fraction
    q: Fraction


class ItemMechanism(Mechanism[int]):
    """A mechanism over items 0 … domain_size - 1 that is debiased to a count of every item."""

    def require_item(self, value: int) -> None:
        """Raise InvalidValueError unless *value* is an item.  The error does not show the value."""
        if type(value) is not int or not 0 <= value < self.domain_size:
            raise InvalidValueError(self.name, f"must be an item below {self.domain_size}")

    def require_sum(self, tally: Array, n: int) -> None:
        """Raise InvalidTallyError unless *tally* has n reports, each counted in one cell."""
        if tally.min() < 0 or tally.max() > n or int(tally.sum()) != n:
            raise InvalidTallyError(f"tally: entries must be at least 0 and add up to n={n}")


class FrequencyOracle(ItemMechanism):
    """A mechanism whose reports support items.  The tally is the sum of supports."""

    pure: ClassVar[bool] = True  # whether ``channel`` alone gives the estimate and its variance

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """The exact probabilities of support, read by device and collector alike."""

    @property
    @abstractmethod
    def likelihood_ratio(self) -> Fraction:
        """The largest Pr[payload | v] / Pr[payload | w] over all payloads and items: e^spent."""

    @abstractmethod
    def supports(self, payload: bytes) -> Iterable[int]:
        """Return the items that a valid payload supports."""

    @property
    def least_support(self) -> int:
        """A lower bound of the items that a payload supports if it supports any."""
        return 1

    def validate(self) -> None:
        """Refuse a channel without 0 < q < p < 1."""
        channel = self.channel
        if not 0 < channel.q < channel.p < 1:
            rule = f"gives no usable channel for domain_size={self.domain_size}"
            raise InvalidParameterError("epsilon", self.epsilon, rule)

    @cached_property
    def spent(self) -> Fraction:
        """The logarithm of the likelihood ratio, rounded up; never above epsilon."""
        return min(ln_ceil(self.likelihood_ratio), self.epsilon)

    @property
    def tally_size(self) -> int:
        """One cell an item, unless a mechanism has a better statistic."""
        return self.domain_size

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Sum the supports of every payload."""
        cells = np.zeros(self.domain_size, dtype=np.int64)
        for payload in self.split(payloads):
            cells[list(self.supports(payload))] += 1
        return cells

    def support_counts(self, tally: Array, n: int, np: Numpy) -> Array:
        """Return the reports supporting each item, shape (domain_size,), from a checked tally.

        Raises: InvalidTallyError: an entry below 0 or above n.
        """
        if tally.min() < 0 or tally.max() > n:
            raise InvalidTallyError(f"tally: every entry must be between 0 and n={n}")
        return tally

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Turn supports into unbiased counts: (C - n q) / (p - q).

        Source: Wang et al. 2017, pure protocols: estimator (eq. 1) and, for a fixed population of
                which c hold the item, Var = [c p(1-p) + (n-c) q(1-q)] / (p-q)^2, with the
                estimate of c, clipped to [0, n], plugged in.
        """
        counts = self.support_counts(self.require_tally(tally, n, np), n, np)
        p, q = float(self.channel.p), float(self.channel.q)
        totals = (counts - n * q) / (p - q)
        holders = np.clip(totals, 0, n)
        variances = (holders * p * (1 - p) + (n - holders) * q * (1 - q)) / (p - q) ** 2
        return Debiased(totals, variances)

    def predict(self, n: int) -> float:
        """Return the root mean square over items of the standard error of a share.

        Derived: the mean over items of Var/n^2 for shares that sum to 1, whatever the data.
        """
        p, q, k = float(self.channel.p), float(self.channel.q), self.domain_size
        per_report = q * (1 - q) / (p - q) ** 2 + (1 - p - q) / (k * (p - q))
        return math.sqrt(per_report / n)
