"""Mean mechanisms: from a position on a public grid to an unbiased noisy position."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Final

from ..errors import InvalidTallyError, InvalidValueError
from ..randomness import Randomness
from ._base import Array, Debiased, Mechanism, Numpy

SQUARE_BITS: Final = 32  # squares are tallied as low and high halves of this many bits
_LOW: Final = (1 << SQUARE_BITS) - 1
_HIGH_BITS: Final = 30  # a square below 2^62, without its low half


class MeanMechanism(Mechanism[Fraction]):
    """A mechanism over positions in [0, domain_size - 1], whose reports average to the position.

    The tally has three cells: the sum of reports, and the sum of their squares as a low and a high
    part (square mod 2^32, square div 2^32), so that each cell stays exact in an int64 up to
    MAX_REPORTS reports of magnitude below 2^31.
    """

    @property
    def top(self) -> int:
        """The last grid position, M: the sensitivity of a position."""
        return self.domain_size - 1

    @abstractmethod
    def decode(self, payload: bytes) -> int:
        """Return the noisy position in a valid payload."""

    @abstractmethod
    def decode_column(self, payloads: bytes, np: Numpy) -> Array:
        """Return the noisy positions of valid payloads, int64, shape (n,)."""

    @property
    @abstractmethod
    def report_variance(self) -> float:
        """The largest variance of one report given its position, in grid steps squared."""

    def round_to_grid(self, value: Fraction, randomness: Randomness) -> int:
        """Round *value* up or down at random so that its expectation is kept.

        Raises: InvalidValueError: not a Fraction or int in [0, top]; nothing was drawn.
        """
        if type(value) not in (Fraction, int) or not 0 <= value <= self.top:
            raise InvalidValueError(self.name, f"must be a position from 0 to {self.top}")
        below, rest = divmod(value.numerator, value.denominator)
        if rest and randomness.bernoulli_ratio(rest, value.denominator):
            return below + 1
        return below

    @property
    def tally_size(self) -> int:
        """Sum, low halves of squares, high halves of squares."""
        return 3

    def tally(self, payloads: bytes, np: Numpy) -> Array:
        """Return [sum, sum of squares mod 2^32, sum of squares div 2^32]."""
        positions = self.decode_column(payloads, np)
        squares = positions * positions
        low, high = squares & _LOW, squares >> SQUARE_BITS
        return np.array([positions.sum(), low.sum(), high.sum()], dtype=np.int64)

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return the sum of positions and its variance, for a fixed population.

        The variance is the mechanism's own, plus at most 1/4 a report for rounding to the grid.
        Raises: InvalidTallyError: squares too large for n reports, or too small for the sum
                (Cauchy-Schwarz).
        """
        total, low, high = (int(cell) for cell in self.require_tally(tally, n, np))
        if not 0 <= low <= n * _LOW or not 0 <= high <= n << _HIGH_BITS:
            raise InvalidTallyError(f"tally: squares that n={n} reports cannot have")
        if total * total > n * ((high << SQUARE_BITS) + low):
            raise InvalidTallyError("tally: the sum does not fit the sum of squares")
        variance = n * (self.report_variance + 0.25)
        return Debiased(np.array([float(total)]), np.array([variance]))

    def predict(self, n: int) -> float:
        """Return the standard error of the mean as a part of the range; the worst case."""
        return float(((self.report_variance + 0.25) / n) ** 0.5 / self.top)
