"""Optimized local hashing: hash the item to one of g buckets, and report that bucket by GRR.

Source: Wang, Blocki, Li, Jha, USENIX Security 2017, section 4.4 (OLH), with g near e^ε + 1.
Proof: the seed is drawn without looking at the item; given the seed, the report is GRR over g
    buckets, whose ratio is p/q' with q' = (1-p)/(g-1).  p is e^ε/(e^ε+g-1) rounded down to the
    grid.  So the report is ε-LDP for every seed: the hash decides accuracy only.

The hash is ((a·x + b) mod P) mod g with seed a, b uniform below the prime P.  For two items
(a·x + b, a·y + b) mod P is uniform over all pairs, so the chance that they collide is known exactly
(``collision``) and no bias is left.  The report is ((a·P + b)·g + bucket), at most 64 bits.  P is
2^28 - 57 for up to 256 buckets and the largest prime that leaves room for more; P must be at
least the number of items, so many items bound g from above.

Draws: uniform(P^2), the seed a·P + b; true(truth); of a lie uniform(g - 1), from the bucket on one
    higher.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import count

from ...core.dataclass import dataclass
from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import ClassVar, Final
from ..base import Array, EpsilonLike, Numpy, column
from ..exact import THRESHOLD_BITS, exp_floor, respond, truth_chance
from ..families import NumberReports
from ..frequency import FrequencyOracle, UniformLaw, cached_by_weights
from ..supports import Channel

PRIME: Final = (1 << 28) - 57  # two seeds and a bucket below 257 fill 64 bits
_SMALL_PRIME: Final = (1 << 20) - 3  # leaves room for MAX_BUCKETS
MAX_BUCKETS: Final = 1 << 24  # about e^16 + 1, the best of the largest epsilon
_FEW_BUCKETS: Final = 256  # allowed for any domain; beyond as many as items, GRR itself errs less
_REPORTS: Final = 1 << 64  # different ones in 8 bytes
SEEDS: Final = 4_096  # hash functions; variances are then off by about one in a hundred
_LEAST_SEEDS: Final = 64  # and then by about one in ten, where weights are very many
_CELLS: Final = 1 << 25  # weights times seeds; a second or less
_CHUNK: Final = 1 << 14  # reports hashed at once; their 64 KiB stay in the cache


@dataclass(frozen=True, init=False)
class OLH(NumberReports[int], FrequencyOracle):
    """Local hashing to ``buckets`` cells.  A report is a seed and a bucket."""

    name = "olh"
    beyond = "seed_out_of_range"
    constants: ClassVar[tuple[str, ...]] = ("truth",)
    most_buckets: ClassVar[int] = MAX_BUCKETS

    buckets: int
    prime: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        buckets: int | None = None,
        prime: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take g = *buckets*, or the integer of the smallest error; *prime* only in tests."""
        self.prepare(epsilon, domain_size, precision)
        most = min(self.most_buckets, room(domain_size), max(_FEW_BUCKETS, domain_size))
        best = best_buckets(self.epsilon, most) if buckets is None else buckets
        self.fix("buckets", best, least=2, most=most)
        field = _best_prime(best) if prime is None else prime
        if type(field) is not int or not 2 <= field <= PRIME or not is_prime(field):
            raise InvalidParameterError("prime", field, f"must be a prime up to {PRIME}")
        if field**2 * best > _REPORTS:
            rule = f"is too large for 64 bits with buckets={best}"
            raise InvalidParameterError("prime", field, rule)
        if domain_size > field:
            raise InvalidParameterError("domain_size", domain_size, f"must be at most {field}")
        object.__setattr__(self, "prime", field)
        self.validate()

    @cached_property
    def truth(self) -> Fraction:
        """The chance to report the item's own bucket."""
        return truth_chance(exp_floor(self.epsilon), self.buckets - 1, self.precision)

    @cached_property
    def collision(self) -> Fraction:
        """The exact chance that two different items share a bucket."""
        small, larger = divmod(self.prime, self.buckets)
        pairs = larger * (small + 1) ** 2 + (self.buckets - larger) * small**2
        return Fraction(pairs, self.prime**2)

    @cached_property
    def channel(self) -> Channel:
        """Return p, and q by whether another item shares the true one's bucket."""
        p, c = self.truth, self.collision
        return Channel(p, p * c + (1 - p) * (1 - c) / (self.buckets - 1))

    @property
    def likelihood_ratio(self) -> Fraction:
        """p (g-1) / (1-p)."""
        return self.truth * (self.buckets - 1) / (1 - self.truth)

    @cached_property
    def payload_count(self) -> int:
        """How many different payloads there are."""
        return self.prime**2 * self.buckets

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return a fresh seed and a bucket for *value*."""
        self.require_value(value)
        seed = randomness.uniform(self.prime**2)
        bucket = respond(self.bucket_of(seed, value), self.buckets, self.truth, randomness)
        return (seed * self.buckets + bucket).to_bytes(self.payload_size, "big")

    def uniform_law(self) -> UniformLaw:
        """Return that of a bucket that knows no item: 1/g, and only with a collision for two."""
        return UniformLaw(Fraction(1, self.buckets), self.collision / self.buckets)

    def uniform_payload(self, randomness: Randomness) -> bytes:
        """Return a fresh seed and a bucket that knows no item."""
        return randomness.uniform(self.payload_count).to_bytes(self.payload_size, "big")

    def bucket_of(self, seed: int, item: int) -> int:
        """Return the bucket that *seed* sends *item* to."""
        a, b = divmod(seed, self.prime)
        return (a * item + b) % self.prime % self.buckets

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items that its seed sends to its bucket."""
        seed, bucket = divmod(int.from_bytes(payload, "big"), self.buckets)
        return [x for x in range(self.domain_size) if self.bucket_of(seed, x) == bucket]

    @property
    def fold_steps(self) -> int:
        """Every item is hashed."""
        return self.domain_size

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Hash every item under every seed: all items at once, or all reports if these are more."""
        reports = column(payloads, self.payload_size, np).astype(np.uint64)
        seeds, buckets = np.divmod(reports, np.uint64(self.buckets))
        a, b = np.divmod(seeds, np.uint64(self.prime))
        if len(a) >= self.domain_size:
            narrow = np.stack((a, b, buckets)).astype(np.uint32)
            starts = range(0, len(a), _CHUNK)
            return sum(self._by_item(narrow[:, i : i + _CHUNK], np) for i in starts)
        cells = np.zeros(self.domain_size, dtype=np.int64)
        items = np.arange(self.domain_size, dtype=np.uint64)
        for i in range(len(a)):
            cells += (a[i] * items + b[i]) % self.prime % self.buckets == buckets[i]
        return cells

    def knows_sums(self, np: Numpy) -> bool:
        """Its moments are averaged over hash functions."""
        return True

    @cached_by_weights
    def sum_moments(self, weights: Array, np: Numpy) -> tuple[Array, Array]:
        """Return the moments, averaged over hash functions, as pairs of items collide unevenly.

        Given one, the sum of the weights in a bucket is supported with the chance of that bucket.
        """
        truth, buckets = float(self.truth), self.buckets
        other = (1 - truth) / (buckets - 1)
        hashes = self._hashes(int(np.clip(_CELLS // weights.size, _LEAST_SEEDS, SEEDS)), np)
        places = (hashes + buckets * np.arange(len(hashes))[:, None]).ravel()
        moments = np.zeros((2, *weights.shape))
        for row, weight in enumerate(weights):
            spread = np.broadcast_to(weight, hashes.shape).ravel()
            sums = np.bincount(places, spread, len(hashes) * buckets)
            for moment, power in zip(moments, (sums, sums**2), strict=True):
                own = power[places].reshape(hashes.shape).mean(axis=0)
                moment[row] = (truth - other) * own + other * power.sum() / len(hashes)
        return moments[0], moments[1]

    def _hashes(self, seeds: int, np: Numpy) -> Array:
        """Return the bucket of every item under a fixed choice of *seeds*, shape (seeds, items)."""
        a, b = np.random.default_rng(1).integers(0, self.prime, (2, seeds, 1))
        return (a * np.arange(self.domain_size) + b) % self.prime % self.buckets

    def _by_item(self, reports: Array, np: Numpy) -> Array:
        """Return the tally of a chunk of *reports*: rows a, b and bucket of uint32.

        From one item to the next the hash before its second modulus grows by a, modulo the prime.
        """
        cells = np.zeros(self.domain_size, dtype=np.int64)
        prime, count = np.uint32(self.prime), np.uint32(self.buckets)
        a, position, bucket = reports[0], reports[1].copy(), reports[2]
        for item in range(self.domain_size):
            cells[item] = np.count_nonzero(position - position // count * count == bucket)
            position += a
            # below the prime, the difference wraps round
            np.minimum(position, position - prime, out=position)
        return cells


def best_buckets(epsilon: Fraction, most: int) -> int:
    """Return the integer g of the smallest (E+g-1)^2 / (g-1), E + 1 rounded, or *most* if less."""
    odds = exp_floor(epsilon)
    low = min(int(odds) + 1, most - 1)
    return min(low, low + 1, key=lambda g: (odds + g - 1) ** 2 / (g - 1))


def room(domain_size: int) -> int:
    """Return the most buckets that leave 64 bits to seeds below a prime of *domain_size* or more.

    A field of 2^20 will do for fewer items, so that it takes no search: that leaves 2^24 buckets.
    """
    least = _SMALL_PRIME if domain_size <= _SMALL_PRIME else prime_from(domain_size, 1)
    return _REPORTS // least**2


@lru_cache(maxsize=64)
def _best_prime(buckets: int) -> int:
    """Return the largest prime up to PRIME whose seeds fit 64 bits beside *buckets*."""
    largest = math.isqrt(_REPORTS // buckets)
    return PRIME if largest >= PRIME else prime_from(largest, -1)


@lru_cache(maxsize=64)
def prime_from(number: int, step: int) -> int:
    """Return the first prime from *number* on in steps of *step*, 1 or -1."""
    return next(n for n in count(number, step) if is_prime(n))


def is_prime(number: int) -> bool:
    """Whether *number*, at least 2, is a prime; PRIME itself is known to be one."""
    return number == PRIME or all(number % d for d in range(2, math.isqrt(number) + 1))


MECHANISM: Final = OLH
