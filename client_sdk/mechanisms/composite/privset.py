"""PrivSet: a report is a random subset of the domain, likelier if it meets the set of the device.

Source: Wang, Huang, Nie, Wang, Xu, Yang, *PrivSet: Set-Valued Data Analyses with Local Differential
    Privacy*, IEEE INFOCOM 2018: the exponential mechanism over subsets, with e^ε for those that
    meet the padded set and 1 for all others.  That a subset is a polynomial is derived here: its
    report grows with the set, not with the subset.
Proof: a subset is a polynomial h of degree at most ℓ = ``pad`` over the integers modulo the prime
    P, and holds the points x with h(x) < w = ``width``.  A set is filled up to ℓ points with
    dummies, d … d + ℓ - 1, for which P has room; a larger one is cut to ℓ items drawn at random.
    For any ℓ + 1 points and values one h takes them, so P (P-w)^ℓ polynomials miss a set and
    H = P^(ℓ+1) - P (P-w)^ℓ meet it, whichever the set is.  All that meet it are equally likely, and
    so are all that miss it.  With the chance t of one that meets it, the ratio of any report is at
    most t (P^(ℓ+1) - H) / ((1-t) H).  t is e^ε H/(e^ε H + P^(ℓ+1) - H) rounded down to the grid,
    hence at most e^ε.

The value of another item is independent of those of the set: it is supported with q = w/P exactly.
An item of the set is with p = t w/P / (1 - (1-w/P)^ℓ), its part of the subsets that meet the set.
The estimate is unbiased for sets of at most ℓ items; of a larger one of s items each counts ℓ/s,
too little.  The variance of a small share is near 4.2 ℓ at ε = 1, where ``padding_sampling`` has
4 ℓ^2 e^ε/(e^ε - 1)^2 and ``sampled_item`` d e^ε/(e^ε - 1)^2; w is the width of the least.

Draws: of s > ℓ items uniform(s!/(s-ℓ)!), whose remainders by s, s-1, … are how far behind its place
    each of the ℓ items is that are left; true(truth) meets the set; of its values, by rising
    points, the rank by uniform(P^ℓ - (P-w)^ℓ) if so, else uniform((P-w)^ℓ); uniform(P), the leading
    coefficient.  Of values that meet, those with the first below w come first, and then those with
    the first from w on, each time in order; coefficients are sent highest first, each in as many
    bits as P has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property

from ...core.dataclass import dataclass
from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, EpsilonLike, Mechanism, Numpy
from ..exact import THRESHOLD_BITS, exp_floor, floor_to_grid
from ..families import SetMechanism
from ..items.olh import is_prime, prime_from
from ..supports import Channel

MAX_PAD: Final = 32  # items; a report of more is long, and a fold slow
_USUAL_PAD: Final = 8  # items, where nobody says how many a set has
_LEAST_PRIME: Final = 251  # so that the best width of few items is met well
MAX_PRIME: Final = 1 << 25  # products of two values below it fit an int64
_FEW: Final = 64  # reports; as many are folded item by item
_CHUNK: Final = 1 << 14  # reports folded at once; their values stay in the cache
_CELLS: Final = 1 << 20  # values of few reports at once


@dataclass(frozen=True, init=False)
class PrivSet(SetMechanism):
    """PrivSet for sets of ``pad`` items.  A report is a polynomial."""

    name = "privset"
    constants = ("truth",)

    pad: int
    prime: int
    width: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        pad: int | None = None,
        prime: int | None = None,
        width: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take ℓ = *pad*, the next *prime*, and the *width* of the least variance of a share."""
        self.prepare(epsilon, domain_size, precision)
        usual = min(_USUAL_PAD, domain_size)
        most = min(MAX_PAD, domain_size)
        self.fix("pad", usual if pad is None else pad, least=1, most=most)
        least = domain_size + self.pad
        field = prime_from(max(least, _LEAST_PRIME), 1) if prime is None else prime
        if type(field) is not int or not least <= field < MAX_PRIME or not is_prime(field):
            rule = f"must be a prime from domain_size + pad = {least} to {MAX_PRIME}"
            raise InvalidParameterError("prime", field, rule)
        object.__setattr__(self, "prime", field)
        best = best_width(self.epsilon, self.pad, field) if width is None else width
        self.fix("width", best, least=1, most=field - 1)
        self.validate()

    @classmethod
    def fit(
        cls, epsilon: EpsilonLike, domain_size: int, payload_bits: int
    ) -> Mechanism[frozenset[int]]:
        """Refuse: how many items a device has is for the registry to say.

        Raises: InvalidParameterError: always.
        """
        rule = "must be given: expected_size says about how many items a device has"
        raise InvalidParameterError("pad", "none", rule)

    @property
    def most(self) -> int:
        """Sets of up to ``pad`` items are not cut."""
        return self.pad

    @cached_property
    def misses(self) -> int:
        """The values at the points of a set that are all from w on."""
        return int((self.prime - self.width) ** self.pad)

    @cached_property
    def meets(self) -> int:
        """All others."""
        return int(self.prime**self.pad) - self.misses

    @cached_property
    def truth(self) -> Fraction:
        """t, the chance that a report meets the set, rounded down to the grid."""
        weight = exp_floor(self.epsilon) * self.meets
        return floor_to_grid(weight / (weight + self.misses), self.precision)

    @cached_property
    def channel(self) -> Channel:
        """Return the chances that a report holds an item of the set, and another item."""
        own = Fraction(self.width * self.prime ** (self.pad - 1), self.meets)
        return Channel(self.truth * own, Fraction(self.width, self.prime))

    @property
    def likelihood_ratio(self) -> Fraction:
        """t (P^(ℓ+1) - H) / ((1-t) H)."""
        return self.truth * self.misses / ((1 - self.truth) * self.meets)

    @property
    def bits(self) -> int:
        """Bits of a coefficient."""
        return self.prime.bit_length()

    @cached_property
    def payload_size(self) -> int:
        """One more coefficient than items of a set, in whole bytes together."""
        return -(-self.bits * (self.pad + 1) // 8)

    def randomize(self, value: frozenset[int], randomness: Randomness) -> bytes:
        """Return a polynomial that meets *value*, or misses it."""
        self.require_value(value)
        points = [*self._cut(value, randomness), *self.dummies][: self.pad]
        if randomness.bernoulli(self.truth):
            values = self._meeting(randomness.uniform(self.meets))
        else:
            span = self.prime - self.width
            rank = randomness.uniform(self.misses)
            values = [self.width + digit for digit in _digits(rank, span, self.pad)]
        return self.pack(self._through(points, values, randomness.uniform(self.prime)))

    @property
    def dummies(self) -> range:
        """The points that fill a set up."""
        return range(self.domain_size, self.domain_size + self.pad)

    def _cut(self, value: frozenset[int], randomness: Randomness) -> list[int]:
        """Return the items that rise, of too many ℓ drawn at random."""
        items = sorted(value)
        if len(items) <= self.pad:
            return items
        rest = randomness.uniform(math.perm(len(items), self.pad))
        for place in range(self.pad):
            rest, ahead = divmod(rest, len(items) - place)
            items[place], items[place + ahead] = items[place + ahead], items[place]
        return sorted(items[: self.pad])

    def _meeting(self, rank: int) -> list[int]:
        """Return the values of this *rank* among those of which one is below w."""
        values: list[int] = []
        left = self.pad - 1  # values after the next
        while rank >= (before := self.width * self.prime**left):
            meeting = self.prime**left - (self.prime - self.width) ** left
            above, rank = divmod(rank - before, meeting)
            values.append(self.width + above)
            left -= 1
        first, rest = divmod(rank, self.prime**left)
        return [*values, first, *_digits(rest, self.prime, left)]

    def _through(self, points: Sequence[int], values: Sequence[int], leading: int) -> list[int]:
        """Return the coefficients, lowest first, of the polynomial of these values at *points*.

        By Newton's divided differences.
        """
        prime, slopes = self.prime, list(values)
        for order in range(1, len(points)):
            for i in range(len(points) - 1, order - 1, -1):
                run = pow(points[i] - points[i - order], -1, prime)
                slopes[i] = (slopes[i] - slopes[i - 1]) * run % prime
        coefficients = [leading]
        for point, slope in zip(reversed(points), reversed(slopes), strict=True):
            shifted = [slope, *coefficients]
            for i, coefficient in enumerate(coefficients):
                shifted[i] = (shifted[i] - point * coefficient) % prime
            coefficients = shifted
        return coefficients

    def pack(self, coefficients: Sequence[int]) -> bytes:
        """Return the payload of *coefficients*, lowest first."""
        number = sum(c << self.bits * i for i, c in enumerate(coefficients))
        return number.to_bytes(self.payload_size, "big")

    def unpack(self, payload: bytes) -> list[int]:
        """Return the coefficients, lowest first; the highest has all bits that are left."""
        number, mask = int.from_bytes(payload, "big"), (1 << self.bits) - 1
        lower = [number >> self.bits * i & mask for i in range(self.pad)]
        return [*lower, number >> self.bits * self.pad]

    def reason(self, payload: bytes) -> str | None:
        """Refuse a coefficient that is no residue."""
        wrong = any(coefficient >= self.prime for coefficient in self.unpack(payload))
        return "coefficient_out_of_range" if wrong else None

    def faults(self, payloads: bytes, np: Numpy) -> dict[str, Array]:
        """Look at the coefficients of the whole column."""
        coefficients, beyond = self._columns(payloads, np)
        return {"coefficient_out_of_range": (coefficients >= self.prime).any(axis=0) | beyond}

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items of its subset."""
        coefficients = self.unpack(payload)[::-1]
        return [x for x in range(self.domain_size) if self._value(coefficients, x) < self.width]

    def _value(self, coefficients: Sequence[int], point: int) -> int:
        value = 0
        for coefficient in coefficients:
            value = (value * point + coefficient) % self.prime
        return value

    @property
    def fold_steps(self) -> int:
        """Every item has a value, which is worked out in ℓ steps."""
        return self.domain_size * self.pad

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Work out the values of all items: of few reports at once, or item by item of many."""
        coefficients, _ = self._columns(payloads, np)
        reports = coefficients.shape[1]
        cells = np.zeros(self.domain_size, dtype=np.int64)
        many = reports > _FEW
        step = _CHUNK if many else max(_CELLS // self.domain_size, 1)
        for start in range(0, reports, step):
            chunk = coefficients[:, start : start + step]
            cells += self._by_item(chunk, np) if many else self._by_report(chunk, np)
        return cells

    def _columns(self, payloads: bytes, np: Numpy) -> tuple[Array, Array]:
        """Return the coefficients, lowest first, shape (pad + 1, n), and which rows have more."""
        rows = np.frombuffer(payloads, dtype=np.uint8).reshape(-1, self.payload_size)
        bits = np.unpackbits(rows, axis=1)
        used = self.bits * (self.pad + 1)
        spare = bits.shape[1] - used
        fields = bits[:, spare:].reshape(len(rows), self.pad + 1, self.bits)
        places = 1 << np.arange(self.bits - 1, -1, -1, dtype=np.int64)
        return (fields @ places).T[::-1], bits[:, :spare].any(axis=1)

    def _by_report(self, coefficients: Array, np: Numpy) -> Array:
        items = np.arange(self.domain_size, dtype=np.int64)[:, None]
        values = np.zeros((self.domain_size, coefficients.shape[1]), dtype=np.int64)
        for coefficient in coefficients[::-1]:
            values = (values * items + coefficient) % self.prime
        return (values < self.width).sum(axis=1, dtype=np.int64)

    def _by_item(self, coefficients: Array, np: Numpy) -> Array:
        """Return the tally of a chunk: by its differences, the next value is a sum of ℓ numbers."""
        prime = np.uint32(self.prime)
        first = np.arange(self.pad + 1, dtype=np.int64)[:, None]
        values = np.zeros_like(coefficients)
        for coefficient in coefficients[::-1]:
            values = (values * first + coefficient) % self.prime
        for order in range(1, self.pad + 1):
            values[order:] = (values[order:] - values[order - 1 : -1]) % self.prime
        state = values.astype(np.uint32)
        cells = np.zeros(self.domain_size, dtype=np.int64)
        spare = np.empty_like(state[0])
        for item in range(self.domain_size):
            cells[item] = np.count_nonzero(state[0] < self.width)
            for order in range(self.pad):
                state[order] += state[order + 1]
                np.subtract(state[order], prime, out=spare)  # below the prime, it wraps round
                np.minimum(state[order], spare, out=state[order])
        return cells


def best_width(epsilon: Fraction, pad: int, prime: int) -> int:
    """Return the w of the least variance of a small share, which falls and then rises."""
    odds = floor_to_grid(exp_floor(epsilon), 64)  # a hundred digits would take ten times as long
    low, high = 1, prime - 1
    while low < high:
        middle = (low + high) // 2
        if _variance(middle, pad, prime, odds) <= _variance(middle + 1, pad, prime, odds):
            high = middle
        else:
            low = middle + 1
    return low


def _variance(width: int, pad: int, prime: int, odds: Fraction) -> Fraction:
    """Return q (1-q) / (p-q)^2, times (e^ε - 1)^2, of a real number e^ε."""
    missed = Fraction((prime - width) ** pad, prime**pad)
    risen = missed + odds * (1 - missed)
    return Fraction(prime - width, width) * (risen / missed) ** 2


def _digits(number: int, base: int, count: int) -> list[int]:
    """Return *number* in so many digits, highest first."""
    digits = []
    for _ in range(count):
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits[::-1]


MECHANISM: Final = PrivSet
