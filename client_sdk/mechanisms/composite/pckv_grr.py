"""PCKV-GRR: a sampled pair of key and sign, told truly or replaced by any other symbol.

Source: Gu, Li, Cheng, Xiong, Cao, *PCKV: Locally Differentially Private Correlated Key-Value Data
    Collection with Optimized Utility*, USENIX Security 2020 (PCKV-GRR).  The constants are derived
    here; unlike theirs, dummies have one sign.
Proof: a symbol is (key, sign) or one of ℓ = ``pad`` dummies, k = 2d + ℓ in all.  The sampled symbol
    is told with P and any other with Q = (1-P)/(k-1).  A device samples a given symbol, also a
    given dummy, with a chance of at most 1/ℓ, since it has at least ℓ pairs with its dummies.  So a
    report's probability lies between Q and Q + (P-Q)/ℓ whatever the device holds, and a ratio is at
    most 1 + (P/Q - 1)/ℓ.  With P = O/(O+k-1), O = ℓ(e^ε - 1) + 1, rounded down to the grid, that is
    at most e^ε.  It is reached: one device holds just that pair, another the same key at the
    other sign.

Sampling thus pays for itself: the odds O are ℓ times those of plain randomized response, nearly.
For one pair they are the composition ε = max{ε2, ε1 + ln(2/(1+e^-ε2))} at its optimum, ε2 = ε and
e^ε1 = (e^ε+1)/2: the key is told with (e^ε+1)Q, e^ε1 times the 2Q of another key, and then the
sign with e^ε/(e^ε+1).

Draws: uniform(max(ℓ, s)) of s pairs: the key of that rank, or a dummy; of a key uniform(den) < num
    of its position num/den, for plus.  Then true(truth), and of a lie uniform(2d + ℓ - 1), from the
    symbol on one higher.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, Numpy
from ..exact import exp_floor, respond, truth_chance
from ..families import NumberReports
from ..key_value import KeyChannel, KeyValueMechanism, Pairs


class PCKVGRR(NumberReports[Pairs], KeyValueMechanism):
    """PCKV-GRR.  A report is a symbol: keys with plus, then with minus, then dummies."""

    name = "pckv_grr"
    beyond = "symbol_out_of_range"
    constants = ("truth",)

    @property
    def payload_count(self) -> int:
        """How many different payloads there are."""
        return 2 * self.domain_size + self.pad

    @cached_property
    def truth(self) -> Fraction:
        """P, rounded down to the grid."""
        odds = self.pad * (exp_floor(self.epsilon) - 1) + 1
        return truth_chance(odds, self.payload_count - 1, self.precision)

    @cached_property
    def channel(self) -> KeyChannel:
        """Truth with P; the rest is shared by the other symbols."""
        lie = (1 - self.truth) / (self.payload_count - 1)
        return KeyChannel(self.truth, lie, lie)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return 1 + (P/Q - 1)/ℓ, exactly."""
        return 1 + (self.channel.same / self.channel.foreign - 1) / self.pad

    def randomize(self, value: Pairs, randomness: Randomness) -> bytes:
        """Return the symbol reported for *value*."""
        key, plus = self.draw_pair(value, randomness)
        symbol = key if plus and key < self.domain_size else self.domain_size + key
        report = respond(symbol, self.payload_count, self.channel.same, randomness)
        return report.to_bytes(self.payload_size, "big")

    @property
    def most_supports(self) -> int:
        """One key, or none for a dummy."""
        return 1

    def supports(self, payload: bytes) -> tuple[int, ...]:
        """A report supports the pair it names."""
        symbol = int.from_bytes(payload, "big")
        return (symbol,) if symbol < self.tally_size else ()

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Count the symbols of the whole column and leave the dummies out."""
        return self.report_counts(payloads, np)[: self.tally_size]


MECHANISM: Final = PCKVGRR
