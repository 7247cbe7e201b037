"""Padding and sampling: report one of the items of a set, which is first filled up with dummies.

Source: Qin, Yang, Yu, Khalil, Xiao, Ren, *Heavy Hitter Estimation over Set-Valued Data with Local
    Differential Privacy*, CCS 2016 (padding and sampling); Wang, Li, Jha, *Locally Differentially
    Private Frequent Itemset Mining*, IEEE S&P 2018 (its privacy amplification with randomized
    response).  Both probabilities are derived here, and enumerated by the tests.
Proof: a set has ℓ = ``pad`` slots.  One of them is drawn, and what it holds is reported: one of the
    items, each with chance 1/ℓ at most, or the dummy of an empty slot.

    *Randomized response* (``unary`` = 0) over d items and ℓ dummies, one a slot: the drawn symbol
    is told with probability p, any other symbol with q = (1-p)/(d+ℓ-1).  A symbol r is reported
    with probability q + (p-q) Pr[r is drawn], and 0 <= Pr[r is drawn] <= 1/ℓ, so the likelihood
    ratio is at most 1 + (p/q - 1)/ℓ.  With p = o/(o+d+ℓ-1), o = 1 + ℓ(e^ε - 1), rounded down to the
    grid, p/q <= o, hence the ratio is at most e^ε: sampling pays for the error that it makes.

    *Unary encoding* (``unary`` = 1) over d items and one dummy for all empty slots: the law of a
    report is a mean of laws of OUE, and a ratio of means is at most the largest ratio, that of OUE.
    Here sampling gains nothing: the report of one dummy alone reaches the bound.

A holder's item is supported with q + (p-q)/ℓ, anybody else's with q: the estimate is unbiased for
sets of at most ℓ items.  A larger set is cut to ℓ items drawn at random, which is the same as
drawing one of its s items: they count ℓ/s each, too little.  All items (ℓ = d) are the default,
so that nothing is cut.  The variance of a small share is (ℓe^ε + d - 1)/(e^ε - 1)^2 of randomized
response and 4ℓ^2 e^ε/(e^ε - 1)^2 of unary encoding; the default is the smaller.

Draws: uniform(max(ℓ, s)) of a set of s: the item of that rank, or a dummy.  With ``unary`` as in
    ``oue`` over d + 1 symbols by ``flip``, else true(truth), and of a lie uniform(d + ℓ - 1), from
    the symbol on one higher.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property

from ...core.dataclass import dataclass
from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, Constant, EpsilonLike, NoiseLaw, Numpy, column, width_of
from ..bits import MAX_ITEMS
from ..exact import THRESHOLD_BITS, exp_floor, respond, truth_chance
from ..families import SetMechanism
from ..items.oue import OUE
from ..supports import Channel


@dataclass(frozen=True, init=False)
class PaddingSampling(SetMechanism):
    """Padding and sampling with ``pad`` slots.  A report is a symbol, or one bit a symbol."""

    name = "padding_sampling"
    constants = ("flip", "truth")

    pad: int
    unary: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        pad: int | None = None,
        unary: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take ℓ = *pad* slots, or one an item, and *unary* 0 or 1, or the better."""
        self.prepare(epsilon, domain_size, precision)
        self.fix("pad", domain_size if pad is None else pad, least=1, most=domain_size)
        self.fix("unary", self._better() if unary is None else unary, least=0, most=1)
        self.validate()

    def validate(self) -> None:
        """Refuse reports too long to send, and a channel without 0 < q < p < 1."""
        if self.unary and self.domain_size >= MAX_ITEMS:
            rule = f"must be below {MAX_ITEMS} for unary=1, as a report has one bit an item"
            raise InvalidParameterError("domain_size", self.domain_size, rule)
        super().validate()

    def _better(self) -> int:
        """Return 1 where unary encoding has the smaller variance of small shares and fits."""
        odds = exp_floor(self.epsilon)
        response = self.pad * odds + self.domain_size - 1
        return int(self.domain_size < MAX_ITEMS and 4 * self.pad**2 * odds < response)

    @property
    def most(self) -> int:
        """Sets of up to ``pad`` items are not cut."""
        return self.pad

    @cached_property
    def encoder(self) -> OUE:
        """The unary encoding of the items and of one dummy, the last symbol."""
        return OUE(self.epsilon, self.domain_size + 1, precision=self.precision)

    @property
    def flip(self) -> Fraction:
        """That of the unary encoding."""
        return self.encoder.flip

    @cached_property
    def truth(self) -> Fraction:
        """The chance that randomized response tells the drawn symbol."""
        odds = 1 + self.pad * (exp_floor(self.epsilon) - 1)
        return truth_chance(odds, self.symbols - 1, self.precision)

    @cached_property
    def symbols(self) -> int:
        """Items and dummies."""
        return self.domain_size + (1 if self.unary else self.pad)

    @cached_property
    def symbol_channel(self) -> Channel:
        """The chances that a report supports the drawn symbol, and another one."""
        if self.unary:
            return self.encoder.channel
        return Channel(self.truth, (1 - self.truth) / (self.symbols - 1))

    def constant_values(self) -> dict[str, Constant]:
        """Unary encoding flips bits, randomized response tells a symbol truly."""
        name = "flip" if self.unary else "truth"
        return {name: getattr(self, name)}

    @cached_property
    def channel(self) -> Channel:
        """The chances of support, the drawing of a slot included."""
        p, q = self.symbol_channel.p, self.symbol_channel.q
        return Channel(q + (p - q) / self.pad, q)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return that of OUE, or p / q of the channel, exactly."""
        if self.unary:
            return self.encoder.likelihood_ratio
        return self.channel.p / self.channel.q

    def randomize(self, value: frozenset[int], randomness: Randomness) -> bytes:
        """Draw a slot of *value* and report its symbol."""
        self.require_value(value)
        drawn = randomness.uniform(max(self.pad, len(value)))
        if drawn < len(value):
            symbol = sorted(value)[drawn]
        else:
            symbol = self.domain_size + (0 if self.unary else drawn)
        if self.unary:
            return self.encoder.randomize(symbol, randomness)
        report = respond(symbol, self.symbols, self.symbol_channel.p, randomness)
        return report.to_bytes(self.payload_size, "big")

    @cached_property
    def payload_size(self) -> int:
        """1 to 4 bytes as a symbol, otherwise one bit a symbol."""
        return self.encoder.payload_size if self.unary else width_of(self.symbols)

    def reason(self, payload: bytes) -> str | None:
        """Refuse a symbol that does not exist, or bits of none."""
        if self.unary:
            return self.encoder.reason(payload)
        return None if int.from_bytes(payload, "big") < self.symbols else "symbol_out_of_range"

    def faults(self, payloads: bytes, np: Numpy) -> dict[str, Array]:
        """Look at the whole column."""
        if self.unary:
            return self.encoder.faults(payloads, np)
        return {"symbol_out_of_range": column(payloads, self.payload_size, np) >= self.symbols}

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items that it names; dummies are no items."""
        first = (int.from_bytes(payload, "big"),)
        named = self.encoder.supports(payload) if self.unary else first
        return (symbol for symbol in named if symbol < self.domain_size)

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Every item is told with q at least; symbols and bits do not go together."""
        return NoiseLaw(lowest=float(self.channel.q))

    @property
    def fold_steps(self) -> int:
        """One, or every bit."""
        return self.encoder.fold_steps if self.unary else 1

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Count the items of the whole column and drop the dummies."""
        if self.unary:
            return self.encoder.tally(payloads, np)[: self.domain_size]
        named = column(payloads, self.payload_size, np)
        return np.bincount(named, minlength=self.symbols)[: self.domain_size]


MECHANISM: Final = PaddingSampling
