"""Subset selection over a public random codebook: a whole vector in one short report.

Source: Asi, Feldman, Talwar, *Optimal Algorithms for Mean Estimation under Local Differential
    Privacy*, ICML 2022, arXiv 2205.02466 (the optimum that this comes near, PrivUnit); Isik, Chen,
    Özgür, Weissman, No, arXiv 2306.04924, 2023 (a codebook that both sides share and that is alike
    in all directions, and the closest codewords); Ye, Barg, IEEE Transactions on Information Theory
    2018 (subset selection).  Codewords, decoder and constants are derived here.
Proof: given the seed, which is drawn without a look at the vector, word m is reported with P/k if
    it is one of the k near words and with (1-P)/(M-k) if not.  So the ratio of any report under two
    vectors is at most P (M-k) / ((1-P) k), whatever the near words are, as long as they are k; the
    random sign mixes two such choices, and a mixture of numbers stays between the least and the
    largest of them.  P is k e^ε/(k e^ε + M - k), rounded down to the grid, hence at most e^ε.
    Codewords, lengths and their rounding decide how near an estimate comes, and nothing of privacy.

Codeword m of seed s has in coordinate j the number T[a] + T[b], a and b being bytes 2j and 2j+1 of
SHAKE-256("hearsay codebook" || s M + m), 8 bytes big-endian.  T has the mean of a normal law in
each of 256 equal parts, in 1/700.  The sum of two is normal but for what ``bias`` bounds: signs
alone would give back half of a vector of one coordinate, and one byte a coordinate would move a
small coordinate beside a large one by 1.4 % of the bound at ε = 5.

Derived, for normal codewords of deviation σ, by rotation: with u the direction of v, R the bound,
μ the mean of the k largest of M standard normals and γ = P - (1-P) k/(M-k),

    E[c | v] = σ μ γ v/R,

because the sign keeps the length: (1 + |v|/R)/2 - (1 - |v|/R)/2 = |v|/R.  Across u a codeword is
independent of whether it is near, so a report c R/(σ μ γ) has there the variance C R^2, C =
1/(μ γ)^2: the program of PrivUnitG, its optimum as M grows.  The tally has the sums and the sums of
squares of all coordinates, so the variance of an estimate is that of its reports.  That the
codebook is finite, with N = seeds M words, adds C (1-γ^2)/N + 1/(k μ^2 seeds) to it.

Draws: uniform(seeds); with r = floor(2^31 |v|/R), uniform(2^32) < 2^31 + r keeps v, else -v; words
    by falling product with it, the first of equal ones first; true(truth) takes near word
    uniform(k), else word k + uniform(M-k).
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from functools import cached_property, lru_cache
from math import erfc, exp, lgamma, log, pi, sqrt

from ...core.dataclass import dataclass
from ...core.errors import InvalidTallyError
from ...core.randomness import Randomness
from ...core.typing import Final, NamedTuple
from ..base import Array, Debiased, EpsilonLike, Numpy, Reach, column
from ..exact import THRESHOLD_BITS, exp_floor, floor_to_grid
from ..vectors import Vector, VectorMechanism

WORDS: Final = 256  # of a seed; with more the error falls by less than 2.4 % up to epsilon 5
SEEDS: Final = 1 << 16  # public: who tries all words finds 5.3 deviations along a line, not 9
_SIGN_BITS: Final = 31  # of the sign's chance
CHUNK: Final = 1 << 20  # bytes of codewords that are added up at once

# the upper half of T; the lower is its mirror
_UPPER: Final = (
    *(3, 10, 17, 24, 31, 38, 45, 51, 58, 65, 72, 79, 86, 93, 100, 107, 114, 121, 128, 134, 141),
    *(148, 155, 163, 170, 177, 184, 191, 198, 205, 212, 219, 227, 234, 241, 248, 256, 263, 270),
    *(278, 285, 293, 300, 308, 315, 323, 331, 338, 346, 354, 362, 369, 377, 385, 393, 401, 409),
    *(418, 426, 434, 442, 451, 459, 468, 476, 485, 494, 503, 512, 521, 530, 539, 548, 558, 567),
    *(577, 586, 596, 606, 616, 626, 636, 647, 657, 668, 679, 690, 701, 713, 724, 736, 748, 760),
    *(773, 786, 799, 812, 826, 839, 854, 868, 883, 899, 915, 931, 948, 965, 983, 1002, 1021),
    *(1042, 1063, 1085, 1109, 1133, 1159, 1187, 1217, 1250, 1285, 1324, 1368, 1417, 1475, 1545),
    *(1636, 1769, 2078),
)
TABLE: Final = (*(-x for x in reversed(_UPPER)), *_UPPER)
LARGEST: Final = 2 * max(_UPPER)  # of a codeword's coordinate
VARIANCE: Final = Fraction(2 * sum(x * x for x in TABLE), len(TABLE))  # σ^2

_PUBLIC: Final = b"hearsay codebook"
_SHIFT: Final = max(_UPPER)  # makes entries positive, which moves all products alike
_HIGH: Final = bytes((x + _SHIFT) >> 8 for x in TABLE)
_LOW: Final = bytes((x + _SHIFT) & 255 for x in TABLE)
_LANE: Final = 8  # bytes of a product: 4,096 coordinates, each below 2^20 times 2^13

_BIASES: Final = ((8, 0.001), (4, 0.0025), (1, 0.007))  # of the bound, from so many near words on
_REACH: Final = 10.0  # deviations that are integrated over
_STEPS: Final = 1_000


class _Best(NamedTuple):
    """Of the k largest of M standard normals: their *mean*, and that of their *squares*."""

    mean: float
    squares: float


@dataclass(frozen=True, init=False)
class Codebook(VectorMechanism):
    """A report is seed · ``words`` + word, where the word is one of ``subset_size`` near ones."""

    name = "codebook"
    constants = ("truth",)

    cube: int
    words: int
    subset_size: int
    seeds: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        cube: int = 0,
        words: int = WORDS,
        subset_size: int | None = None,
        seeds: int = SEEDS,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take k = *subset_size* of *words*, or the one of the smallest error."""
        self.prepare(epsilon, domain_size, precision)
        self.fix("cube", cube, least=0, most=1)
        self.fix("words", words, least=2, most=WORDS)
        best = best_size(exp_floor(self.epsilon), words) if subset_size is None else subset_size
        self.fix("subset_size", best, least=1, most=words - 1)
        self.fix("seeds", seeds, least=1, most=SEEDS)
        self.validate()

    def validate(self) -> None:
        """Refuse a channel that tells near words from no others, or only them."""
        if not Fraction(self.subset_size, self.words) < self.truth < 1:
            raise self.no_channel()
        super().validate()

    @cached_property
    def truth(self) -> Fraction:
        """P, the chance of a near word, rounded down to the grid."""
        near = self.subset_size * exp_floor(self.epsilon)
        return floor_to_grid(near / (near + self.words - self.subset_size), self.precision)

    @property
    def likelihood_ratio(self) -> Fraction:
        """P (M-k) / ((1-P) k)."""
        others = self.words - self.subset_size
        return self.truth * others / ((1 - self.truth) * self.subset_size)

    @property
    def payload_count(self) -> int:
        """Every word of every seed."""
        return self.seeds * self.words

    def randomize(self, value: Vector, randomness: Randomness) -> bytes:
        """Draw a seed and a sign, then one of the near words or of the others."""
        self.require_value(value)
        first = randomness.uniform(self.seeds) * self.words
        half = 1 << min(_SIGN_BITS, self.precision)
        if not randomness.bernoulli_ratio(half + self.length_of(value, half), 2 * half):
            value = tuple(-x for x in value)
        ranked = self.ranked(first, value)
        if randomness.bernoulli(self.truth):
            word = ranked[randomness.uniform(self.subset_size)]
        else:
            word = ranked[self.subset_size + randomness.uniform(self.words - self.subset_size)]
        return (first + word).to_bytes(self.payload_size, "big")

    def ranked(self, first: int, value: Vector) -> list[int]:
        """Return the words from *first* on by falling product with *value*, equal ones in order."""
        products = self.products(first, value)
        return sorted(range(self.words), key=lambda word: -products[word])

    def products(self, first: int, value: Vector) -> list[int]:
        """Return the product of every word with *value*, all moved by the same number.

        They are added up side by side, each in a lane of one long integer.
        """
        width = 2 * self.domain_size
        stream = b"".join([codeword(first + word, width) for word in range(self.words)])
        lanes, whole = bytearray(_LANE * self.words), 0
        for place in range(width):
            entries = stream[place::width]
            lanes[_LANE - 2 :: _LANE] = entries.translate(_HIGH)
            lanes[_LANE - 1 :: _LANE] = entries.translate(_LOW)
            whole += value[place >> 1] * int.from_bytes(lanes, "big")
        lanes[:] = bytes(len(lanes))
        lanes[::_LANE] = bytes([128]) * self.words  # the middle of a lane: none is below 0
        packed = (whole + int.from_bytes(lanes, "big")).to_bytes(len(lanes), "big")
        return [
            int.from_bytes(packed[start : start + _LANE], "big")
            for start in range(0, len(packed), _LANE)
        ]

    @property
    def tally_size(self) -> int:
        """The sum of every coordinate of the words, then the sum of its squares."""
        return 2 * self.domain_size

    @property
    def fold_steps(self) -> int:
        """Every coordinate of a word."""
        return self.domain_size

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Add up the words of the whole column and their squares, in chunks of bounded memory."""
        cells, width = np.zeros((2, self.domain_size), dtype=np.int64), 2 * self.domain_size
        table = np.array(TABLE, dtype=np.int32)
        pairs = (table[:, None] + table).ravel()
        numbers = column(payloads, self.payload_size, np).tolist()
        step = max(CHUNK // width, 1)
        for start in range(0, len(numbers), step):
            stream = b"".join([codeword(n, width) for n in numbers[start : start + step]])
            words = pairs[np.frombuffer(stream, dtype=">u2").reshape(-1, self.domain_size)]
            cells[0] += words.sum(axis=0, dtype=np.int64)
            cells[1] += np.einsum("ij,ij->j", words, words, dtype=np.int64)
        return cells.ravel()

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return the sum of the positions of each coordinate, with the variance of the reports.

        Derived: the sample variance of n reports times n, and what a finite codebook adds.
        Raises: InvalidTallyError: sums that do not fit n words, or their own squares.
        """
        cells = self.require_tally(tally, n, np)
        sums, squares = cells[: self.domain_size], cells[self.domain_size :]
        if (np.abs(sums) > n * LARGEST).any() or not (
            (squares >= 0) & (squares <= n * LARGEST**2)
        ).all():
            raise InvalidTallyError(f"tally: must be sums and squares of n={n} words")
        apart = squares - sums.astype(float) ** 2 / max(n, 1)
        if (apart < -_ROUNDING * squares).any():
            raise InvalidTallyError("tally: the sums do not fit the sums of squares")
        scatter = np.maximum(apart, 0) / (n - 1) if n > 1 else float(VARIANCE)
        variances = n * scatter * self.scale**2 + n * n * self.codebook_variance
        return Debiased(n / 2 + sums * self.scale, variances * np.ones(self.domain_size))

    @cached_property
    def scale(self) -> float:
        """What 1 of a codeword's coordinate adds to the sum of positions: R/(2 σ μ γ)."""
        radius = sqrt(self.domain_size) if self.cube else 1.0
        return radius * sqrt(self.noise / float(VARIANCE)) / 2

    @cached_property
    def gain(self) -> float:
        """γ: how much likelier a near word is than it would be by chance, as a part."""
        others = self.words - self.subset_size
        return float(self.truth - (1 - self.truth) * self.subset_size / others)

    @property
    def best(self) -> _Best:
        """The k largest of M normals."""
        return best_of(self.words, self.subset_size)

    @cached_property
    def noise(self) -> float:
        """C = 1/(μ γ)^2: the variance of a report across the vector, in squares of the bound."""
        return 1 / (self.best.mean * self.gain) ** 2

    @cached_property
    def codebook_variance(self) -> float:
        """What the choice of a finite codebook adds to the variance of a mean position.

        Derived: a seed's expected report across the vector is γ times the mean of its near words
        plus 1 - γ times that of all, of variance σ^2 (γ^2/k + (1-γ^2)/M).
        """
        radius = self.domain_size if self.cube else 1
        seed = self.gain**2 / self.subset_size + (1 - self.gain**2) / self.words
        return radius * self.noise * seed / self.seeds / 4

    @property
    def bias(self) -> float:
        """What codewords that are not quite normal leave, and the rounding of values, as a part.

        By the exact law of codewords the worst direction is one coordinate, or a small one beside a
        large one; the vector of few coordinates is not shown to be worse (the tests compute it).
        """
        radius = sqrt(self.domain_size) if self.cube else 1.0
        return radius * next(part for least, part in _BIASES if self.subset_size >= least) / 2

    def share_reach(self, item: int, np: Numpy) -> Reach:
        """Return the positions of the least and the largest coordinate that a word can have."""
        return Reach(0.5 - LARGEST * self.scale, 0.5 + LARGEST * self.scale)

    def variation(self, np: Numpy) -> float:
        """Return that of two vectors whose near words are as different as they can be."""
        size, others = self.subset_size, self.words - self.subset_size
        return min(size, others) * float(self.truth / size - (1 - self.truth) / others)

    def predict(self, n: int) -> float:
        """Return the root mean square over coordinates of the standard error, as a part.

        Derived: C R^2 across the vector and 1 + ``stretch`` times as much along it, if the vectors
        are short; of longer ones the square of their mean comes off.
        """
        radius = self.domain_size if self.cube else 1
        return sqrt(radius * self.noise * (1 + self.stretch / self.domain_size) / n) / 2

    @property
    def stretch(self) -> float:
        """Return that of vectors along one line, whose mean is 0.

        Derived: along it a report has the mean square P m + (1-P) (M - k m)/(M - k), m being that
        of the k largest of M standard normals.
        """
        near, truth = self.best.squares, float(self.truth)
        others = (self.words - self.subset_size * near) / (self.words - self.subset_size)
        return max(truth * near + (1 - truth) * others - 1, 0.0)

    def agrees(self, payload: bytes, value: Vector) -> bool:
        """Return whether the word is as near to *value* as near words are on average."""
        stream = codeword(int.from_bytes(payload, "big"), 2 * self.domain_size)
        entries = [TABLE[entry] for entry in stream]
        product = sum(
            x * (a + b) for x, a, b in zip(value, entries[::2], entries[1::2], strict=True)
        )
        deviation = sqrt(VARIANCE * sum(x * x for x in value))
        return product >= deviation * _quantile(1 - self.subset_size / self.words)


_ROUNDING: Final = 1e-9  # of squares, which floats round


def codeword(number: int, width: int) -> bytes:
    """Return the bytes of word *number*, *width* of them."""
    return hashlib.shake_256(_PUBLIC + number.to_bytes(8, "big")).digest(width)


def best_size(odds: Fraction, words: int) -> int:
    """Return the k of the largest μ γ, μ being taken from T, which is near enough to choose by.

    Derived: γ = k (e^ε - 1)/(k e^ε + M - k), so μ γ grows with the sum of the k largest, S, as
    S/(k e^ε + M - k).  All is integers, so that every platform makes the same choice.
    """
    grid = 1 << 64
    near = odds.numerator * grid // odds.denominator
    best, over, under, total = 1, 0, 1, 0
    for size in range(1, words):
        total += TABLE[len(TABLE) - 1 - (2 * size - 1) * len(TABLE) // (2 * words)]
        whole = size * near + (words - size) * grid
        if total * under > over * whole:
            best, over, under = size, total, whole
    return best


def _quantile(chance: float) -> float:
    """Return what a standard normal is below with *chance*; devices do not ask."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(chance)


@lru_cache(maxsize=64)
def best_of(words: int, size: int) -> _Best:
    """Return the moments of the *size* largest of so many standard normals.

    Derived: given the next largest, Z of tail chance p, they are independent normals above it, of
    mean φ(Z)/p and mean square 1 + Z φ(Z)/p; p is a Beta(size + 1, words - size) number.  The
    integrand is smooth and ends in nothing, so equal steps are exact to all digits of a float.
    """
    whole = mean = squares = 0.0
    scale = lgamma(words + 1) - lgamma(size + 1) - lgamma(words - size)
    for step in range(-_STEPS, _STEPS + 1):
        z = _REACH * step / _STEPS
        above, below = erfc(z / sqrt(2)) / 2, erfc(-z / sqrt(2)) / 2
        density = exp(-z * z / 2) / sqrt(2 * pi)
        weight = density * exp(scale + size * log(above) + (words - size - 1) * log(below))
        whole += weight
        mean += weight * density / above
        squares += weight * (1 + z * density / above)
    return _Best(mean / whole, squares / whole)


MECHANISM: Final = Codebook
