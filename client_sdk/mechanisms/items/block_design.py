"""Block design: report a block of ω points that holds the item's point more often than not.

Source: Park, Nam, Lee, *Exactly Optimal and Communication-Efficient Private Estimation via Block
    Designs*, IEEE Journal on Selected Areas in Information Theory 2023: any balanced design has
    the law, and so the error, of ``subset_selection``; the design here is derived.
Proof: the points are 0 … P - 1, P a prime, of which the first are the items.  Block (a, b), with a
    from 1 to P - 1, has the points a z_i + b modulo P for i from 0 to ω - 1, z_i being the inverse
    of i, and z_0 = 0.  For any a and i one b puts a point v at place i, so v is in ω (P-1) of the
    P (P-1) blocks.  All that hold v are equally likely under v, and so are all that do not.  With
    the chance p of a block that holds it, the ratio of any report is at most p (P-ω) / ((1-p) ω).
    p is ωe^ε/(ωe^ε+P-ω) rounded down to the grid, hence at most e^ε.

Two points x, y are in the same number of blocks, whichever they are: for any two places i, j there
is one a with a (z_i - z_j) = x - y, and then one b.  So another item is supported with the chance
of subset selection among P items, and a report is two numbers in place of ω.  Blocks that were
arithmetic progressions would do as well item by item, but whole ranges of items would fall into
the blocks of a few a; multiples of inverses lie irregularly.

Draws: true(truth) holds the item; uniform(P - 1), which is a - 1; uniform(ω), the place i, or
    ω + uniform(P - ω) of a block without the item.  b is v - a z_i, and the report is (a-1) P + b.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property

from ...core.dataclass import dataclass
from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import ClassVar, Final
from ..base import Array, EpsilonLike, Numpy, column
from ..exact import THRESHOLD_BITS, exp_floor, truth_chance
from ..families import NumberReports
from ..frequency import FrequencyOracle, cached_by_weights
from ..supports import Channel
from .olh import is_prime, prime_from
from .subset_selection import best_size

MAX_PRIME: Final = 1 << 25  # room for every domain; products of two numbers below it fit an int64
_CELLS: Final = 1 << 23  # weights, times the points of blocks, times steps; a second or less
_LEAST_STEPS: Final = 16
_CHUNK: Final = 1 << 18  # points at once; their 2 MiB stay in the cache


@dataclass(frozen=True, init=False)
class BlockDesign(NumberReports[int], FrequencyOracle):
    """Block design over ``prime`` points.  A report is a block of ``block_size`` points."""

    name = "block_design"
    beyond = "block_out_of_range"
    spare: ClassVar[bool] = True
    constants = ("truth",)

    block_size: int
    prime: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        block_size: int | None = None,
        prime: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take ω = *block_size*, or that of the least error; *prime* is the next one by itself."""
        self.prepare(epsilon, domain_size, precision)
        field = prime_from(domain_size, 1) if prime is None else prime
        if type(field) is not int or not domain_size <= field < MAX_PRIME or not is_prime(field):
            rule = f"must be a prime from domain_size={domain_size} to {MAX_PRIME}"
            raise InvalidParameterError("prime", field, rule)
        object.__setattr__(self, "prime", field)
        best = best_size(self.epsilon, field) if block_size is None else block_size
        self.fix("block_size", best, least=1, most=field - 1)
        self.validate()

    @cached_property
    def truth(self) -> Fraction:
        """p, the chance that the block holds the item."""
        size = self.block_size
        odds = exp_floor(self.epsilon) * size
        return truth_chance(odds, self.prime - size, self.precision)

    @cached_property
    def channel(self) -> Channel:
        """Return the chances of the true item and of another to be in the block."""
        p, size = self.truth, self.block_size
        return Channel(p, (p * (size - 1) + (1 - p) * size) / (self.prime - 1))

    @property
    def likelihood_ratio(self) -> Fraction:
        """p (P-ω) / ((1-p) ω)."""
        p, size = self.truth, self.block_size
        return p * (self.prime - size) / ((1 - p) * size)

    @cached_property
    def payload_count(self) -> int:
        """One report a block."""
        return self.prime * (self.prime - 1)

    @property
    def least_support(self) -> int:
        """No more points than those without an item can be missing."""
        return max(self.block_size - (self.prime - self.domain_size), 1)

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return a block, which holds *value* with probability p."""
        self.require_value(value)
        size = self.block_size
        holds = randomness.bernoulli(self.truth)
        step = 1 + randomness.uniform(self.prime - 1)
        place = randomness.uniform(size) if holds else size + randomness.uniform(self.prime - size)
        offset = (value - step * self.inverse(place)) % self.prime
        return ((step - 1) * self.prime + offset).to_bytes(self.payload_size, "big")

    def inverse(self, place: int) -> int:
        """z of *place*."""
        return pow(place, -1, self.prime) if place else 0

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items of its block."""
        step, offset = divmod(int.from_bytes(payload, "big"), self.prime)
        places = map(self.inverse, range(self.block_size))
        points = (((step + 1) * place + offset) % self.prime for place in places)
        return [point for point in points if point < self.domain_size]

    def most_supported(self, items: int) -> int:
        """A report supports ω items at the most."""
        return min(items, self.block_size)

    def knows_sums(self, np: Numpy) -> bool:
        """Pairs are alike, and triples are counted or averaged."""
        return True

    @cached_by_weights
    def sum_moments(self, weights: Array, np: Numpy) -> tuple[Array, Array]:
        """Return the moments: exactly but for three points, see ``_others``.

        Derived: the square of a block's sum has the same mean over all blocks as in subsets; from
        that and its mean over the blocks that hold v follows its mean over those that do not.
        """
        size, points = self.block_size, self.prime
        (p, q), held, pair = self.chances, size / points, (size - 1) / (points - 1)
        total, squares = weights.sum(axis=1)[:, None], (weights**2).sum(axis=1)[:, None]
        rest = total - weights
        own = weights**2 + 2 * weights * pair * rest + self._others(weights, pair, np)
        every = held * (squares + pair * (total**2 - squares))
        second = p * own + (1 - p) * (every - held * own) / (1 - held)
        return p * weights + q * rest, second

    def _others(self, weights: Array, pair: float, np: Numpy) -> Array:
        """Return E[(sum over the others of a block)^2 | it holds v], from all a or an even choice.

        The mean over all v is exact: three points meet as often as in subsets, on average.  So it
        is scaled to that, and is that for every v if the weights are too many to look further.
        """
        size, points = self.block_size, self.prime
        padded = np.zeros((len(weights), points))
        padded[:, : self.domain_size] = weights
        squares = (padded**2).sum(axis=1)[:, None] - padded**2
        products = (padded.sum(axis=1)[:, None] - padded) ** 2 - squares
        alike = pair * (squares + (size - 2) / max(points - 2, 1) * products)
        steps = min(_CELLS // (padded.size * size), points - 1)
        if size < 3 or steps < min(_LEAST_STEPS, points - 1):
            return alike[:, : self.domain_size]
        mean_squares, places = np.zeros_like(padded), self._places(np)
        for step in 1 + np.arange(steps) * (points - 1) // steps:
            shifts = [int(step * place % points) for place in places]
            sums = sum(np.roll(padded, -shift, axis=1) for shift in shifts)
            mean_squares += sum((np.roll(sums, shift, axis=1) - padded) ** 2 for shift in shifts)
        level = mean_squares.mean(axis=1)
        mean_squares *= (alike.mean(axis=1) / np.where(level > 0, level, 1))[:, None]
        return mean_squares[:, : self.domain_size]

    @property
    def fold_steps(self) -> int:
        """Every point of the block."""
        return self.block_size

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Work out the points of many reports at once."""
        reports = column(payloads, self.payload_size, np).astype(np.int64)
        steps, offsets = np.divmod(reports, self.prime)
        places = self._places(np)
        cells = np.zeros(self.prime, dtype=np.int64)
        rows = max(_CHUNK // places.size, 1)
        for start in range(0, len(reports), rows):
            chunk = slice(start, start + rows)
            points = np.outer(steps[chunk] + 1, places) + offsets[chunk, None]
            cells += np.bincount((points % self.prime).ravel(), minlength=self.prime)
        return cells[: self.domain_size]

    def _places(self, np: Numpy) -> Array:
        """Return z of every place of a block: by Fermat, i to the power P - 2."""
        base = np.arange(self.block_size, dtype=np.int64)
        power, left = np.ones_like(base), self.prime - 2
        while left:
            if left & 1:
                power = power * base % self.prime
            base, left = base * base % self.prime, left >> 1
        power[0] = 0
        return power


MECHANISM: Final = BlockDesign
