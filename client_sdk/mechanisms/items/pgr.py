"""Projective geometry response: items and reports are points of one projective space.

Source: Feldman, Nelson, Nguyen, Talwar, ICML 2022; here over the prime fields.
Proof: a report orthogonal to the item's point has e^ε times the chance of one that is not.  With
    the chance p of an orthogonal report, c of the K points being orthogonal to any given one, the
    ratio of any report is at most p (K-c) / ((1-p) c).  p is e^ε c/((e^ε-1)c+K) rounded down to the
    grid, hence at most e^ε.

Points are vectors over GF(r), r prime, whose first non-zero digit is 1; item x is the x-th of them
in the order below.  A point is reported by its number: with its leading 1 at digit j (the last
digit is 0), (r^j - 1)/(r - 1) plus the integer that the j digits after it spell in base r.
The tally counts reports by number: a fold costs one addition a report, a decode one transform.

Draws: true(truth).  If so the free digits are 1 + uniform(r^(t-1) - 1), else uniform(r^(t-1)) and
    then the product 1 + uniform(r - 1).  t is the fewest digits with a point for every item.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property

from ...core.dataclass import dataclass
from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, EpsilonLike, NoiseLaw, Numpy
from ..exact import THRESHOLD_BITS, exp_floor, floor_to_grid
from ..families import CountedReports
from ..frequency import FrequencyOracle, UniformLaw, cached_by_weights
from ..supports import Channel

_MAX_ORDER: Final = 257  # of the field; near e^ε + 1 up to ε = 5.5
_MAX_VECTORS: Final = 1 << 24  # r^t, the cells of the transform; 128 MiB
_STEPS: Final = 1 << 30  # of all weights together in the transform


@dataclass(frozen=True, init=False)
class PGR(CountedReports[int], FrequencyOracle):
    """Projective geometry response over GF(``order``).  A report is a point."""

    name = "pgr"
    beyond = "point_out_of_range"
    constants = ("truth",)

    order: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        order: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take r = *order*, a prime, or the one of the smallest error."""
        self.prepare(epsilon, domain_size, precision)
        best = _best_order(self.epsilon, domain_size) if order is None else order
        if type(best) is not int or best not in _PRIMES:
            raise InvalidParameterError("order", best, f"must be a prime up to {_MAX_ORDER}")
        if best ** dimension(best, domain_size) > _MAX_VECTORS:
            raise InvalidParameterError(
                "domain_size", domain_size, f"is too large for order={best}"
            )
        object.__setattr__(self, "order", best)
        self.validate()

    @cached_property
    def dimension(self) -> int:
        """t, the digits of a point."""
        return dimension(self.order, self.domain_size)

    @cached_property
    def points(self) -> int:
        """K = (r^t - 1)/(r - 1), items and reports."""
        return points(self.order, self.dimension)

    @cached_property
    def truth(self) -> Fraction:
        """p, the chance of a report that is orthogonal to its item, rounded down to the grid."""
        p = _orthogonal(self.order, self.dimension, exp_floor(self.epsilon))
        return floor_to_grid(p, self.precision)

    @cached_property
    def channel(self) -> Channel:
        """Return the chances that a report is orthogonal to its own item and to another."""
        r, t, p = self.order, self.dimension, self.truth
        c, c2 = points(r, t - 1), points(r, t - 2)
        return Channel(p, p * c2 / c + (1 - p) * (c - c2) / (self.points - c))

    @property
    def likelihood_ratio(self) -> Fraction:
        """p (K-c) / ((1-p) c)."""
        p, c = self.channel.p, points(self.order, self.dimension - 1)
        return p * (self.points - c) / ((1 - p) * c)

    @property
    def payload_count(self) -> int:
        """One report a point."""
        return self.points

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return a point, orthogonal to that of *value* with probability p.

        All digits but the one at the leading 1 of the item are free; that one makes the product.
        """
        self.require_value(value)
        r, t = self.order, self.dimension
        leading, item = self.vector(value)
        lower = r**leading
        orthogonal = randomness.bernoulli(self.channel.p)
        # r^(t-1) - 1 non-zero orthogonal vectors; r^(t-1) (r-1) others, by their product
        free = (
            1 + randomness.uniform(r ** (t - 1) - 1)
            if orthogonal
            else randomness.uniform(r ** (t - 1))
        )
        product = 0 if orthogonal else 1 + randomness.uniform(r - 1)
        high, low = divmod(free, lower)
        digit = (product - _dot(low, item, r)) % r  # higher digits of the item are zero
        return self.number((high * r + digit) * lower + low).to_bytes(self.payload_size, "big")

    def uniform_law(self) -> UniformLaw:
        """Return c/K, and the share of the points that are orthogonal to both of two items."""
        r, t = self.order, self.dimension
        return UniformLaw(
            Fraction(points(r, t - 1), self.points), Fraction(points(r, t - 2), self.points)
        )

    def uniform_payload(self, randomness: Randomness) -> bytes:
        """Return any point."""
        return randomness.uniform(self.points).to_bytes(self.payload_size, "big")

    def vector(self, point: int) -> tuple[int, int]:
        """Return the place of the leading 1 of *point*, and the digits after it as an integer."""
        leading, first = 0, 0
        power = 1
        while point >= first + power:
            first += power
            power *= self.order
            leading += 1
        return leading, point - first

    def number(self, vector: int) -> int:
        """Return the point of a non-zero *vector*, its digits spelled as an integer in base r."""
        r, leading, power, first = self.order, 0, 1, 0
        while vector >= power * r:
            first += power
            power *= r
            leading += 1
        head, tail = divmod(vector, power)
        if head == 1:
            return first + tail
        inverse, scaled, place = pow(head, -1, r), 0, 1
        while tail:
            tail, digit = divmod(tail, r)
            scaled += place * (digit * inverse % r)
            place *= r
        return first + scaled

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items orthogonal to it."""
        r = self.order
        report = self._as_integer(int.from_bytes(payload, "big"))
        return [i for i in range(self.domain_size) if _dot(self._as_integer(i), report, r) == 0]

    def is_orthogonal(self, point: int, item: int) -> bool:
        """Return whether a report of *point* supports *item*."""
        return _dot(self._as_integer(item), self._as_integer(point), self.order) == 0

    def _as_integer(self, point: int) -> int:
        leading, tail = self.vector(point)
        return int(self.order**leading) + tail

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """No point is likelier than one orthogonal to the item."""
        return NoiseLaw(highest=float(self.channel.p) / points(self.order, self.dimension - 1))

    def knows_sums(self, np: Numpy) -> bool:
        """Reports are counted one by one, and what each supports is known."""
        return True

    @cached_by_weights
    def report_sums(self, weights: Array, np: Numpy) -> Array:
        """Return the weights that a report of each point supports, shape (sums, points).

        Being orthogonal is mutual, so the items that a report supports are counted as reports are.
        """
        every = PGR(self.epsilon, self.points, order=self.order)

        def met(steps: Array) -> Array:
            padded = np.zeros(self.points, dtype=np.int64)
            padded[: steps.size] = steps
            return every.support_counts(padded, int(steps.sum()), np)

        items = met(np.ones(self.domain_size, dtype=np.int64))
        sums = []
        for row in weights:
            least = float(row.min())
            scale = _STEPS / max(float((row - least).sum()), 1.0)
            raised = met(np.rint((row - least) * scale).astype(np.int64)) / scale
            sums.append(raised + least * items)
        return np.array(sums)

    def support_counts(self, tally: Array, n: int, np: Numpy) -> Array:
        """Return the reports orthogonal to each item."""
        self.require_sum(tally, n)
        return self._orthogonal_counts(tally, self.dimension, np)[: self.domain_size]

    def _orthogonal_counts(self, counts: Array, t: int, np: Numpy) -> Array:
        """Return how many of *counts*, one a point of t digits, are orthogonal to each point.

        Derived: a report is (1, y) or (0, y), the latter being a point y of t - 1 digits, counted
        by recursion.  Let R(d, c) be the reports (1, y) with <d, y> = c, for each point d of t - 1
        digits.  Orthogonal to (0, d) are R(d, 0), to (1, s·d) R(d, -1/s), and to (1, 0) no (1, y)
        but all (0, y).  By the Fourier slice theorem the transform of R(d, ·) at λ is that of the
        counts at λ·d.  The sums are integers below 2^32 and are rounded back to integers.
        """
        if t == 1:
            return np.zeros(1, dtype=np.int64)
        r, first = self.order, points(self.order, t - 1)
        multiples = self._multiples(t - 1, np)
        spectrum = np.fft.fftn(counts[first:].reshape((r,) * (t - 1))).reshape(-1)
        sums = np.fft.irfft(spectrum[multiples[: r // 2 + 1]], n=r, axis=0)
        sums = np.rint(sums).astype(np.int64)
        sums += self._orthogonal_counts(counts[:first], t - 1, np)
        orthogonal = np.empty_like(counts)
        orthogonal[:first] = sums[0]
        orthogonal[first] = counts[:first].sum()
        orthogonal[first + multiples[1:]] = sums[[-pow(s, -1, r) % r for s in range(1, r)]]
        return orthogonal

    def _multiples(self, t: int, np: Numpy) -> Array:
        """Return the integers that spell s·d, shape (r, points of t digits)."""
        r = self.order
        factors = np.arange(r)[:, None]
        parts = []
        for leading in range(t):
            vectors = np.arange(r**leading, 2 * r**leading)
            scaled = (vectors // r**place * factors % r * r**place for place in range(leading + 1))
            parts.append(sum(scaled))
        return np.concatenate(parts, axis=1)


def points(order: int, dimension: int) -> int:
    """Return how many points a projective space of this many digits has; 0 for no digits."""
    return (order**dimension - 1) // (order - 1) if dimension > 0 else 0


def dimension(order: int, domain_size: int) -> int:
    """Return the least t >= 2 whose space has a point for every item."""
    t = 2
    while points(order, t) < domain_size:
        t += 1
    return t


def _best_order(epsilon: Fraction, domain_size: int) -> int:
    """Return the prime of the smallest mean variance among those whose transform is affordable."""
    odds = floor_to_grid(exp_floor(epsilon), 64)  # a hundred digits would take ten times as long
    able = [r for r in _PRIMES if r ** dimension(r, domain_size) <= _MAX_VECTORS]
    return min(able, key=lambda r: _mean_variance(r, domain_size, odds), default=2)


def _mean_variance(r: int, k: int, odds: Fraction) -> Fraction:
    t = dimension(r, k)
    p = _orthogonal(r, t, odds)
    c, c2 = points(r, t - 1), points(r, t - 2)
    q = p * c2 / c + (1 - p) * Fraction(c - c2, points(r, t) - c)
    return q * (1 - q) / (p - q) ** 2 + (1 - p - q) / (k * (p - q)) if p > q else Fraction(1 << 64)


def _orthogonal(r: int, t: int, odds: Fraction) -> Fraction:
    c = points(r, t - 1)
    return odds * c / ((odds - 1) * c + points(r, t))


def _dot(a: int, b: int, r: int) -> int:
    """Return the inner product modulo r of two vectors spelled in base r."""
    total = 0
    while a and b:
        a, x = divmod(a, r)
        b, y = divmod(b, r)
        total += x * y
    return total % r


def _primes(most: int) -> tuple[int, ...]:
    return tuple(n for n in range(2, most + 1) if all(n % d for d in range(2, math.isqrt(n) + 1)))


_PRIMES: Final = _primes(_MAX_ORDER)

MECHANISM: Final = PGR
