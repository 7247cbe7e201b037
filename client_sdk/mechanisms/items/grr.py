"""Generalized randomized response: tell the truth with probability p, else another item at random.

Source: Warner, JASA 1965 (two items); Kairouz, Bonawitz, Ramage, ICML 2016 (k items).
Proof: an item is reported with probability p by its holders and q = (1-p)/(k-1) by anybody else, so
    the likelihood ratio of any report is at most p/q.  p is e^ε/(e^ε+k-1) rounded down to the grid,
    hence p/q <= e^ε.  The enumeration test replays this file and finds exactly p/q.

With two items this is Warner's coin: p = e^ε/(e^ε+1), and debiasing a share f_obs is
(f_obs - q)/(p - q) = 1/2 + (f_obs - 1/2)(e^ε+1)/(e^ε-1).

Draws: true(truth); of a lie uniform(d - 1), from the item on one higher.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property

from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, NoiseLaw, Numpy
from ..exact import exp_floor, respond, truth_chance
from ..families import CountedReports
from ..frequency import FrequencyOracle, PairLaw
from ..supports import Channel


class GRR(CountedReports[int], FrequencyOracle):
    """Generalized randomized response.  A report is an item."""

    name = "grr"
    beyond = "item_out_of_range"
    constants = ("truth",)

    @cached_property
    def truth(self) -> Fraction:
        """p, rounded down to the grid."""
        return truth_chance(exp_floor(self.epsilon), self.domain_size - 1, self.precision)

    @cached_property
    def channel(self) -> Channel:
        """Truth with p; the rest is shared by the other items."""
        return Channel(self.truth, (1 - self.truth) / (self.domain_size - 1))

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return p / q, exactly."""
        return self.channel.p / self.channel.q

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return the item reported for *value*."""
        self.require_value(value)
        report = respond(value, self.domain_size, self.channel.p, randomness)
        return report.to_bytes(self.payload_size, "big")

    @property
    def payload_count(self) -> int:
        """One report an item."""
        return self.domain_size

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the item it names."""
        return (int.from_bytes(payload, "big"),)

    def most_supported(self, items: int) -> int:
        """A report supports one item."""
        return min(items, 1)

    def pair_law(self) -> PairLaw:
        """No report supports two items."""
        return PairLaw(0.0, 0.0)

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Every item is told with q at least, and each report tells one."""
        return NoiseLaw(lowest=float(self.channel.q))


MECHANISM: Final = GRR
