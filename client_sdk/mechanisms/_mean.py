"""Mean mechanisms: from a position on a public grid to an unbiased noisy position."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from math import gcd
from typing import Final, NamedTuple

from ..core.errors import InvalidValueError
from ..core.randomness import Randomness
from ._base import Array, Mechanism, Numpy, Reach

_DECODABLE: Final = 2  # bytes of a payload, all of which are decoded in a tenth of a second


class Scatter(NamedTuple):
    """How much *reports* differ, and at most the *positions* they are of: in grid steps squared.

    Reports hold both, the noise and the differences of positions.
    """

    reports: float
    positions: float


def largest_spread(mean: float, top: int) -> float:
    """Return the largest variance that positions from 0 to *top* of this *mean* can have.

    Source: Bhatia, Davis, American Mathematical Monthly 2000.
    """
    inside = min(max(mean, 0.0), float(top))
    return inside * (top - inside)


def reach_of(positions: Iterable[Fraction]) -> Reach:
    """Return the least and the greatest of *positions*."""
    stands = [float(position) for position in positions]
    return Reach(min(stands), max(stands))


class MeanMechanism(Mechanism[Fraction]):
    """A mechanism over positions in [0, domain_size - 1], whose reports average to the position."""

    @property
    def top(self) -> int:
        """The last grid position, M: the sensitivity of a position."""
        return self.domain_size - 1

    @abstractmethod
    def decode(self, payload: bytes) -> Fraction:
        """Return the noisy position in a valid payload."""

    @abstractmethod
    def variance_of(self, position: Fraction) -> float:
        """Return the variance of one report of a device at *position*, in grid steps squared."""

    @property
    @abstractmethod
    def worst_variance(self) -> float:
        """A bound of the variance of one report at any position, in grid steps squared."""

    def scatter(self, tally: Array, n: int, np: Numpy) -> Scatter:
        """Return how much *n* > 0 reports differ, of devices drawn at random.

        This is a bound, from the mean alone; a mechanism whose tally tells the squares of its
        reports returns their sample variance.

        Raises: InvalidTallyError: the tally cannot have come from n reports.
        """
        spread = largest_spread(float(self.debias(tally, n, np).totals[0]) / n, self.top)
        return Scatter(self.worst_variance + spread, spread)

    def require_position(self, value: Fraction) -> None:
        """Raise InvalidValueError unless *value* is a position.  The error does not show it."""
        if type(value) not in (Fraction, int) or not 0 <= value <= self.top:
            rule = f"must be a Fraction or int, a position from 0 to {self.top}"
            raise InvalidValueError(self.name, rule)

    def round_to_steps(self, value: Fraction, steps: int, randomness: Randomness) -> int:
        """Round *value* to one of 0 … *steps*, which span the range, and keep its expectation.

        Raises: InvalidValueError: not a Fraction or int in [0, top]; nothing was drawn.
        """
        self.require_position(value)
        shared = gcd(steps, self.top)
        whole = value.denominator * (self.top // shared)
        below, rest = divmod(value.numerator * (steps // shared), whole)
        if rest and randomness.bernoulli_ratio(rest, whole):
            return below + 1
        return below

    def position_reach(self, np: Numpy) -> Reach | None:
        """Return the positions of the extreme reports, found by decoding all of up to two bytes.

        None of longer ones, unless a mechanism knows which are extreme.
        """
        if self.payload_size > _DECODABLE:
            return None
        numbers = range(1 << 8 * self.payload_size)
        payloads = (number.to_bytes(self.payload_size, "big") for number in numbers)
        return reach_of(self.decode(each) for each in payloads if self.reason(each) is None)

    def predict(self, n: int) -> float:
        """Return the standard error of the mean as a part of the range; the worst case."""
        return float((self.worst_variance / n) ** 0.5 / self.top)
