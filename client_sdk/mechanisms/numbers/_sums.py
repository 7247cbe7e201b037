"""Mean mechanisms whose reports are noisy grid positions, so that a sum and squares suffice."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cached_property

from ...core.errors import InvalidTallyError
from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Array, Debiased, Numpy, Reach, column
from ..families import MeanMechanism, NumberReports, Scatter, reach_of

MAX_MAGNITUDE: Final = 1 << 31  # grid steps; the bound under which tallies of squares stay exact
SQUARE_BITS: Final = 32  # squares are tallied as low and high halves of this many bits
_LOW: Final = (1 << SQUARE_BITS) - 1
_HIGH_BITS: Final = 30  # a square below 2^62, without its low half


class SumReports(NumberReports[Fraction], MeanMechanism):
    """A mechanism that rounds to steps and adds noise, the same whatever the position.

    A report is clamped to ``margin`` steps beyond either end of the range, which keeps it in a
    fixed width and bounds what a forged one can do, and shifted to a non-negative number.

    The tally has three cells: the sum of reports, and the sum of their squares as a low and a high
    part (square mod 2^32, square div 2^32), so that each cell stays exact in an int64 up to
    MAX_REPORTS reports of magnitude below MAX_MAGNITUDE.
    """

    @property
    @abstractmethod
    def margin(self) -> int:
        """Steps that a report may lie beyond either end of the range."""

    @abstractmethod
    def draw_noise(self, randomness: Randomness) -> int:
        """Return the noise of a report, in steps."""

    @property
    def unit(self) -> Fraction:
        """Grid points a step: what reports and the tally are counted in."""
        return Fraction(1)

    @cached_property
    def last(self) -> int:
        """The last step of the range."""
        return int(self.top / self.unit)

    @property
    @abstractmethod
    def noise_variance(self) -> float:
        """The variance of the noise, in grid steps squared."""

    def variance_of(self, position: Fraction) -> float:
        """Return the variance of the noise, and that of rounding *position* to a step."""
        rest = position / self.unit % 1
        return self.noise_variance + float(rest * (1 - rest) * self.unit**2)

    @property
    def worst_variance(self) -> float:
        """The variance half way between two steps."""
        return self.noise_variance + float(self.unit**2) / 4

    def randomize(self, value: Fraction, randomness: Randomness) -> bytes:
        """Round *value* to a step, add noise, clamp, and shift."""
        position = self.round_to_steps(value, self.last, randomness)
        noisy = position + self.draw_noise(randomness)
        clamped = min(max(noisy, -self.margin), self.last + self.margin)
        return (clamped + self.margin).to_bytes(self.payload_size, "big")

    @cached_property
    def payload_count(self) -> int:
        """How many different payloads there are."""
        return self.last + 2 * self.margin + 1

    def decode(self, payload: bytes) -> Fraction:
        """Undo the shift, in grid points."""
        return (int.from_bytes(payload, "big") - self.margin) * self.unit

    def decode_column(self, payloads: bytes, np: Numpy) -> Array:
        """Return the noisy positions of valid payloads in steps, int64, shape (n,)."""
        return column(payloads, self.payload_size, np).astype(np.int64) - self.margin

    def position_reach(self, np: Numpy) -> Reach:
        """Return the two ends of the reports: positions rise with them."""
        ends = (0, self.payload_count - 1)
        return reach_of(self.decode(end.to_bytes(self.payload_size, "big")) for end in ends)

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

        The variance is the mechanism's own, plus 1/4 of a squared step a report, the most that
        rounding to a step can add.
        Raises: InvalidTallyError: squares too large for n reports, or too small for the sum
                (Cauchy-Schwarz).
        """
        total, _ = self._sums_of(tally, n, np)
        return Debiased(np.array([float(total * self.unit)]), np.array([n * self.worst_variance]))

    def scatter(self, tally: Array, n: int, np: Numpy) -> Scatter:
        """Return the sample variance of reports; of positions, what the noise leaves of it."""
        total, squares = self._sums_of(tally, n, np)
        reports = float((n * squares - total * total) * self.unit**2 / n**2)
        return Scatter(reports, max(reports - self.noise_variance, 0.0))

    def _sums_of(self, tally: Array, n: int, np: Numpy) -> tuple[int, int]:
        """Return the sum of reports and that of their squares, in steps, or raise."""
        total, low, high = (int(cell) for cell in self.require_tally(tally, n, np))
        if not 0 <= low <= n * _LOW or not 0 <= high <= n << _HIGH_BITS:
            raise InvalidTallyError(f"tally: squares that n={n} reports cannot have")
        squares = (high << SQUARE_BITS) + low
        if total * total > n * squares:
            raise InvalidTallyError("tally: the sum does not fit the sum of squares")
        return total, squares
