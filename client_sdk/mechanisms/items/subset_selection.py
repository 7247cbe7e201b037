"""Subset selection: report a set of ω items that holds the true one more often than not.

Source: Ye, Barg, IEEE Transactions on Information Theory 2018; Wang et al., arXiv 1607.08025, 2016.
Proof: the ω-subsets that hold v are equally likely under v, and so are those that do not.  With the
    chance P of a subset that holds v, the ratio of any subset under v and w is at most
    P (k-ω) / ((1-P) ω).  P is ωe^ε/(ωe^ε+k-ω) rounded down to the grid, hence at most e^ε.

A subset is reported by its rank in the combinatorial number system when all ranks fit 64 bits (the
sum of C(s_i, i) over its elements s_1 < … < s_ω, counted from 0), otherwise as one bit an item.
Subsets of many items that are reported as bits are drawn as the bits of one number too, all places
at once.

Derived: places are first raised by coins of one chance that leaves a few missing, then one at a
time; where too many are raised, places are lowered one at a time.  Each step treats all places
alike and looks at nothing but how many are raised, so all subsets with the same number of places
are equally likely after it, also at the end, when that number is the one asked for.

Draws: true(truth) holds the item.  Of m = ω or ω - 1 others, among k - 1 without it: one
    uniform((k-1)!/(k-1-m)!), whose remainders by k-m, k-m+1, …, k-1 are places of Floyd's
    algorithm.  Reports as bits with ω above 32 are drawn by ``draw_subset`` instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property, lru_cache

from ...core.dataclass import dataclass
from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, EpsilonLike, Numpy, column, width_of
from ..bits import BitReports
from ..exact import THRESHOLD_BITS, exp_floor, floor_to_grid
from ..frequency import PairLaw
from ..supports import Channel

DIGITS: Final = 2  # of a coin's chance after its leading zeros; each costs a read of all places
_SINGLES: Final = 12  # places; so few are raised sooner one at a time than by coins

_RANK_BITS: Final = 64  # of a packed report
_MOST_SINGLY: Final = 32  # items; larger subsets are drawn sooner as bits


def draw_subset(size: int, n: int, randomness: Randomness, singles: int = _SINGLES) -> int:
    """Return *n* bits of which *size* are 1, uniform over all such numbers; 0 < size < n."""
    bits, missing = 0, size
    while missing > singles:
        bits |= randomness.bernoulli_bits(_chance(missing, n - size + missing), n)
        missing = size - bits.bit_count()
    while missing:
        place = 1 << randomness.uniform(n)
        if bool(bits & place) == (missing < 0):
            bits ^= place
            missing += 1 if missing < 0 else -1
    return bits


@lru_cache(maxsize=1 << 10)
def _chance(missing: int, open_places: int) -> Fraction:
    """Return missing / open_places, rounded down to DIGITS binary digits."""
    shift = DIGITS + (open_places // missing).bit_length() - 1
    return Fraction((missing << shift) // open_places, 1 << shift)


@dataclass(frozen=True, init=False)
class SubsetSelection(BitReports):
    """Subset selection.  A report is a set of ``subset_size`` items."""

    name = "subset_selection"
    constants = ("truth",)

    subset_size: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        subset_size: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take ω = *subset_size*, or the one of the smallest error."""
        self.prepare(epsilon, domain_size, precision)
        best = best_size(self.epsilon, domain_size) if subset_size is None else subset_size
        self.fix("subset_size", best, least=1, most=domain_size - 1)
        self.validate()

    @classmethod
    def fit(cls, epsilon: EpsilonLike, domain_size: int, payload_bits: int) -> SubsetSelection:
        """Take the best ω whose reports fit: the error falls up to the best ω, then rises."""
        best, size = cls(epsilon, domain_size).subset_size, 1
        limit = 1 << min(payload_bits, _RANK_BITS)
        while size < best and math.comb(domain_size, size + 1) <= limit:
            size += 1
        return cls(epsilon, domain_size, subset_size=size)

    @cached_property
    def truth(self) -> Fraction:
        """The chance that the subset holds the true item."""
        return floor_to_grid(
            _truth_of(self.subset_size, self.domain_size, exp_floor(self.epsilon)), self.precision
        )

    @cached_property
    def channel(self) -> Channel:
        """Return the chances of the true item and of another to be in the subset."""
        p, size = self.truth, self.subset_size
        return Channel(p, (p * (size - 1) + (1 - p) * size) / (self.domain_size - 1))

    @property
    def likelihood_ratio(self) -> Fraction:
        """P (k-ω) / ((1-P) ω)."""
        p, size = self.truth, self.subset_size
        return p * (self.domain_size - size) / ((1 - p) * size)

    @property
    def least_support(self) -> int:
        """Every report supports ω items."""
        return self.subset_size

    @cached_property
    def subsets(self) -> int:
        """How many different payloads there are."""
        return math.comb(self.domain_size, self.subset_size)

    @cached_property
    def is_ranked(self) -> bool:
        """Whether reports are ranks rather than bits."""
        return self.subsets <= 1 << _RANK_BITS

    @cached_property
    def payload_size(self) -> int:
        """1 to 8 bytes as a rank, otherwise one bit an item."""
        return width_of(self.subsets) if self.is_ranked else super().payload_size

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return a subset for *value*; few other items are drawn by Floyd's algorithm.

        Its draws below k-ω, k-ω+1, … are the digits of one number below their product.
        """
        self.require_value(value)
        holds = randomness.bernoulli(self.truth)
        if self.is_long:
            return self._draw_long(value, holds, randomness)
        others = self.domain_size - 1
        digits = randomness.uniform(self._arrangements[holds])
        chosen: set[int] = set()
        for last in range(others - self.subset_size + holds, others):
            digits, drawn = divmod(digits, last + 1)
            chosen.add(last if drawn in chosen else drawn)
        subset = [other + (other >= value) for other in chosen]  # skips the true item
        if holds:
            subset.append(value)
        return self.pack_subset(subset)

    @cached_property
    def is_long(self) -> bool:
        """Whether subsets are drawn as bits, rather than item by item."""
        return not self.is_ranked and self.subset_size > _MOST_SINGLY

    def _draw_long(self, value: int, holds: bool, randomness: Randomness) -> bytes:
        others = self.domain_size - 1
        bits = draw_subset(self.subset_size - holds, others, randomness)
        after = others - value  # items, the low bits
        high, low = bits >> after, bits & ((1 << after) - 1)
        return self.pack((high << 1 | holds) << after | low)

    @cached_property
    def _arrangements(self) -> tuple[int, int]:
        """Ways to draw the other items, if the subset lacks the true one and if it holds it."""
        others = self.domain_size - 1
        return math.perm(others, self.subset_size), math.perm(others, self.subset_size - 1)

    def pack_subset(self, subset: list[int]) -> bytes:
        """Return the payload of *subset*, in any order."""
        if not self.is_ranked:
            return self.pack(sum(map(self.one_hot, subset)))
        rank = 0
        for binomials, item in zip(self._binomials, sorted(subset), strict=True):
            rank += binomials[item]
        return rank.to_bytes(self.payload_size, "big")

    @cached_property
    def _binomials(self) -> tuple[tuple[int, ...], ...]:
        """C(item, i) for i = 1 … ω."""
        return tuple(
            tuple(math.comb(item, i) for item in range(self.domain_size))
            for i in range(1, self.subset_size + 1)
        )

    def reason(self, payload: bytes) -> str | None:
        """Refuse a rank beyond the last subset, or bits that are no ω-subset."""
        number = int.from_bytes(payload, "big")
        if self.is_ranked:
            return None if number < self.subsets else "subset_out_of_range"
        wrong = number.bit_count() != self.subset_size
        return super().reason(payload) or ("subset_of_wrong_size" if wrong else None)

    def faults(self, payloads: bytes, np: Numpy) -> dict[str, Array]:
        """Compare the column with the number of subsets, or count the ones of every report."""
        if self.is_ranked:
            return {"subset_out_of_range": column(payloads, self.payload_size, np) >= self.subsets}
        rows = np.frombuffer(payloads, dtype=np.uint8).reshape(-1, self.payload_size)
        wrong = np.bitwise_count(rows).sum(axis=1) != self.subset_size
        return {**super().faults(payloads, np), "subset_of_wrong_size": wrong}

    def most_supported(self, items: int) -> int:
        """A report supports ω items."""
        return min(items, self.subset_size)

    def pair_law(self) -> PairLaw:
        """Subsets are drawn without replacement, with the true item or without it."""
        p, size, items = float(self.truth), self.subset_size, self.domain_size
        own = p * (size - 1) / (items - 1)
        pairs = max((items - 1) * (items - 2), 1)  # with two items there is no pair of others
        return PairLaw(own, (p * (size - 1) * (size - 2) + (1 - p) * size * (size - 1)) / pairs)

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items of its subset."""
        if not self.is_ranked:
            return super().supports(payload)
        number, items = int.from_bytes(payload, "big"), []
        for size in range(self.subset_size, 0, -1):
            item = size - 1
            while math.comb(item + 1, size) <= number:
                item += 1
            number -= math.comb(item, size)
            items.append(item)
        return items

    @property
    def fold_steps(self) -> int:
        """Every element of the subset as a rank, otherwise every bit."""
        return self.subset_size if self.is_ranked else super().fold_steps

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Unrank the whole column, one element of all subsets at a time."""
        if not self.is_ranked:
            return super().tally(payloads, np)
        ranks = column(payloads, self.payload_size, np).astype(np.uint64)
        cells = np.zeros(self.domain_size, dtype=np.int64)
        for binomials in reversed(self._binomials):
            # a binomial above 64 bits is above every rank: the largest number stands for it
            steps = np.array([min(b, (1 << 64) - 1) for b in binomials], dtype=np.uint64)
            items = np.searchsorted(steps, ranks, side="right") - 1
            ranks -= steps[items]
            cells += np.bincount(items, minlength=self.domain_size)
        return cells


def best_size(epsilon: Fraction, domain_size: int) -> int:
    """Return the ω of the smallest mean variance; it lies beside k/(e^ε+1).

    Derived: the variance is convex in ω around its minimum, which is k/(e^ε+1) for real ω.
    """
    odds = exp_floor(epsilon)
    centre = int(domain_size / (odds + 1))
    near = [size for size in range(centre - 1, centre + 3) if 1 <= size < domain_size]
    return min(near, key=lambda size: _mean_variance(size, domain_size, odds))


def _mean_variance(size: int, k: int, odds: Fraction) -> Fraction:
    p = _truth_of(size, k, odds)
    q = (p * (size - 1) + (1 - p) * size) / (k - 1)
    return q * (1 - q) / (p - q) ** 2 + (1 - p - q) / (k * (p - q))


def _truth_of(size: int, k: int, odds: Fraction) -> Fraction:
    return size * odds / (size * odds + k - size)


MECHANISM: Final = SubsetSelection
