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
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Final

from ...core.randomness import Randomness
from ..base import Array, Numpy, column, width_of
from ..exact import exp_floor, floor_to_grid
from ..key_value import KeyChannel, KeyValueMechanism, Pairs


class PCKVGRR(KeyValueMechanism):
    """PCKV-GRR.  A report is a symbol: keys with plus, then with minus, then dummies."""

    name = "pckv_grr"

    @property
    def symbols(self) -> int:
        """How many different payloads there are."""
        return 2 * self.domain_size + self.pad

    @cached_property
    def channel(self) -> KeyChannel:
        """Truth with P, rounded down to the grid; the rest is shared by the other symbols."""
        odds = self.pad * (exp_floor(self.epsilon) - 1) + 1
        truth = floor_to_grid(odds / (odds + self.symbols - 1), self.precision)
        lie = (1 - truth) / (self.symbols - 1)
        return KeyChannel(truth, lie, lie)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return 1 + (P/Q - 1)/ℓ, exactly."""
        return 1 + (self.channel.same / self.channel.foreign - 1) / self.pad

    def randomize(self, value: Pairs, randomness: Randomness) -> bytes:
        """Return the symbol reported for *value*."""
        key, plus = self.draw_pair(value, randomness)
        symbol = key if plus and key < self.domain_size else self.domain_size + key
        if not randomness.bernoulli(self.channel.same):
            other = randomness.uniform(self.symbols - 1)
            symbol = other + (other >= symbol)  # skips the sampled symbol
        return symbol.to_bytes(self.payload_size, "big")

    @cached_property
    def payload_size(self) -> int:
        """1, 2 or 4 bytes."""
        return width_of(self.symbols)

    def reason(self, payload: bytes) -> str | None:
        """Refuse a symbol that no mapping gives."""
        return None if int.from_bytes(payload, "big") < self.symbols else "symbol_out_of_range"

    def suspects(self, payloads: bytes, np: Numpy) -> Array:
        """Compare the whole column with the number of symbols."""
        return column(payloads, self.payload_size, np) >= self.symbols

    def count_reasons(self, invalid: bytes, np: Numpy) -> dict[str, int]:
        """There is one reason."""
        return {"symbol_out_of_range": len(invalid) // self.payload_size}

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
        symbols = column(payloads, self.payload_size, np)
        return np.bincount(symbols, minlength=self.symbols)[: self.tally_size]


MECHANISM: Final = PCKVGRR
