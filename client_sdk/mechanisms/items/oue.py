"""Optimized unary encoding: one bit an item; the true one is sent by a fair coin, others rarely.

Source: Wang, Blocki, Li, Jha, USENIX Security 2017 (optimized unary encoding, its p and q).
Proof: the bits of two values differ in two places, and bits are independent, so the likelihood
    ratio of any report is at most p(1-q) / (q(1-p)), which is (1-q)/q for p = 1/2.  q is 1/(e^ε+1)
    rounded up to the grid, hence (1-q)/q <= e^ε.

Draws: bits(flip, d) for the others; uniform(2) < 1 raises the item's own.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

from ...core.randomness import Randomness
from ...core.typing import Final
from ..bits import BitReports
from ..exact import flip_chance
from ..supports import Channel

_FAIR: Final = Fraction(1, 2)


class OUE(BitReports):
    """Optimized unary encoding.  A report is one noisy bit an item."""

    name = "oue"
    constants = ("flip",)

    @cached_property
    def flip(self) -> Fraction:
        """q, rounded up to the grid."""
        return flip_chance(self.epsilon, self.precision)

    @cached_property
    def channel(self) -> Channel:
        """Return p = 1/2, and q."""
        return Channel(_FAIR, self.flip)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return (1 - q) / q, exactly."""
        return (1 - self.channel.q) / self.channel.q

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return the bits of *value*: its own by a fair coin, every other raised with q."""
        self.require_value(value)
        own = self.one_hot(value)
        raised = randomness.bernoulli_bits(self.channel.q, self.domain_size) & ~own
        return self.pack(raised | own if randomness.bernoulli(self.channel.p) else raised)


MECHANISM: Final = OUE
