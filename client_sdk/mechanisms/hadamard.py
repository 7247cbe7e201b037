"""Hadamard response with one bit: a random row of the Hadamard matrix, and the item's sign there.

Source: Acharya, Sun, Zhang, AISTATS 2019; one bit a report.
Proof: the row is drawn without looking at the item; given the row, the sign is kept with
    probability p and flipped otherwise, so the ratio of any report is at most p/(1-p).  p is
    e^ε/(e^ε+1) rounded down to the grid, hence p/(1-p) <= e^ε.

Item x is column x of the Sylvester matrix of order K, the least power of two that is at least k:
H[row, x] is -1 where row AND x has an odd number of ones.  Two columns agree in exactly half of the
rows, so q = 1/2.  The report is 2·row + (1 if the sign is +1).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import Final

from ..randomness import Randomness
from ._base import Array, Numpy, column, width_of
from ._exact import exp_floor, floor_to_grid
from ._frequency import Channel, FrequencyOracle

_HALF: Final = Fraction(1, 2)


class Hadamard(FrequencyOracle):
    """One-bit Hadamard response.  A report is a row and a sign; a tally counts them."""

    name = "hadamard"

    @cached_property
    def rows(self) -> int:
        """K, the order of the matrix."""
        return 1 << (self.domain_size - 1).bit_length()

    @cached_property
    def channel(self) -> Channel:
        """Return p rounded down to the grid, and q = 1/2."""
        odds = exp_floor(self.epsilon)
        return Channel(floor_to_grid(odds / (odds + 1), self.precision), _HALF)

    @property
    def likelihood_ratio(self) -> Fraction:
        """p / (1-p)."""
        return self.channel.p / (1 - self.channel.p)

    @cached_property
    def payload_size(self) -> int:
        """1 to 4 bytes."""
        return width_of(2 * self.rows)

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return a fresh row and a sign for *value*."""
        self.require_item(value)
        row = randomness.uniform(self.rows)
        positive = (row & value).bit_count() % 2 == 0
        if not randomness.bernoulli(self.channel.p):
            positive = not positive
        return (2 * row + positive).to_bytes(self.payload_size, "big")

    def reason(self, payload: bytes) -> str | None:
        """Refuse a row beyond the matrix."""
        return None if int.from_bytes(payload, "big") < 2 * self.rows else "row_out_of_range"

    def suspects(self, payloads: bytes, np: Numpy) -> Array:
        """Compare the whole column with the order of the matrix."""
        return column(payloads, self.payload_size, np) >= 2 * self.rows

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items that have its sign in its row."""
        row, positive = divmod(int.from_bytes(payload, "big"), 2)
        return [
            item
            for item in range(self.domain_size)
            if ((row & item).bit_count() % 2 == 0) == bool(positive)
        ]

    @property
    def tally_size(self) -> int:
        """One cell a row and sign."""
        return 2 * self.rows

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Count the rows and signs of the whole column."""
        return np.bincount(column(payloads, self.payload_size, np), minlength=2 * self.rows)

    def support_counts(self, tally: Array, n: int, np: Numpy) -> Array:
        """Return (n + H·signs) / 2 by a fast Walsh-Hadamard transform.

        Raises: InvalidTallyError: an entry below 0, or not n reports.
        """
        self.require_sum(tally, n)
        sums = tally[1::2] - tally[::2]
        width = 1
        while width < self.rows:
            pairs = sums.reshape(-1, 2, width)
            sums = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1)
            width *= 2
        return (n + sums.reshape(-1)[: self.domain_size]) // 2


MECHANISM: Final = Hadamard
