"""Hadamard count mean sketch: one noisy bit of the Hadamard transform of a sketch's row.

Source: Apple Differential Privacy Team, *Learning with Privacy at Scale*, 2017 (HCMS).
Proof: the row and the coefficient are drawn without looking at the item; given them, the sign of
    H[coefficient, column of the item] is kept with probability p and flipped otherwise, so the
    ratio of any report is at most p/(1-p).  p is e^ε/(e^ε+1) rounded down to the grid.

Hash functions, estimate and variance: ``_sketch.py``.  A report is the number
2·(row·m + coefficient) + (1 if the sign is +1).

Draws: uniform(rows · m); true(truth) keeps the sign.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property

from ...core.errors import InvalidTallyError
from ...core.randomness import Randomness
from ...core.typing import ClassVar, Final
from ..base import Array, Numpy, Reach
from ..exact import exp_floor, truth_chance
from ..families import NumberReports
from ..items.hadamard import is_positive, transform
from ..supports import Channel
from ._sketch import Sketch


class HCMS(NumberReports[int], Sketch):
    """Hadamard count mean sketch.  A tally is the sum of signs by row and coefficient."""

    name: ClassVar[str] = "hcms"
    beyond: ClassVar[str] = "row_out_of_range"
    constants: ClassVar[tuple[str, ...]] = ("truth",)

    @cached_property
    def truth(self) -> Fraction:
        """p, rounded down to the grid."""
        return truth_chance(exp_floor(self.epsilon), 1, self.precision)

    @cached_property
    def channel(self) -> Channel:
        """The chances that a sign is kept, and flipped."""
        return Channel(self.truth, 1 - self.truth)

    @property
    def likelihood_ratio(self) -> Fraction:
        """p / (1-p)."""
        return self.channel.p / self.channel.q

    @property
    def noise(self) -> float:
        """1 / (2p-1)^2 = ((e^ε+1)/(e^ε-1))^2."""
        return 1 / float(self.channel.p - self.channel.q) ** 2

    @property
    def cell_reach(self) -> Reach:
        """A sign stands for a holder of a cell, or for one less."""
        p, q = self.chances
        return Reach(-1 / (p - q), 1 / (p - q))

    @property
    def payload_count(self) -> int:
        """A row, a coefficient and a sign."""
        return 2 * self.tally_size

    @property
    def tally_size(self) -> int:
        """One cell a row and coefficient."""
        return self.rows * self.columns

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return a fresh row and coefficient, and its noisy sign for *value*."""
        self.require_value(value)
        drawn = randomness.uniform(self.rows * self.columns)
        row, coefficient = divmod(drawn, self.columns)
        truthful = randomness.bernoulli(self.channel.p)
        positive = is_positive(coefficient, self.cell_of(row, value)) == truthful
        return (2 * drawn + positive).to_bytes(self.payload_size, "big")

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items that have its sign in its row."""
        drawn, positive = divmod(int.from_bytes(payload, "big"), 2)
        row, coefficient = divmod(drawn, self.columns)
        return [
            item
            for item in range(self.domain_size)
            if is_positive(coefficient, self.cell_of(row, item)) == positive
        ]

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Sum the signs of every row and coefficient."""
        counts = self.report_counts(payloads, np)
        return counts[1::2] - counts[::2]

    def cells(self, tally: Array, n: int, np: Numpy) -> Array:
        """Transform every row, and undo the flips."""
        if (tally < -n).any() or (tally > n).any():
            raise InvalidTallyError(f"tally: must be the signs of n={n} reports")
        signs = int(np.abs(tally).sum())
        if signs > n or (n - signs) % 2:
            raise InvalidTallyError(f"tally: must be the signs of n={n} reports")
        sums = transform(tally.reshape(self.rows, -1), np)
        return sums / float(self.channel.p - self.channel.q)


MECHANISM: Final = HCMS
