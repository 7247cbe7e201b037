"""Prefix extension method: a device tells the hash of a prefix of its string, of a drawn length.

Source: Wang, Li, Jha, *Locally Differentially Private Heavy Hitter Identification*, IEEE TDSC 2021
    (PEM: groups of devices, one a prefix length, and prefixes extended from group to group).  Here
    each device draws its group, and a group's frequency oracle is a sketch of hashed cells, read by
    projective geometry response, so that a tally has a fixed size.
Proof: level and row are drawn without looking at the string.  Given them the report is projective
    geometry response over the cell of a prefix, of which ``pgr.py`` proves that the ratio of any
    report is at most p (K-c) / ((1-p) c) <= e^ε, whatever the two cells are.

A string is read as symbols: its bytes plus 1, and END after the last.  Prefixes have ``step`` + 1
symbols at the first level and ``step`` more at each further one, up to domain_size + 1 at the last.
So every level longer than a string tells of the string itself, and the last one of any string.
A report is the number (level·rows + row)·K + point; the tally counts reports by number.

Hash: a row r has the fingerprint h = 0, then (h·a + symbol) mod P for every symbol, P = 2^31 - 1.
Level l sends it to the column ⌊(((h + b)·h + c) mod P)·m / 2^31⌋ of m.  a is the first 8 bytes,
big-endian, of SHA-256("hearsay prefix" ‖ r as 4 bytes), modulo P; b and c are the second and third
8 bytes of SHA-256("hearsay prefix" ‖ r as 4 bytes ‖ l + 1 as 4 bytes), modulo P.

Two different sequences of at most s symbols have the same fingerprint for at most s of the P values
of a.  If they have not, their columns are independent over the choice of b and c, and uniform but
for a part m/P, as P is no multiple of m.

Draws: uniform(levels · rows), the group; then a point as in ``pgr`` over the columns, by ``truth``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property, lru_cache

from ...core.dataclass import dataclass
from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, Debiased, EpsilonLike, Numpy
from ..exact import THRESHOLD_BITS, exp_floor, floor_to_grid
from ..families import END, MAX_LENGTH, CountedReports, Holders, TextMechanism
from ..items.pgr import PGR, dimension, points
from ..supports import Channel

_BITS: Final = 31
PRIME: Final = (1 << _BITS) - 1
_PUBLIC: Final = b"hearsay prefix"

_MAX_STEP: Final = 8  # bytes; more than 4 are too many extensions to try
_MAX_ROWS: Final = 256
_MAX_COLUMNS: Final = 1 << 12
MAX_CELLS: Final = 1 << 22  # of a tally; 32 MiB
_LEAST_COLUMNS: Final = 512  # of the default
_CELLS: Final = 1 << 14  # of a level, about, by default
_ORDERS: Final = (2, 3, 5, 7, 11, 13, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)  # K <= _MAX_COLUMNS


def symbols(text: bytes, length: int) -> list[int]:
    """Return the first *length* symbols of *text*, fewer if it ends before."""
    return [*(byte + 1 for byte in text[:length]), *((END,) if len(text) < length else ())]


def fingerprint(row: int, sequence: Iterable[int]) -> int:
    """Return the fingerprint of a *sequence* of symbols."""
    factor, value = _factor(row), 0
    for symbol in sequence:
        value = (value * factor + symbol) % PRIME
    return value


def column_of(level: int, row: int, fingerprint: int, columns: int) -> int:
    """Return the column of a fingerprint."""
    shift, offset = _mixing(level, row)
    return ((fingerprint + shift) * fingerprint + offset) % PRIME * columns >> _BITS


def joined(row: int, fingerprints: Array, tails: Array, length: int) -> Array:
    """Return the fingerprints of prefixes with further symbols.

    Args: fingerprints: of the prefixes.  tails: of the further symbols alone, *length* each.  Their
          shapes fit each other.
    """
    return (fingerprints * pow(_factor(row), length, PRIME) + tails) % PRIME


def columns_of(level: int, row: int, fingerprints: Array, columns: int) -> Array:
    """Return the columns of fingerprints, int64, of any shape."""
    shift, offset = _mixing(level, row)
    return ((fingerprints + shift) * fingerprints + offset) % PRIME * columns >> _BITS


@lru_cache(maxsize=1 << 8)
def _factor(row: int) -> int:
    digest = hashlib.sha256(_PUBLIC + row.to_bytes(4, "big")).digest()
    return int.from_bytes(digest[:8], "big") % PRIME


@lru_cache(maxsize=1 << 12)
def _mixing(level: int, row: int) -> tuple[int, int]:
    place = row.to_bytes(4, "big") + (level + 1).to_bytes(4, "big")
    digest = hashlib.sha256(_PUBLIC + place).digest()
    shift, offset = (int.from_bytes(digest[8 * i : 8 * i + 8], "big") % PRIME for i in (1, 2))
    return shift, offset


@dataclass(frozen=True, init=False)
class PEM(CountedReports[bytes], TextMechanism):
    """Prefix extension over strings of up to ``domain_size`` bytes."""

    name = "pem"
    beyond = "group_out_of_range"
    constants = ("truth",)

    step: int
    rows: int
    columns: int
    order: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        step: int = 2,
        rows: int | None = None,
        columns: int | None = None,
        order: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Lengthen prefixes by *step* bytes a level, each hashed to *rows* rows of *columns* cells.

        By default the *order* of the field is that of the smallest error, and columns are all
        points of its space.
        """
        self.prepare(epsilon, domain_size, precision)
        if domain_size > MAX_LENGTH:
            rule = f"must be at most {MAX_LENGTH}, the bytes of a string"
            raise InvalidParameterError("domain_size", domain_size, rule)
        self.fix("step", step, least=1, most=_MAX_STEP)
        best = self._best_order(columns) if order is None else order
        self.fix("order", best, least=2, most=_ORDERS[-1])
        own = _space(best, _LEAST_COLUMNS) if columns is None else columns
        self.fix("columns", own, least=2, most=_MAX_COLUMNS)
        least = max(4, -(-_CELLS // own)) if rows is None else rows
        self.fix("rows", least, least=1, most=_MAX_ROWS)
        if self.payload_count > MAX_CELLS:
            rule = f"must leave at most {MAX_CELLS} cells in all"
            raise InvalidParameterError("rows", self.rows, rule)
        self.validate()

    def _best_order(self, columns: int | None) -> int:
        """Return the order of the smallest noise among those whose space is small enough."""
        least = _LEAST_COLUMNS if type(columns) is not int or columns < 2 else columns
        able = [r for r in _ORDERS if _space(r, least) <= max(_MAX_COLUMNS, 2 * least)]
        odds = floor_to_grid(exp_floor(self.epsilon), 64)
        return min(able, key=lambda r: _noise(r, dimension(r, least), odds))

    @cached_property
    def oracle(self) -> PGR:
        """The response over the cells of a row."""
        return PGR(self.epsilon, self.columns, order=self.order, precision=self.precision)

    @property
    def truth(self) -> Fraction:
        """That of the response."""
        return self.oracle.truth

    @property
    def channel(self) -> Channel:
        """Return that of the response."""
        return self.oracle.channel

    @property
    def likelihood_ratio(self) -> Fraction:
        """Return that of the response: level and row tell nothing."""
        return self.oracle.likelihood_ratio

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """The symbols of a prefix, by level."""
        last = self.domain_size + 1
        return (*range(self.step + 1, last, self.step), last)

    @property
    def payload_count(self) -> int:
        """A point in each row of each level."""
        return self.levels * self.rows * points(self.order, dimension(self.order, self.columns))

    def cell_of(self, level: int, row: int, text: bytes) -> int:
        """Return the column of the prefix of *text* in a row of a level."""
        prefix = symbols(text, self.lengths[level])
        return column_of(level, row, fingerprint(row, prefix), self.columns)

    def extended(self, row: int, prefixes: Array, tails: Array, length: int) -> Array:
        """Join fingerprints by the hash of the row."""
        return joined(row, prefixes, tails, length)

    def columns_at(self, level: int, row: int, fingerprints: Array) -> Array:
        """Hash fingerprints once more, by level."""
        return columns_of(level, row, fingerprints, self.columns)

    def randomize(self, value: bytes, randomness: Randomness) -> bytes:
        """Return a fresh level and row, and a response to the cell of *value* there."""
        self.require_value(value)
        group = randomness.uniform(self.levels * self.rows)
        level, row = divmod(group, self.rows)
        point = self.oracle.randomize(self.cell_of(level, row, value), randomness)
        report = group * self.oracle.points + int.from_bytes(point, "big")
        return report.to_bytes(self.payload_size, "big")

    def agrees(self, payload: bytes, text: bytes) -> bool:
        """Return whether a valid payload supports the cell of *text* in its row."""
        group, point = divmod(int.from_bytes(payload, "big"), self.oracle.points)
        level, row = divmod(group, self.rows)
        return self.oracle.is_orthogonal(point, self.cell_of(level, row, text))

    def holders(self, tally: Array, n: int, np: Numpy) -> Holders:
        """Return how many devices each cell has, of those that reported on its row."""
        cells = self.require_tally(tally, n, np)
        self.require_sum(cells, n)
        groups = cells.reshape(self.levels * self.rows, -1)
        reports = groups.sum(axis=1)
        p, q = self.chances
        supported = np.stack(
            [
                self.oracle.support_counts(group, int(many), np)
                for group, many in zip(groups, reports, strict=True)
            ]
        )
        counts = (supported - reports[:, None] * q) / (p - q)
        shape = (self.levels, self.rows, self.columns)
        return Holders(counts.reshape(shape), reports.reshape(shape[:2]))

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return the holders of each cell among the reports on its row, and the variances.

        Both have the shape (levels · rows · columns,).
        """
        holders = self.holders(tally, n, np)
        p, q = self.chances
        reports = holders.reports[:, :, None]
        held = np.clip(holders.counts, 0, reports)
        variances = (held * p * (1 - p) + (reports - held) * q * (1 - q)) / (p - q) ** 2
        return Debiased(holders.counts.reshape(-1), variances.reshape(-1))

    @cached_property
    def noise(self) -> float:
        """q(1-q)/(p-q)^2: the variance that a report of another cell adds to a cell."""
        p, q = self.chances
        return q * (1 - q) / (p - q) ** 2

    def predict(self, n: int) -> float:
        """Return the standard error of the share of a rare string that only the last level tells.

        Collisions are left out, which depend on the other strings.
        """
        return self.columns / (self.columns - 1) * math.sqrt(self.levels * self.noise / n)


def _space(order: int, least: int) -> int:
    """Return the points of the smallest space of this order that has at least *least*."""
    return points(order, dimension(order, least))


def _noise(order: int, t: int, odds: Fraction) -> Fraction:
    """Return q(1-q)/(p-q)^2 of the response of this order with t digits."""
    k, c, c2 = (points(order, t - less) for less in range(3))
    p = odds * c / ((odds - 1) * c + k)
    q = p * c2 / c + (1 - p) * Fraction(c - c2, k - c)
    return q * (1 - q) / (p - q) ** 2


MECHANISM: Final = PEM
