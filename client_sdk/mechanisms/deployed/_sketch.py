"""Count mean sketches: rows of hashed cells, read back as a mean that takes collisions off.

Source: Apple Differential Privacy Team, *Learning with Privacy at Scale*, 2017.
Derived: with t the unbiased count of holders in the cell of item x, summed over rows, and m
    columns, the estimate is m/(m-1)·(t - n/m).  Over the choice of the hash functions it is
    unbiased; for the functions below it is off by what the collisions of x differ from 1/m.  That
    is part of the stated variance: with r rows, the devices of another item y that fall into the
    cell of x have variance (1/m)(1-1/m)·(c_y² / r + c_y (1-1/r)), c_y being their count.

Hash: row j sends x to ((a·x² + b·x + c) mod P) mod m with P = 2^31 - 1, which over the choice of a,
b and c is independent for any three items (but for P mod m).  They are the first three numbers of
8 bytes, big-endian, of SHA-256("hearsay sketch" ‖ j as 4 bytes), modulo P.
"""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Iterator
from functools import lru_cache

from ...core.dataclass import dataclass
from ...core.errors import InvalidParameterError
from ...core.typing import ClassVar, Final
from ..base import Array, Debiased, EpsilonLike, Numpy, Reach
from ..exact import THRESHOLD_BITS
from ..frequency import FrequencyOracle

PRIME: Final = (1 << 31) - 1
MAX_CELLS: Final = 1 << 22  # of a tally; 32 MiB
_PUBLIC: Final = b"hearsay sketch"


@dataclass(frozen=True, init=False)
class Sketch(FrequencyOracle):
    """A frequency oracle that hashes items to ``columns`` cells in each of ``rows`` rows."""

    automatic: ClassVar[bool] = False  # for comparison and migration
    pure: ClassVar[bool] = False

    rows: int
    columns: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        rows: int = 128,
        columns: int = 128,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Hash to *columns* cells, a power of two, in each of *rows* rows."""
        self.prepare(epsilon, domain_size, precision)
        self.fix("rows", rows, least=1, most=MAX_CELLS // 2)
        self.fix("columns", columns, least=2, most=MAX_CELLS // 2)
        if columns & (columns - 1) or rows * columns > MAX_CELLS // 2:
            rule = f"must be a power of two, and at most {MAX_CELLS // 2} with the rows"
            raise InvalidParameterError("columns", columns, rule)
        self.validate()

    def cell_of(self, row: int, item: int) -> int:
        """Return the column of *item* in *row*."""
        a, b, c = _coefficients(row)
        return ((a * item + b) * item + c) % PRIME % self.columns

    def columns_of_items(self, np: Numpy) -> Iterator[Array]:
        """Yield, row by row, the columns of all items."""
        items = np.arange(self.domain_size, dtype=np.int64)
        for row in range(self.rows):
            a, b, c = _coefficients(row)
            yield ((a * items + b) % PRIME * items + c) % PRIME % self.columns

    @abstractmethod
    def cells(self, tally: Array, n: int, np: Numpy) -> Array:
        """Return unbiased counts of holders per cell, shape (rows, columns).

        Raises: InvalidTallyError: n reports cannot give it.
        """

    @property
    @abstractmethod
    def noise(self) -> float:
        """The variance that a report of another cell adds to a cell."""

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return estimates and their variances over noise, rows drawn and hash functions.

        The collisions of one item are the same in every tally: they do not average out.
        """
        cells = self.cells(self.require_tally(tally, n, np), n, np)
        scale = self.columns / (self.columns - 1)
        sums = np.zeros(self.domain_size)
        for row, columns in zip(cells, self.columns_of_items(np), strict=True):
            sums += row[columns]
        totals = scale * (sums - n / self.columns)
        noise = scale**2 * n * self.noise
        held = np.clip(totals, 0, n)
        squares = max(float((totals**2 - noise).sum()), n * n / self.domain_size)
        crowd = np.maximum(squares - held**2, 0.0) / self.rows
        singles = (n - held) * (1 - 1 / self.rows)
        return Debiased(totals, noise + scale / self.columns * (crowd + singles))

    @property
    def cell_reach(self) -> Reach:
        """What one report can stand for in a cell of its row."""
        return self.support_reach

    def share_reach(self, item: int, np: Numpy) -> Reach:
        """Return the reach through a cell, less what all items lose to collisions."""
        columns = self.columns
        return self.cell_reach.in_unit(columns / (columns - 1), -1 / (columns - 1))

    def predict(self, n: int) -> float:
        """Return the standard error of a share, if all items are equally common."""
        k, scale = self.domain_size, self.columns / (self.columns - 1)
        crowd = (k - 1) / k**2 / self.rows
        singles = (1 - 1 / k) * (1 - 1 / self.rows) / n
        collisions = scale / self.columns * (crowd + singles)
        return math.sqrt(scale**2 * self.noise / n + collisions)


@lru_cache(maxsize=1 << 12)
def _coefficients(row: int) -> tuple[int, int, int]:
    digest = hashlib.sha256(_PUBLIC + row.to_bytes(4, "big")).digest()
    a, b, c = (int.from_bytes(digest[8 * i : 8 * i + 8], "big") % PRIME for i in range(3))
    return a, b, c
