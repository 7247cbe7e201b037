"""Cover: a set of items that is likelier to hold the own one, of a table made for a question.

Source: Kairouz, Oh, Viswanath, JMLR 2016 (the best channels for a convex utility take two values in
    each row, in the ratio e^ε); McKenna, Maity, Mazumdar, Miklau, PVLDB 2020 (a channel optimised
    for a workload, and the decoder below).  That the optimum over weighted sets is one convex
    program, and the completion that makes any table a channel, are derived here.
Proof: the weights of the sets that hold an item add up to C, the same for all items, and those of
    all others to Z - C.  A set of weight w is reported with probability p w/C by the holders of its
    items and with (1-p) w/(Z-C) by all others, so the ratio is p (Z-C)/((1-p) C) for every set.  It
    is at most e^ε because p is E C/(E C + Z - C), E = e^ε, rounded down to the grid.  Which sets
    there are matters to the error alone, and not to privacy.

``sets`` is an integer: for each set its weight in two bytes and its items in ceil(d/8) bytes, item
i as the bit 2^i, from the heaviest set down.  Items that the table covers less than others are
completed by sets of their own, so C is the largest weight that any item is covered by.

Debiasing (McKenna et al.): with the channel Q, of a row for each set, and D the diagonal of Q's row
sums, the counts are A t, A = (Q' D^-1 Q)^-1 Q' D^-1.  A Q is the identity, so they are unbiased; of
all such A this one has the least variance where all items are equally common.  The variance of one
report's sum with weights u is the sum over sets of (u A)_o^2 Q_ov, less u_v^2, for a holder of v.

Q' D^-1 Q is J + g^2 N, with J of 1/d alone, g the difference of the two chances of weight 1, and N
the sum over sets of w c c' / (row sum), c being the set less its share of all items.  As N J is 0,
A is J + N^+ c / (g * row sum), and what is small where ε is small is divided by once, at the end.

Draws: true(truth) takes the sets that hold the item, else the others; then halving these, in their
    order, at the middle (low + high) // 2: true(weight below it / weight of all) takes the lower.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property

from ...core.dataclass import dataclass
from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, Debiased, EpsilonLike, NoiseLaw, Numpy, RatioMechanism, Reach
from ..exact import THRESHOLD_BITS, exp_floor, truth_chance
from ..families import CountedReports
from ..frequency import DesignedMechanism

MAX_ITEMS: Final = 256
MAX_SETS: Final = 2048  # of a table; without those that complete it
_WEIGHT: Final = 2  # bytes
_PRIME: Final = (1 << 61) - 1


@dataclass(frozen=True, init=False, repr=False)
class Cover(CountedReports[int], DesignedMechanism, RatioMechanism[int]):
    """Weighted sets that cover every item alike.  A report is a set."""

    name = "cover"
    beyond = "set_out_of_range"
    automatic = False  # its table is made for one question, which a registry has to say
    constants = ("truth",)

    sets: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        sets: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take the table *sets*, or ``windows`` of the order."""
        self.prepare(epsilon, domain_size, precision)
        if domain_size > MAX_ITEMS:
            raise InvalidParameterError("domain_size", domain_size, f"must be at most {MAX_ITEMS}")
        own = self.table_of(windows(domain_size), domain_size) if sets is None else {"sets": sets}
        object.__setattr__(self, "sets", own["sets"])
        self._require_table()
        self.validate()

    def __repr__(self) -> str:
        """Leave ``sets`` out, of which Python may write no digits."""
        return f"Cover(epsilon={self.epsilon!r}, domain_size={self.domain_size})"

    @classmethod
    def table_of(cls, sets: Iterable[tuple[int, int]], domain_size: int) -> dict[str, int]:
        """Return ``sets``, from the heaviest one down."""
        rows = sorted(sets, key=lambda each: (-each[0], each[1]))
        width = _width(domain_size)
        lines = (w.to_bytes(_WEIGHT, "big") + items.to_bytes(width, "big") for w, items in rows)
        return {"sets": int.from_bytes(b"".join(lines), "big")}

    def _require_table(self) -> None:
        """Refuse a table that is none, or that cannot tell all items apart."""
        size, sets = _WEIGHT + _width(self.domain_size), self.sets
        length = (sets.bit_length() + 7) // 8 if type(sets) is int and sets > 0 else 0
        if length % size or not size <= length <= MAX_SETS * size:
            rule = f"must be 1 to {MAX_SETS} times {size} bytes, the first of them not 0"
            raise InvalidParameterError("sets", sets, rule)
        weights = [weight for weight, _ in self.table]
        if min(weights) < 1 or weights != sorted(weights, reverse=True):
            raise InvalidParameterError("sets", sets, "must have weights that fall, to 1 at least")
        whole = (1 << self.domain_size) - 1
        if any(not 0 < items < whole for _, items in self.table):
            rule = f"must each hold some of the {self.domain_size} items, and not all"
            raise InvalidParameterError("sets", sets, rule)
        held = [items for _, items in self.channel_sets]
        if _rank_of_bits(held) < self.domain_size and not _tells_apart(held, self.domain_size):
            raise InvalidParameterError("sets", sets, "must tell all items apart")

    @cached_property
    def table(self) -> tuple[tuple[int, int], ...]:
        """Weight and items, as bits, of each set of ``sets``."""
        size = _WEIGHT + _width(self.domain_size)
        rows = self.sets.to_bytes((self.sets.bit_length() + 7) // 8, "big")
        lines = (rows[i : i + size] for i in range(0, len(rows), size))
        return tuple(
            (int.from_bytes(line[:_WEIGHT], "big"), int.from_bytes(line[_WEIGHT:], "big"))
            for line in lines
        )

    @cached_property
    def cover(self) -> int:
        """C: the weight that every item is covered by."""
        return max(self._covered(item) for item in range(self.domain_size))

    @cached_property
    def channel_sets(self) -> tuple[tuple[int, int], ...]:
        """Weight and items of every report: the table, and the sets that complete it."""
        lacks = ((self.cover - self._covered(item), 1 << item) for item in range(self.domain_size))
        return (*self.table, *(each for each in lacks if each[0]))

    def _covered(self, item: int) -> int:
        return sum(weight for weight, items in self.table if items >> item & 1)

    @cached_property
    def rest(self) -> int:
        """Z - C: the weight of the sets without an item."""
        return sum(weight for weight, _ in self.channel_sets) - self.cover

    @cached_property
    def truth(self) -> Fraction:
        """p, rounded down to the grid: the chance of a set that holds the item."""
        odds = exp_floor(self.epsilon) * self.cover
        return truth_chance(odds, self.rest, self.precision)

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return p (Z-C) / ((1-p) C), exactly."""
        return self.truth * self.rest / ((1 - self.truth) * self.cover)

    def validate(self) -> None:
        """Refuse a channel without 0 < p < 1 or that says nothing, or one that spends more."""
        if not 0 < self.truth < 1 or self.likelihood_ratio <= 1:
            raise self.no_channel()
        super().validate()

    @property
    def payload_count(self) -> int:
        """One report a set."""
        return len(self.channel_sets)

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return the set reported for *value*, by a coin and by halving the sets it leaves."""
        self.require_value(value)
        holds = randomness.bernoulli(self.truth)
        reports, below = [], [0]  # below: the weight of the reports before each, and of all
        for report, (weight, items) in enumerate(self.channel_sets):
            if (items >> value & 1) == holds:
                reports.append(report)
                below.append(below[-1] + weight)
        low, high = 0, len(reports)
        while high - low > 1:
            middle = (low + high) // 2
            whole = below[high] - below[low]
            if randomness.bernoulli_ratio(below[middle] - below[low], whole):
                high = middle
            else:
                low = middle
        return reports[low].to_bytes(self.payload_size, "big")

    def channel_law(self, value: int) -> Sequence[Fraction]:
        """Return the exact probability of every report for *value*."""
        inside, outside = self.truth / self.cover, (1 - self.truth) / self.rest
        return [
            weight * (inside if items >> value & 1 else outside)
            for weight, items in self.channel_sets
        ]

    def channel_matrix(self, np: Numpy) -> Array:
        """Return Q as floats, shape (payload_count, domain_size); columns sum to 1."""
        return self._arrays(np)[0]

    def _arrays(self, np: Numpy) -> tuple[Array, Array]:
        """Return Q, and A of shape (domain_size, payload_count), both kept."""
        if "_kept" not in self.__dict__:
            d = self.domain_size
            inside, outside, gain = self._rates
            rows = [[items >> item & 1 for item in range(d)] for _, items in self.channel_sets]
            held, weights = np.array(rows, float), np.array([[w] for w, _ in self.channel_sets])
            apart = held - held.mean(axis=1, keepdims=True)
            sums = outside * d + gain * held.sum(axis=1, keepdims=True)
            information = (weights / sums * apart).T @ apart
            channel = weights * np.where(held, inside, outside)
            solved = np.linalg.solve(information + np.trace(information) / d**2, (apart / sums).T)
            self.__dict__["_kept"] = channel, 1 / d + solved / gain
        kept: tuple[Array, Array] = self.__dict__["_kept"]
        return kept

    @property
    def _rates(self) -> tuple[float, float, float]:
        """The chances of a set of weight 1, if it holds the item and if not, and g."""
        inside, outside = self.truth / self.cover, (1 - self.truth) / self.rest
        return float(inside), float(outside), float(inside - outside)

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return unbiased counts, and their variances for a fixed population."""
        counts = self.require_tally(tally, n, np)
        self.require_sum(counts, n)
        totals = self._arrays(np)[1] @ counts
        every = np.eye(self.domain_size)
        shares = totals / max(n, 1)
        variances = self.sum_variances(every, np, tally=counts, n=max(n, 1), shares=shares)
        return Debiased(totals, n**2 * variances)

    def knows_sums(self, np: Numpy) -> bool:
        """What each report stands for in a sum is known."""
        return True

    def sum_laws(self, weights: Array, np: Numpy) -> Array:
        """Return the variance of one report's sums by what its device holds."""
        channel, decoder = self._arrays(np)
        laws = (weights @ decoder) ** 2 @ channel - weights**2
        return np.maximum(laws, 0)

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Return the extreme chances of every set; a report adds to one."""
        channel = self.channel_matrix(np)
        return NoiseLaw(lowest=channel.min(axis=1), highest=channel.max(axis=1))

    def share_reach(self, item: int, np: Numpy) -> Reach:
        """Return the extremes of what one report stands for."""
        stands = self._arrays(np)[1][item]
        return Reach(float(stands.min()), float(stands.max()))

    def variation(self, np: Numpy) -> float:
        """Return the largest total variation between the laws of two items."""
        columns = self.channel_matrix(np).T
        return max(float(np.abs(columns - law).sum(axis=1).max()) for law in columns) / 2

    def predict(self, n: int) -> float:
        """Return the root mean square over items of the standard error of a share.

        Derived: where all items are equally common, the variances of all shares add up to the trace
        of (Q' D^-1 Q)^-1 / d, less 1, which is that of g^-2 N^+ / d less (d - 1) / d.
        """
        d = self.domain_size
        _, _, gain = self._rates
        return math.sqrt(max(self._apart_trace / gain**2 + 1 - d, 0) / n) / d

    @cached_property
    def _apart_trace(self) -> float:
        """The trace of N^+."""
        d = self.domain_size
        _, outside, gain = self._rates
        whole = 0.0
        matrix = [[0.0] * d for _ in range(d)]
        singles = [0.0] * d
        for weight, items in self.channel_sets:
            members = [item for item in range(d) if items >> item & 1]
            part, share = weight / (outside * d + gain * len(members)), len(members) / d
            whole += part * share**2
            for item in members:
                singles[item] -= part * share
                row = matrix[item]
                for partner in members:
                    row[partner] += part
        own = sum(matrix[i][i] + 2 * singles[i] + whole for i in range(d)) / d
        whole += own / d  # 1 is an eigenvector of the sum, and its eigenvalue is the mean of all
        regular = [
            [matrix[i][j] + singles[i] + singles[j] + whole for j in range(d)] for i in range(d)
        ]
        return _inverse_trace(regular) - 1 / own


def windows(domain_size: int) -> Iterator[tuple[int, int]]:
    """Yield weight and items of runs of 1, 2, 4 … items, up to half of the order, at every place.

    The order is taken as a circle here, so that every item is covered alike.
    """
    whole, length = (1 << domain_size) - 1, 1
    while length == 1 or 2 * length <= domain_size:
        for first in range(domain_size):
            run = ((1 << length) - 1) << first
            yield 256, (run | run >> domain_size) & whole
        length *= 2


def _width(domain_size: int) -> int:
    """Return the bytes of the items of a set."""
    return (domain_size + 7) // 8


def _rank_of_bits(rows: Iterable[int]) -> int:
    """Return the rank of rows of bits modulo 2, which is at most that over the rationals.

    Nearly always it is enough, and a device finds it in a hundredth of the time of
    ``_tells_apart``.
    """
    pivots: dict[int, int] = {}
    for row in rows:
        rest = row
        while rest and rest.bit_length() in pivots:
            rest ^= pivots[rest.bit_length()]
        if rest:
            pivots[rest.bit_length()] = rest
    return len(pivots)


def _tells_apart(rows: Sequence[int], size: int) -> bool:
    """Return whether rows of *size* bits have full rank modulo a large prime: then over Q, too.

    That is whether all pivots of the products of their columns are there, which are positive
    definite if so: these take the same time however many rows there are.
    """
    columns = [
        sum((row >> item & 1) << place for place, row in enumerate(rows)) for item in range(size)
    ]
    rest = [[(own & other).bit_count() for other in columns] for own in columns]
    for first, pivot in enumerate(rest):
        if not pivot[first]:
            return False
        scale = pow(pivot[first], -1, _PRIME)
        for row in rest[first + 1 :]:
            factor = row[first] * scale % _PRIME
            row[first:] = [
                (a - factor * b) % _PRIME for a, b in zip(row[first:], pivot[first:], strict=True)
            ]
    return True


def _inverse_trace(matrix: list[list[float]]) -> float:
    """Return the trace of the inverse of a positive definite *matrix*, by Cholesky."""
    size, lower = len(matrix), list[list[float]]()
    for i, row in enumerate(matrix):
        own: list[float] = []
        lower.append(own)
        for j in range(i + 1):
            rest = row[j] - sum(a * b for a, b in zip(own, lower[j], strict=False))
            own.append(math.sqrt(rest) if i == j else rest / lower[j][j])
    trace = 0.0
    for first in range(size):  # the columns of the inverse of the lower triangle
        column = [0.0] * size
        for i in range(first, size):
            rest = float(i == first) - sum(lower[i][j] * column[j] for j in range(first, i))
            column[i] = rest / lower[i][i]
        trace += sum(entry * entry for entry in column)
    return trace


MECHANISM: Final = Cover
