"""Hierarchy of ordered items: a noisy sign of the part of the order that the item is in.

Source: Cormode, Kulkarni, Srivastava, *Answering Range Queries Under Local Differential Privacy*,
    PVLDB 2019: a tree over the order, each device at one level, Hadamard response within it, and
    consistency by least squares (after Hay, Rastogi, Miklau, Suciu, PVLDB 2010).  The closed form
    of the least squares by contrasts, for levels of unequal numbers of reports, is derived here.
Proof: level and row are drawn without looking at the item.  Given both, the sign of the item's node
    is kept with probability p and flipped otherwise, so the ratio of any report is at most p/(1-p).
    p is e^ε/(e^ε+1) rounded down to the grid, hence p/(1-p) <= e^ε.

A tree of ``levels`` levels has ``fanout`` children a node, so B^l nodes at level l and one leaf an
item; leaves beyond the items stay empty.  Node a of level l is column a of the Sylvester matrix of
order B^l, and the report is 2·row + (1 if the sign is +1), after all reports of the levels above.

Debiasing.  At level l, the mean of the signs times H over its n_l reports, divided by 2p-1, is an
unbiased share y of each node, with a variance of v/n_l at most, v = 1/(2p-1)^2, and no covariance
between nodes above 0.  Shares of all leaves together are the whole (which is known) and, for each
level, how the children of every node differ from their mean: contrasts of one level are not in
levels above it, and level m >= l tells them by sums over B^(m-l) nodes.  So the least squares
estimate weights these sums by their inverse variances, n_m / (v B^(m-l)), and contrasts of
different levels have independent errors.  A weighted sum of shares with weights w thus has a
variance of the sum over l of

    v / (sum over m >= l of n_m B^(l-m))  times  the squares of w's contrasts at level l,

w's contrasts being the means of w below each node, less that below its parent.  It is a bound: the
squares of the true shares, which lower it, are left out.

Draws: uniform(levels), less one than the level l; uniform(B^l); true(truth) keeps the sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from ...core.dataclass import dataclass
from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import ClassVar, Final
from ..base import Array, Debiased, EpsilonLike, Numpy
from ..exact import THRESHOLD_BITS
from .hadamard import SignReports, is_positive, transform

FANOUTS: Final = (2, 4, 8, 16)  # powers of two: every level fills its matrix
MAX_ITEMS: Final = 1 << 16  # leaves are up to 16 times as many
UNSEEN: Final = 0.5  # reports that a level without any counts as: its part of an estimate is 0


@dataclass(frozen=True, init=False)
class Hierarchy(SignReports):
    """A tree with ``fanout`` children a node.  A report is a level, a row and a sign."""

    name: ClassVar[str] = "hierarchy"
    automatic: ClassVar[bool] = False  # for ordered items only, which a registry does not say
    pure: ClassVar[bool] = False

    fanout: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        fanout: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take B = *fanout*, one of FANOUTS, or that of the smallest error of ranges."""
        self.prepare(epsilon, domain_size, precision)
        if domain_size > MAX_ITEMS:
            raise InvalidParameterError("domain_size", domain_size, f"must be at most {MAX_ITEMS}")
        best = best_fanout(domain_size) if fanout is None else fanout
        if type(best) is not int or best not in FANOUTS:
            rule = f"must be one of {', '.join(map(str, FANOUTS))}"
            raise InvalidParameterError("fanout", best, rule)
        object.__setattr__(self, "fanout", best)
        self.validate()

    @cached_property
    def levels(self) -> int:
        """L, the fewest that have a leaf for every item."""
        return depth(self.domain_size, self.fanout)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first report of each level, and the number of all reports."""
        sizes = (2 * self.fanout**level for level in range(1, self.levels + 1))
        return tuple(accumulate(sizes, initial=0))

    @property
    def payload_count(self) -> int:
        """A row and a sign of every level."""
        return self.starts[-1]

    def node_of(self, item: int, level: int) -> int:
        """Return the node of *item* at *level*, from 1 to L."""
        return int(item // self.fanout ** (self.levels - level))

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return the sign of the node of *value* in a fresh row of a fresh level."""
        self.require_value(value)
        level = 1 + randomness.uniform(self.levels)
        row = randomness.uniform(self.fanout**level)
        truthful = randomness.bernoulli(self.channel.p)
        positive = is_positive(row, self.node_of(value, level)) == truthful
        report = self.starts[level - 1] + 2 * row + positive
        return report.to_bytes(self.payload_size, "big")

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items whose node has its sign in its row."""
        report = int.from_bytes(payload, "big")
        level = next(level for level, end in enumerate(self.starts) if report < end)
        row, positive = divmod(report - self.starts[level - 1], 2)
        return [
            item
            for item in range(self.domain_size)
            if is_positive(row, self.node_of(item, level)) == positive
        ]

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return the counts of the least squares, and their variances: the same for all items."""
        cells = self.require_tally(tally, n, np)
        self.require_sum(cells, n)
        contrasts = [np.zeros(self.fanout**level) for level in range(1, self.levels + 1)]
        for level, start in enumerate(self.starts[:-1], 1):
            counts = cells[start : self.starts[level]]
            signs = transform((counts[1::2] - counts[::2])[None, :], np)[0]
            scale = float(2 * self.channel.p - 1) * max(int(counts.sum()), 1)
            for above in range(level, 0, -1):
                sums = (signs / scale).reshape(self.fanout**above, -1).sum(axis=1)
                weight = self._reports(cells)[level - 1] * self.fanout ** (above - level)
                contrasts[above - 1] += weight * sums
        shares = np.ones(1)
        for contrast, weight in zip(contrasts, self._weights(cells), strict=True):
            children = (contrast / weight).reshape(-1, self.fanout)
            parts = shares[:, None] / self.fanout + children - children.mean(axis=1, keepdims=True)
            shares = parts.reshape(-1)
        first = np.zeros((1, self.domain_size))
        first[0, 0] = 1.0
        (variance,) = self.contrast_variances(first, cells, np)
        return Debiased(n * shares[: self.domain_size], np.full(self.domain_size, n**2 * variance))

    def knows_sums(self, np: Numpy) -> bool:
        """The variances of contrasts are those of any sum."""
        return True

    def sum_variances(
        self, weights: Array, np: Numpy, *, tally: Array, n: int, shares: Array
    ) -> Array:
        """Return ``contrast_variances``, whatever the shares."""
        return self.contrast_variances(weights, tally, np)

    def contrast_variances(self, weights: Array, tally: Array, np: Numpy) -> Array:
        """Return the variance of weighted sums of shares, shape (sums,).

        Args: weights: shape (sums, domain_size).  tally: as checked.
        """
        leaves = np.zeros((len(weights), self.fanout**self.levels))
        leaves[:, : self.domain_size] = weights
        means, variances = leaves, np.zeros(len(weights))
        for weight in reversed(self._weights(tally)):
            children = means.reshape(len(weights), -1, self.fanout)
            means = children.mean(axis=2)
            variances += ((children - means[:, :, None]) ** 2).sum(axis=(1, 2)) / weight
        return variances / float(2 * self.channel.p - 1) ** 2

    def _reports(self, tally: Array) -> list[float]:
        """Return the reports of each level."""
        ends = zip(self.starts, self.starts[1:], strict=False)
        return [max(float(tally[start:end].sum()), UNSEEN) for start, end in ends]

    def _weights(self, tally: Array) -> list[float]:
        """Return for each level the reports that its contrasts rest on, those below in part."""
        return _rest_on(self._reports(tally), self.fanout)

    def predict(self, n: int) -> float:
        """Return the standard error of a share; that of a range is hardly larger."""
        weights = _rest_on([n / self.levels] * self.levels, self.fanout)
        squares = sum(
            self.fanout ** (2.0 * (level - self.levels)) / weight
            for level, weight in enumerate(weights, 1)
        )
        return math.sqrt((1 - 1 / self.fanout) * squares) / float(2 * self.channel.p - 1)


def depth(items: int, fanout: int) -> int:
    """Return the least L with fanout^L >= *items*."""
    levels = 1
    while fanout**levels < items:
        levels += 1
    return levels


def best_fanout(domain_size: int) -> int:
    """Return the B of the smallest mean variance of the share up to an item."""
    return min(FANOUTS, key=lambda fanout: _range_error(domain_size, fanout))


def _range_error(domain_size: int, fanout: int) -> Fraction:
    """Return the mean variance of the share up to an item, of n v reports.

    Derived: over all thresholds below a node, the squares of the contrasts of its children are
    (B-1)/6 on average, of leaves (B^2-1)/(6B).
    """
    levels = depth(domain_size, fanout)
    square: Fraction = Fraction(fanout**2 - 1, 6 * fanout)
    weight: Fraction = Fraction(0)
    error: Fraction = Fraction(0)
    for _ in range(levels):  # from the leaves up
        weight = 1 + weight / fanout
        error += square * levels / weight
        square = Fraction(fanout - 1, 6)
    return error


def _rest_on(reports: list[float], fanout: int) -> list[float]:
    """Return n_l + n_(l+1) / B + n_(l+2) / B^2 + … for each level l."""
    return list(accumulate(reversed(reports), lambda below, own: own + below / fanout))[::-1]


MECHANISM: Final = Hierarchy
