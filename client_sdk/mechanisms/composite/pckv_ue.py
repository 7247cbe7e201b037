"""PCKV-UE: plus, minus or nothing for every key; the sampled key keeps its sign more often.

Source: Gu, Li, Cheng, Xiong, Cao, *PCKV: Locally Differentially Private Correlated Key-Value Data
    Collection with Optimized Utility*, USENIX Security 2020 (PCKV-UE; its optimum of a, b and p
    under the composition ε = max{ε2, ε1 + ln(2/(1+e^-ε2))}: ε2 = ε, e^ε1 = (e^ε+1)/2).
Proof: let the sampled key show its sign with ap, the other with a(1-p), nothing with 1-a, and any
    other key either sign with b/2, nothing with 1-b.  Relative to a report in which no key is
    sampled, a report is f times as likely, f being 2ap/b, 2a(1-p)/b or (1-a)/(1-b) by what the
    sampled key shows, and 1 for a dummy.  With a = 1/2 a ratio is thus at most the largest f = p/b
    over the smallest, that is max(p/(1-p), 2p(1-b)/b), also for any mixture over the sampled key.
    p = e^ε/(e^ε+1), rounded down, and b = 2/(e^ε+3), rounded up, make both e^ε but for rounding.

A dummy leaves all keys unsampled, so dummies need no bits: what they would show is never sent.

Draws: the pair as in ``pckv_grr``; bits(shown, d); bits(1/2, d), set for plus; uniform(2) < 1 shows
    the sampled key; true(kept) keeps its sign.  All are drawn for a dummy too.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, Numpy
from ..bits import CHUNK, MAX_ITEMS, column_sums
from ..exact import ceil_to_grid, exp_floor, floor_to_grid
from ..key_value import KeyChannel, KeyValueMechanism, Pairs

_FAIR: Final = Fraction(1, 2)
_MAX_KEYS: Final = MAX_ITEMS // 2  # keys; a report of 8 KiB


class PCKVUE(KeyValueMechanism):
    """PCKV-UE.  A report is a bit a key for plus, then a bit a key for minus; highest bit first."""

    name = "pckv_ue"
    constants = ("kept", "shown")

    def validate(self) -> None:
        """Refuse reports too long to send."""
        if self.domain_size > _MAX_KEYS:
            rule = f"must be at most {_MAX_KEYS}, as a report has two bits a key"
            raise InvalidParameterError("domain_size", self.domain_size, rule)
        if not 0 < self.shown < 1:
            raise self.no_channel()
        super().validate()

    @cached_property
    def kept(self) -> Fraction:
        """p, the chance that the sampled key keeps its sign, rounded down to the grid."""
        odds = exp_floor(self.epsilon)
        return floor_to_grid(odds / (odds + 1), self.precision)

    @cached_property
    def shown(self) -> Fraction:
        """b, the chance that any other key shows a sign, rounded up to the grid."""
        return ceil_to_grid(2 / (exp_floor(self.epsilon) + 3), self.precision)

    @cached_property
    def channel(self) -> KeyChannel:
        """Return p/2, (1-p)/2 and b/2."""
        return KeyChannel(self.kept / 2, (1 - self.kept) / 2, self.shown / 2)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return max(p/(1-p), 2p(1-b)/b), exactly."""
        by_sign = self.kept / (1 - self.kept)
        return max(by_sign, 2 * self.kept * (1 - self.shown) / self.shown)

    def randomize(self, value: Pairs, randomness: Randomness) -> bytes:
        """Return the signs shown for *value*; a device that drew a dummy shows chance alone."""
        key, plus = self.draw_pair(value, randomness)
        size = self.domain_size
        shown = randomness.bernoulli_bits(self.shown, size)
        signs = randomness.bernoulli_bits(_FAIR, size)
        own_shown = randomness.bernoulli(_FAIR)
        own_plus = randomness.bernoulli(self.kept) == plus
        if key < size:
            own = 1 << (size - 1 - key)
            shown = shown | own if own_shown else shown & ~own
            signs = signs | own if own_plus else signs & ~own
        bits = (shown & signs) << size | (shown & ~signs)
        return (bits << self._padding).to_bytes(self.payload_size, "big")

    @cached_property
    def payload_size(self) -> int:
        """Two bits a key, in whole bytes."""
        return (2 * self.domain_size + 7) // 8

    def reason(self, payload: bytes) -> str | None:
        """Refuse bits that belong to no key, and a key with both signs."""
        bits = int.from_bytes(payload, "big")
        if bits & ((1 << self._padding) - 1):
            return "bits_beyond_domain"
        bits >>= self._padding
        return "both_signs" if bits & (bits >> self.domain_size) else None

    def faults(self, payloads: bytes, np: Numpy) -> dict[str, Array]:
        """Look at the last byte, and compare both signs of every key, in bounded memory."""
        rows = np.frombuffer(payloads, dtype=np.uint8).reshape(-1, self.payload_size)
        beyond = (rows[:, -1] & ((1 << self._padding) - 1)) != 0
        size, both = self.domain_size, np.zeros(len(rows), dtype=bool)
        step = max(CHUNK // (8 * self.payload_size), 1)  # rows
        for start in range(0, len(rows), step):
            bits = np.unpackbits(rows[start : start + step], axis=1)
            both[start : start + step] = (bits[:, :size] & bits[:, size : 2 * size]).any(axis=1)
        return {"bits_beyond_domain": beyond, "both_signs": both}

    @property
    def fold_steps(self) -> int:
        """Every key has two bits."""
        return self.tally_size

    @property
    def most_supports(self) -> int:
        """All keys."""
        return self.domain_size

    def supports(self, payload: bytes) -> tuple[int, ...]:
        """A report supports the pairs whose bit is 1."""
        bits, last = int.from_bytes(payload, "big") >> self._padding, self.tally_size - 1
        return tuple(cell for cell in range(self.tally_size) if bits >> (last - cell) & 1)

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Add up the bits of the whole column."""
        return column_sums(payloads, self.payload_size, np)[: self.tally_size]

    @cached_property
    def _padding(self) -> int:
        """Low bits of the last byte that belong to no key."""
        return 8 * self.payload_size - self.tally_size


MECHANISM: Final = PCKVUE
