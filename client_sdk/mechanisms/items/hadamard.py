"""Hadamard response with one bit: a random row of the Hadamard matrix, and the item's sign there.

Source: Acharya, Sun, *Communication Complexity in Locally Private Distribution Estimation and Heavy
    Hitters*, ICML 2019: one bit of information a report, randomized response to the item's sign in
    a row; their rows are dealt to the devices, here each draws its own and sends it along.
Proof: the row is drawn without looking at the item; given the row, the sign is kept with
    probability p and flipped otherwise, so the ratio of any report is at most p/(1-p).  p is
    e^ε/(e^ε+1) rounded down to the grid, hence p/(1-p) <= e^ε.

Item x is column x of the Sylvester matrix of order K, the least power of two that is at least k
(see ``_sylvester``).  Two columns agree in exactly half of the rows, so q = 1/2.  The report is
2·row + (1 if the sign is +1).

The Sylvester matrix, a Hadamard matrix of order 2^t: its signs, and products with it.

H[i, j] is -1 where i AND j has an odd number of ones, else +1.

Draws: uniform(K); true(truth) keeps the sign.  K is the least power of two from d on.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property

from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, Draws, NoiseLaw, Numpy
from ..exact import exp_floor, truth_chance
from ..families import CountedReports
from ..frequency import FrequencyOracle, PairLaw
from ..supports import Channel

_HALF: Final = Fraction(1, 2)


def is_positive(i: int, j: int) -> bool:
    """Return whether H[i, j] is +1."""
    return (i & j).bit_count() % 2 == 0


def transform(rows: Array, np: Numpy) -> Array:
    """Return *rows* times H by the fast Walsh-Hadamard transform; exact for integers.

    Args: rows: shape (m, 2^t).
    """
    count, order = rows.shape
    width = 1
    while width < order:
        pairs = rows.reshape(count, -1, 2, width)
        low, high = pairs[:, :, 0], pairs[:, :, 1]
        rows = np.stack((low + high, low - high), axis=2).reshape(count, -1)
        width *= 2
    return rows


class SignReports(CountedReports[int], FrequencyOracle):
    """Reports of a row and of the item's sign there, which a coin keeps."""

    beyond = "row_out_of_range"
    constants = ("truth",)

    @cached_property
    def truth(self) -> Fraction:
        """The chance that the sign is kept, rounded down to the grid."""
        return truth_chance(exp_floor(self.epsilon), 1, self.precision)

    @cached_property
    def channel(self) -> Channel:
        """The chance that a report has the item's sign; any other item's is a coin, q = 1/2."""
        return Channel(self.truth, _HALF)

    @property
    def likelihood_ratio(self) -> Fraction:
        """p / (1-p)."""
        return self.channel.p / (1 - self.channel.p)


class Hadamard(SignReports):
    """One-bit Hadamard response.  A tally counts rows and signs."""

    name = "hadamard"

    @cached_property
    def rows(self) -> int:
        """K, the order of the matrix."""
        return 1 << (self.domain_size - 1).bit_length()

    @property
    def payload_count(self) -> int:
        """A row and a sign."""
        return 2 * self.rows

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        """Return a fresh row and a sign for *value*."""
        self.require_value(value)
        row = randomness.uniform(self.rows)
        truthful = randomness.bernoulli(self.channel.p)
        positive = is_positive(row, value) == truthful
        return (2 * row + positive).to_bytes(self.payload_size, "big")

    def supports(self, payload: bytes) -> Iterable[int]:
        """A report supports the items that have its sign in its row."""
        row, positive = divmod(int.from_bytes(payload, "big"), 2)
        return [x for x in range(self.domain_size) if is_positive(row, x) == positive]

    def pair_law(self) -> PairLaw:
        """Any two columns agree in half of the rows, as independent bits would."""
        p, q = self.chances
        return PairLaw(p * q, q * q)

    def noise_law(self, tally: Array, np: Numpy) -> NoiseLaw:
        """Every device draws its row evenly."""
        counts = tally.reshape(*tally.shape[:-1], -1, 2).sum(axis=-1)
        return NoiseLaw(draws=Draws(counts, 1 / self.rows))

    def support_counts(self, tally: Array, n: int, np: Numpy) -> Array:
        """Return (n + H·signs) / 2 by a fast Walsh-Hadamard transform."""
        self.require_sum(tally, n)
        sums = transform((tally[1::2] - tally[::2])[None, :], np)[0]
        return (n + sums[: self.domain_size]) // 2


MECHANISM: Final = Hadamard
