"""Mean mechanisms whose reports are few symbols, each with an unbiased position."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Final

from ..core.randomness import Randomness
from ._base import Array, Debiased, Numpy, Reach
from ._exact import require_ratio, spent_by
from ._mean import MeanMechanism, Scatter, largest_spread, reach_of
from ._moments import Moments
from ._numbers import CountedReports

MOST_SYMBOLS: Final = 1_024  # looked at one by one; beyond, positions rise with their number


class SymbolReports(CountedReports[Fraction], MeanMechanism):
    """A mechanism over symbols, numbered from 0.  The tally counts the reports of each symbol."""

    @property
    @abstractmethod
    def likelihood_ratio(self) -> Fraction:
        """The largest Pr[payload | v] / Pr[payload | w] over all payloads and positions."""

    @property
    @abstractmethod
    def moments(self) -> Moments:
        """The exact second moments of a report, positions being parts of the range."""

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
        require_ratio(self.likelihood_ratio, self.epsilon)

    @cached_property
    def spent(self) -> Fraction:
        """The logarithm of the likelihood ratio, rounded up; never above epsilon."""
        return spent_by(self.likelihood_ratio, self.epsilon)

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

    def variance_of(self, position: Fraction) -> float:
        """Return the variance by the exact moments."""
        return float(self.moments.variance_of(Fraction(position) / self.top) * self.top**2)

    @cached_property
    def worst_variance(self) -> float:
        """The largest variance by the exact moments."""
        return float(self.moments.worst_variance * self.top**2)

    @cached_property
    def _centred(self) -> tuple[float, ...]:
        """The positions of all symbols, counted from the middle of the range, as parts of it."""
        return tuple(float(self.position(s) - Fraction(1, 2)) for s in range(self.payload_count))

    def debias(self, tally: Array, n: int, np: Numpy) -> Debiased:
        """Return the sum of positions and its variance, for a fixed population.

        The sum of Var[y | x] = constant + square ((x-1/2)^2 + r) - (x-1/2)^2 over the devices needs
        the spread S, the sum of (x-1/2)^2 over the devices.  That is estimated from the squares of
        the reports, and kept within what is possible: at least the mean's own part (Cauchy-Schwarz)
        and at most n/4.  r counts in full, but never above the worst variance of all.

        Reports of one bit have the same square whatever the position, so they say nothing about S:
        then the least possible S is taken.  That is right for devices that all hold the mean, and
        too much for others, by S/n - (mean-1/2)^2 a report: the interval is conservative.

        Raises: InvalidTallyError: the cells do not add up to n.
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
        Raises: InvalidTallyError: the cells do not add up to n.
        """
        total, squares = self._sums_of(tally, n, np)
        mean = total / n
        most = largest_spread((mean + 0.5) * self.top, self.top) / self.top**2
        if self.moments.square:
            left = (squares / n - float(self.moments.constant)) / float(self.moments.square)
            most = min(max(left - mean**2, 0.0), most)
        return Scatter((squares / n - mean**2) * self.top**2, most * self.top**2)

    def _sums_of(self, tally: Array, n: int, np: Numpy) -> tuple[float, float]:
        """Return the sum of centred positions as parts of the range, and that of their squares."""
        cells = self.require_tally(tally, n, np)
        self.require_sum(cells, n)
        offsets = np.array(self._centred)
        return float(cells @ offsets), float(cells @ (offsets * offsets))
