"""Reports that *support* items: how supports add up, and how counts come back from them.

Source: Wang, Blocki, Li, Jha, *Locally Differentially Private Protocols for Frequency Estimation*,
USENIX Security 2017: pure protocols, their estimator and its variance.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property

from ..core.dataclass import dataclass
from ..core.errors import InvalidParameterError, InvalidTallyError
from ..core.typing import ClassVar
from .base import Array, Debiased, Numpy, RatioMechanism, Reach, Value


@dataclass(frozen=True)
class Channel:
    """p = Pr[report supports v, given v], q = Pr[report supports v, given another value]."""

    p: Fraction
    q: Fraction

    def __post_init__(self) -> None:
        """Refuse what is no probability, here once rather than at every draw."""
        for name, chance in (("p", self.p), ("q", self.q)):
            if not 0 <= chance <= 1:
                raise InvalidParameterError(name, chance, "must be a probability")


class ChannelMechanism(RatioMechanism[Value]):
    """A mechanism of which two chances say how often a report speaks for what is true."""

    @property
    @abstractmethod
    def channel(self) -> Channel:
        """The exact probabilities of support, read by device and collector alike."""

    @property
    def chances(self) -> tuple[float, float]:
        """p and q of the channel as floats."""
        return float(self.channel.p), float(self.channel.q)

    def validate(self) -> None:
        """Refuse a channel without 0 < q < p < 1, or one that spends more than epsilon."""
        channel = self.channel
        if not 0 < channel.q < channel.p < 1:
            raise self.no_channel()
        super().validate()


class SupportReports(ChannelMechanism[Value]):
    """A mechanism whose reports support items of its domain.  The tally is the sum of supports."""

    pure: ClassVar[bool] = True  # whether ``channel`` alone gives the estimate and its variance

    @abstractmethod
    def supports(self, payload: bytes) -> Iterable[int]:
        """Return the items that a valid payload supports."""

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
        p, q = self.chances
        totals = (counts - n * q) / (p - q)
        holders = np.clip(totals, 0, n)
        variances = (holders * p * (1 - p) + (n - holders) * q * (1 - q)) / (p - q) ** 2
        return Debiased(totals, variances)

    @cached_property
    def support_reach(self) -> Reach:
        """What a report stands for that lacks an item, and one that supports it, by p and q.

        Source: Cao, Jia, Gong, USENIX Security 2021: the attacks on pure protocols.
        """
        p, q = self.chances
        return Reach(-q / (p - q), (1 - q) / (p - q))

    def share_reach(self, item: int, np: Numpy) -> Reach | None:
        """Return the reach by p and q; of a channel that is not pure nothing is known."""
        return self.support_reach if self.pure else None

    def most_supported(self, items: int) -> int:
        """Return an upper bound of how many of *items* items one report can support."""
        return items

    def group_reach(self, items: int) -> Reach | None:
        """Return the reach of the best attack on all at once, with ``most_supported`` of them."""
        if not self.pure:
            return None
        p, q = self.chances
        most = self.most_supported(items)
        return Reach(-items * q / (p - q), (most - items * q) / (p - q))
