"""Generalized randomized response: tell the truth with probability p, else another item at random.

Source: Warner, JASA 1965 (two items); Kairouz, Bonawitz, Ramage, ICML 2016 (k items).
Proof: an item is reported with probability p by its holders and q = (1-p)/(k-1) by anybody else, so
    the likelihood ratio of any report is at most p/q.  p is e^ε/(e^ε+k-1) rounded down to the grid,
    hence p/q <= e^ε.  The enumeration test replays this file and finds exactly p/q.

With two items this is Warner's coin: p = e^ε/(e^ε+1), and debiasing a share f_obs is
(f_obs - q)/(p - q) = 1/2 + (f_obs - 1/2)(e^ε+1)/(e^ε-1).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import Final

from ..randomness import Randomness
from ._base import Array, Numpy, column, width_of
from ._exact import exp_floor, floor_to_grid
from ._frequency import Channel, FrequencyOracle


class GRR(FrequencyOracle):
    """Generalized randomized response.  A report is an item."""

    name = "grr"

    @cached_property
    def channel(self) -> Channel:
        """Truth with p, rounded down to the grid; the rest is shared by the other items."""
        others = self.domain_size - 1
        odds = exp_floor(self.epsilon)
        p = floor_to_grid(odds / (odds + others), self.precision)
        return Channel(p, (1 - p) / others)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return p / q, exactly."""
        return self.channel.p / self.channel.q

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return the item reported for *value*."""
        self.require_item(value)
        if not randomness.bernoulli(self.channel.p):
            other = randomness.uniform(self.domain_size - 1)
            value = other + (other >= value)  # skips the true item
        return value.to_bytes(self.payload_size, "big")

    @cached_property
    def payload_size(self) -> int:
        """1, 2 or 4 bytes."""
        return width_of(self.domain_size)

    def reason(self, payload: bytes) -> str | None:
        """Refuse an item outside the domain."""
        return None if int.from_bytes(payload, "big") < self.domain_size else "item_out_of_range"

    def suspects(self, payloads: bytes, np: Numpy) -> Array:
        """Compare the whole column with the domain."""
        return column(payloads, self.payload_size, np) >= self.domain_size

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the item it names."""
        return (int.from_bytes(payload, "big"),)

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Count the items of the whole column."""
        return np.bincount(column(payloads, self.payload_size, np), minlength=self.domain_size)


MECHANISM: Final = GRR
