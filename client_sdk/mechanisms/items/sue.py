"""Symmetric unary encoding: one bit an item, 1 for the true one, each flipped on its own.

Source: Erlingsson, Pihur, Korolova, *RAPPOR*, CCS 2014 (basic, one-time RAPPOR); Wang et al.,
    USENIX Security 2017 (symmetric unary encoding, its p and q).
Proof: the bits of two values differ in two places.  A bit is sent as it is with probability p and
    flipped with q = 1 - p, so the likelihood ratio of any report is at most (p/q)^2, reached where
    both places differ.  q is 1/(√e^ε + 1) rounded up to the grid, hence p/q <= √e^ε and
    (p/q)^2 <= e^ε.

Draws: bits(flip, d), which flip the one-hot bits.
"""

from __future__ import annotations

from ...core.randomness import Randomness
from ...core.typing import Final
from ..bits import BitReports, FlippedBits


class SUE(FlippedBits, BitReports):
    """Symmetric unary encoding.  A report is one noisy bit an item."""

    name = "sue"

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return the one-hot bits of *value*, each flipped with probability q."""
        self.require_value(value)
        flips = randomness.bernoulli_bits(self.channel.q, self.domain_size)
        return self.pack(self.one_hot(value) ^ flips)


MECHANISM: Final = SUE
