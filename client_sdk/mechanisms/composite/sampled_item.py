"""Sampled item: draw one item of the domain, and say by a noisy coin whether the set holds it.

Source: Nguyên, Xiao, Yang, Hui, Shin, Shin, *Collecting and Analyzing Data from Smart Device Users
    with Local Differential Privacy*, arXiv 1606.05053, 2016 (Harmony: one attribute, drawn
    uniformly, is reported with all of ε); Arcolezi, Couchot, Al Bouna, Xiao, *Random Sampling Plus
    Fake Data*, CIKM 2021 (Smp: the drawn attribute is told); Warner, JASA 1965 (the coin).  A set
    is one yes or no an item.  The decoder is derived here, not theirs.
Proof: the item is drawn without looking at the set.  Given the item, the answer is told with
    probability p and its opposite with q = 1 - p, q being 1/(e^ε + 1) rounded up to the grid.  So a
    report is at most p/q <= e^ε times likelier under one set than under another, reached by sets
    that differ in the drawn item.

Of n reports m are about an item.  Their devices are a random sample of all, so (y/m - q)/(p-q), y
being the yeses among them, is an unbiased estimate of the share f, given any m > 0, and its
variance is

    a + b f(1-f),   a = v/m,   b = 1/m - 1/n,   v = pq/(p-q)^2 = e^ε/(e^ε - 1)^2.

As m is near n/d, that is (d v + (d-1) f(1-f))/n: d e^ε/(e^ε - 1)^2 a report for an item that nobody
holds, or everybody.  The chance that m = 0 is (1 - 1/d)^n, below 1e-17 from n = 40 d on; then the
share is said to be 1/2 with an error that leaves nothing out.  No set is cut, however large.
Supports alone, C of n with chances p/d and q/d, would have the larger variance of padding and
sampling with a slot an item, (d e^ε + d - 1)/(e^ε - 1)^2.

Draws: uniform(d); true(flip) flips the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property

from ...core.randomness import Randomness
from ...core.typing import ClassVar, Final
from ..base import Array, Debiased, Draws, NoiseLaw, Numpy, Reach
from ..exact import flip_chance
from ..families import CountedReports, SetMechanism
from ..supports import Channel


class SampledItem(CountedReports[frozenset[int]], SetMechanism):
    """One item and one noisy bit.  A report is twice the item, plus 1 for yes."""

    name = "sampled_item"
    beyond = "symbol_out_of_range"
    pure: ClassVar[bool] = False
    constants = ("flip",)

    @cached_property
    def flip(self) -> Fraction:
        """The chance that the answer is flipped."""
        return flip_chance(self.epsilon, self.precision)

    @cached_property
    def channel(self) -> Channel:
        """The chances of a yes about an item, its drawing included."""
        return Channel((1 - self.flip) / self.domain_size, self.flip / self.domain_size)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return that of the coin, exactly."""
        return (1 - self.flip) / self.flip

    @property
    def most(self) -> int:
        """No set is too large."""
        return self.domain_size

    def randomize(self, value: frozenset[int], randomness: Randomness) -> bytes:
        """Draw an item and report, flipped or not, whether *value* holds it."""
        self.require_value(value)
        item = randomness.uniform(self.domain_size)
        yes = (item in value) != randomness.bernoulli(self.flip)
        return (2 * item + yes).to_bytes(self.payload_size, "big")

    @property
    def payload_count(self) -> int:
        """A no and a yes of every item."""
        return 2 * self.domain_size

    def supports(self, payload: bytes) -> Iterable[int]:
        """A yes supports its item."""
        item, yes = divmod(int.from_bytes(payload, "big"), 2)
        return (item,) if yes else ()

    def support_counts(self, tally: Array, n: int, np: Numpy) -> Array:
        """Return the yeses of each item."""
        self.require_sum(tally, n)
        return tally[1::2]

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Turn noes and yeses into counts: n times the share of yeses about each item, debiased.

        Variances take the estimated share, clipped to [0, 1].
        """
        cells = self.require_tally(tally, n, np)
        yeses = self.support_counts(cells, n, np)
        drawn = cells[::2] + yeses
        q = float(self.flip)
        shares = np.where(drawn > 0, (yeses / np.maximum(drawn, 1) - q) / (1 - 2 * q), 0.5)
        held = np.clip(shares, 0, 1)
        level, bend = self.share_variance(cells, n, np)
        return Debiased(n * shares, n**2 * (level + bend * held * (1 - held)))

    def share_variance(self, tally: Array, n: int, np: Numpy) -> tuple[Array, Array]:
        """Return a and b, shape (domain_size,): a share f is estimated with a + b f(1-f).

        An item that no report is about has a > 1 and b = 0.
        """
        drawn = tally[::2] + tally[1::2]
        reports, some = np.maximum(drawn, 1), drawn > 0
        sampling = np.where(some, 1 / reports - 1 / max(n, 1), 0)
        return np.where(some, self._noise / reports, self._noise + 1), sampling

    def share_reach(self, item: int, np: Numpy) -> Reach:
        """Return the reach of the coin; only reports about the item bear upon it."""
        q = float(self.flip)
        return Reach(-q / (1 - 2 * q), (1 - q) / (1 - 2 * q), float(self.domain_size))

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Every device draws its item evenly."""
        counts = tally.reshape(*tally.shape[:-1], -1, 2).sum(axis=-1)
        return NoiseLaw(draws=Draws(counts, 1 / self.domain_size))

    def predict(self, n: int) -> float:
        """Return the standard error of the share of an item that half of the devices hold.

        That is the largest: (d v + (d-1)/4)/n, squared.
        """
        items = self.domain_size
        return math.sqrt((items * self._noise + (items - 1) / 4) / n)

    @cached_property
    def _noise(self) -> float:
        """The variance v that the coin gives the share of one answer."""
        q = float(self.flip)
        return q * (1 - q) / (1 - 2 * q) ** 2


MECHANISM: Final = SampledItem
