"""Mean mechanisms whose reports are few symbols, each with an unbiased position.

How much a report of a position scatters depends on the position, by a law of few constants.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cached_property

from ...core.dataclass import dataclass
from ...core.randomness import Randomness
from ...core.typing import Final, TypeVar
from ..base import Array, Debiased, Numpy, RatioMechanism, Reach
from ..families import CountedReports, MeanMechanism, Scatter, largest_spread, reach_of

Real = TypeVar("Real", Fraction, float)

MOST_SYMBOLS: Final = 1_024  # looked at one by one; beyond, positions rise with their number


@dataclass(frozen=True)
class Moments:
    """E[(y - 1/2)^2 | x] = constant + square ((x - 1/2)^2 + r) of a report y of position x.

    Positions are parts of the range.  r = f (1-f) / steps^2 comes from rounding x to the inner
    steps, f being the part of a step that is left over.  If square is 0, so is all of r.
    """

    constant: Fraction
    square: Fraction
    steps: int

    @property
    def rounding(self) -> Fraction:
        """The largest r."""
        return Fraction(1, 4 * self.steps**2) if self.square else Fraction(0)

    def variance_of(self, x: Fraction) -> Fraction:
        """Return Var[y | x] for a position *x* in [0, 1]."""
        rest = x * self.steps % 1
        apart = (x - Fraction(1, 2)) ** 2
        rounding = rest * (1 - rest) / self.steps**2
        return self.constant + self.square * (apart + rounding) - apart

    @property
    def worst_variance(self) -> Fraction:
        """The largest Var[y | x] over all positions, for ``square`` of 0, or near 1 and above.

        Between two steps square (u^2 + r), u = x - 1/2, is the chord of square u^2, so Var is
        concave there.  Its peak is highest next to the ends if square >= 1, at the centre if not.
        """
        if not self.square:
            return self.constant
        return self.constant + max(
            outer_excess(self.square, self.steps), self.square * self.rounding
        )


def outer_excess(square: Real, steps: int) -> Real:
    """Return the largest chord - u^2 between the last inner step before an end and that end."""
    inner = 1 - type(square)(2) / steps  # twice the centred position of that step
    peak = min(max(square * (1 + inner) / 2, inner), type(square)(1))  # twice that of the peak
    return (square * ((1 + inner) * peak - inner) - peak * peak) / 4


class SymbolReports(CountedReports[Fraction], MeanMechanism, RatioMechanism[Fraction]):
    """A mechanism over symbols, numbered from 0.  The tally counts the reports of each symbol."""

    @property
    @abstractmethod
    def rounding(self) -> Fraction:
        """The most that rounding adds to the variance of a report, in parts of the range squared.

        Reports do not show how much it is, so ``debias`` counts all of it.
        """

    @abstractmethod
    def position(self, symbol: int) -> Fraction:
        """Return the unbiased position of *symbol*, as a part of the range."""

    @abstractmethod
    def draw(self, value: Fraction, randomness: Randomness) -> int:
        """Return the symbol for *value*.  Raises InvalidValueError before any draw."""

    def validate(self) -> None:
        """Refuse a channel that tells nothing of the range, or spends more than epsilon."""
        if not self.likelihood_ratio > 1:
            raise self.no_channel()
        super().validate()

    def randomize(self, value: Fraction, randomness: Randomness) -> bytes:
        """Return the symbol for *value* as a fixed-width integer."""
        return self.draw(value, randomness).to_bytes(self.payload_size, "big")

    def decode(self, payload: bytes) -> Fraction:
        """Return the unbiased position of the symbol in grid steps."""
        return self.position(int.from_bytes(payload, "big")) * self.top

    def position_reach(self, np: Numpy) -> Reach:
        """Return the extreme positions of all symbols, or of the two ends of very many."""
        count = self.payload_count
        symbols = range(count) if count <= MOST_SYMBOLS else (0, count - 1)
        return reach_of(self.position(symbol) * self.top for symbol in symbols)

    @cached_property
    def _centred(self) -> tuple[float, ...]:
        """The positions of all symbols, counted from the middle of the range, as parts of it."""
        return tuple(float(self.position(s) - Fraction(1, 2)) for s in range(self.payload_count))

    def _sums_of(self, tally: Array, n: int, np: Numpy) -> tuple[float, float]:
        """Return the sum of centred positions as parts of the range, and that of their squares."""
        cells = self.require_tally(tally, n, np)
        self.require_sum(cells, n)
        offsets = np.array(self._centred)
        return float(cells @ offsets), float(cells @ (offsets * offsets))


class MomentReports(SymbolReports):
    """A mechanism over symbols whose second moment is linear in the square of a position."""

    @property
    @abstractmethod
    def moments(self) -> Moments:
        """The exact second moments of a report, positions being parts of the range."""

    @property
    def rounding(self) -> Fraction:
        """The largest r."""
        return self.moments.rounding

    def variance_of(self, position: Fraction) -> float:
        """Return the variance by the exact moments."""
        return float(self.moments.variance_of(Fraction(position) / self.top) * self.top**2)

    @cached_property
    def worst_variance(self) -> float:
        """The largest variance by the exact moments."""
        return float(self.moments.worst_variance * self.top**2)

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return the sum of positions and its variance, for a fixed population.

        The sum of Var[y | x] = constant + square ((x-1/2)^2 + r) - (x-1/2)^2 over the devices needs
        the spread S, the sum of (x-1/2)^2 over the devices.  That is estimated from the squares of
        the reports, and kept within what is possible: at least the mean's own part (Cauchy-Schwarz)
        and at most n/4.  r counts in full, but never above the worst variance of all.

        Reports of one bit have the same square whatever the position, so they say nothing about S:
        then the least possible S is taken.  That is right for devices that all hold the mean, and
        too much for others, by S/n - (mean-1/2)^2 a report: the interval is conservative.
        """
        total, squares = self._sums_of(tally, n, np)
        constant, square = float(self.moments.constant), float(self.moments.square)
        spread = min(max(total / max(n, 1), -0.5), 0.5) ** 2 * n
        if square:
            spread = min(max((squares - n * constant) / square, spread), n / 4)
        variance = n * constant + (square - 1) * spread + n * float(self.moments.rounding)
        variance = min(variance, n * float(self.moments.worst_variance))
        scale = self.top
        return Debiased(np.array([(total + n / 2) * scale]), np.array([variance * scale * scale]))

    def scatter(self, tally: Array, n: int, np: Numpy) -> Scatter:
        """Return the sample variance of reports; of positions, what the squares leave for them.

        Reports of one bit have the same square whatever the position: then all that is possible.
        """
        total, squares = self._sums_of(tally, n, np)
        mean = total / n
        most = largest_spread((mean + 0.5) * self.top, self.top) / self.top**2
        if self.moments.square:
            mean_square = (squares / n - float(self.moments.constant)) / float(self.moments.square)
            most = min(max(mean_square - mean**2, 0.0), most)
        return Scatter((squares / n - mean**2) * self.top**2, most * self.top**2)
