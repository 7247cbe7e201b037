"""Mean mechanisms by a window channel: steps in a window around the truth are likelier than others.

Input i of 0 … m, output j of 0 … N-1 with N = m + w.  The output lies in the window i … i+w-1 with
probability ``inside`` and outside otherwise, evenly in either case.  With m = w = 1 this is binary
randomized response; with m large and w = m/e^(ε/2) it is the piecewise mechanism on a grid.

Centred, i' = i - m/2 and j' = j - (N-1)/2, and with κ = inside - (1-inside) w/m:
    E[j' | i] = κ i', since the window's centre is i' and the mean of all outputs is 0;
    E[j'^2 | i] = κ (i'^2 + (w^2-1)/12) + (1-inside) N (N^2-1) / (12 m).
So 1/2 + j'/(κ m) is an unbiased position, as a part of the range.

The window of the least error is searched in doubles, on no sampling path.  Any choice is private,
as the channel is then built of fractions.  Of doubles only + - * / and sqrt are used, which are the
same everywhere.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from math import sqrt

from ...core.dataclass import dataclass
from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import ClassVar, Final
from ..base import EpsilonLike, Numpy
from ..exact import THRESHOLD_BITS, exp_ceil, exp_floor, truth_chance
from ._symbols import MomentReports, Moments, outer_excess

MOST_OUTPUTS: Final = 256  # reports of one byte; more would gain less than 1e-4 of the error
LEAST_STEPS: Final = 2  # inner steps of a window; one is Duchi's bit

# Reports do not tell how far rounding to inner steps spreads, so intervals state the most it can.
# At this weight that is at most 2.5 % of the variance up to ε = 5; at 0 it would be up to a third.
_BLUR: Final = 4


@dataclass(frozen=True)
class Window:
    """The channel from ``steps`` + 1 inputs to ``steps`` + ``width`` outputs."""

    steps: int
    width: int
    inside: Fraction

    def __post_init__(self) -> None:
        """Refuse what leaves nothing outside the window, or is no probability."""
        if not 0 <= self.inside < 1:
            raise InvalidParameterError("inside", self.inside, "must be from 0 to below 1")

    @property
    def outputs(self) -> int:
        """N, how many different outputs there are."""
        return self.steps + self.width

    @property
    def likelihood_ratio(self) -> Fraction:
        """An output within the window against one outside."""
        return self.inside * self.steps / ((1 - self.inside) * self.width)

    @cached_property
    def slope(self) -> Fraction:
        """κ, the part of a position that is left in the mean report."""
        return self.inside - (1 - self.inside) * Fraction(self.width, self.steps)

    @property
    def variation(self) -> float:
        """The total variation of the first and the last step, the largest of all.

        Outputs of one window alone differ by p - q, those of both and of neither not at all.
        """
        own, other = self.inside / self.width, (1 - self.inside) / self.steps
        return float(min(self.width, self.steps) * (own - other))

    def draw(self, step: int, randomness: Randomness) -> int:
        """Return the output for *step*."""
        if randomness.bernoulli(self.inside):
            return step + randomness.uniform(self.width)
        other = randomness.uniform(self.steps)
        return other + self.width if other >= step else other  # skips the window

    def position(self, output: int) -> Fraction:
        """Return the unbiased position of *output*, as a part of the range."""
        return Fraction(1, 2) + (2 * output + 1 - self.outputs) / (2 * self.slope * self.steps)

    @cached_property
    def moments(self) -> Moments:
        """The second moments of ``position``; with one step, (x - 1/2)^2 + r is always 1/4."""
        slope, outputs = self.slope, self.outputs
        within = slope * Fraction(self.width**2 - 1, 12)
        outside = (1 - self.inside) * Fraction(outputs * (outputs**2 - 1), 12 * self.steps)
        constant = (within + outside) / (slope * self.steps) ** 2
        if self.steps == 1:
            return Moments(constant + 1 / slope / 4, Fraction(0), 1)
        return Moments(constant, 1 / slope, self.steps)


def inside_of(epsilon: Fraction, steps: int, width: int, precision: int) -> Fraction:
    """Return the chance within the window of *epsilon*: E w/(E w + m), rounded down to the grid."""
    return truth_chance(exp_floor(epsilon) * width, steps, precision)


@dataclass(frozen=True, init=False)
class ChosenWindow(MomentReports):
    """A mechanism with a window of ``width`` outputs over ``steps`` + 1 positions."""

    least_steps: ClassVar[int]
    most_outputs: ClassVar[int]

    steps: int
    width: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        steps: int | None = None,
        width: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take *steps* and *width* as given, both, or the ones of the smallest worst variance."""
        self.prepare(epsilon, domain_size, precision)
        if steps is None and width is None:
            steps, width = self.best()
        self.fix("steps", steps, least=self.least_steps, most=self.most_outputs - 1)
        # one step has one output
        most = 1 if self.steps == 1 else self.most_outputs - self.steps
        self.fix("width", width, least=1, most=most)
        self.validate()

    @abstractmethod
    def best(self) -> tuple[int, int]:
        """Return steps and width of the smallest worst variance."""


class WindowReports(MomentReports):
    """A mechanism that rounds a position to a step and sends it through ``window``."""

    constants = ("inside",)
    steps = width = 1  # one bit: binary randomized response on the two ends

    @cached_property
    def inside(self) -> Fraction:
        """The chance of an output within the window."""
        return inside_of(self.epsilon, self.steps, self.width, self.precision)

    @cached_property
    def window(self) -> Window:
        """The channel from steps to symbols."""
        return Window(self.steps, self.width, self.inside)

    @property
    def payload_count(self) -> int:
        """The outputs of the channel."""
        return self.window.outputs

    @property
    def likelihood_ratio(self) -> Fraction:
        """That of the channel."""
        return self.window.likelihood_ratio

    @property
    def moments(self) -> Moments:
        """Those of the channel."""
        return self.window.moments

    def position(self, symbol: int) -> Fraction:
        """Return the position of an output."""
        return self.window.position(symbol)

    def variation(self, np: Numpy) -> float:
        """That of the channel: positions between steps are mixtures."""
        return self.window.variation


def best_window(epsilon: Fraction, most: int) -> tuple[int, int]:
    """Return steps and width of the smallest worst variance, with at most *most* outputs."""
    gain = _gain(epsilon)
    return min(_candidates(gain, most), key=lambda pair: _rough(gain, *pair)[0])


def best_mixed_window(epsilon: Fraction, most: int) -> tuple[int, int]:
    """Return those of the smallest worst variance when mixed with one bit, or 1 and 1: the bit."""
    gain = _gain(epsilon)
    return min([(1, 1), *_candidates(gain, most)], key=lambda pair: _rough(gain, *pair)[1])


def _gain(epsilon: Fraction) -> float:
    """Return e^ε - 1, above 0, as the nearest double on every machine."""
    exact = exp_ceil(epsilon) - 1
    return exact.numerator / exact.denominator


def _candidates(gain: float, most: int) -> Iterator[tuple[int, int]]:
    """Yield windows near the best width for reals, m/e^(ε/2)."""
    for steps in range(LEAST_STEPS, most):
        nearest = int(steps / sqrt(1 + gain))
        for width in (nearest, nearest + 1):
            if width and steps + width <= most:
                yield steps, width


def _rough(gain: float, steps: int, width: int) -> tuple[float, float]:
    """Return the worst variance alone and mixed, plus BLUR times the largest r."""
    outputs, weight = steps + width, (1 + gain) * width + steps
    slope = gain * width / weight
    square_sum = slope * (width**2 - 1) / 12 + outputs * (outputs**2 - 1) / (12 * weight)
    constant, rounding = square_sum / (slope * steps) ** 2, 1 / (4 * steps**2)
    bit = ((gain + 2) / gain) ** 2 / 4
    alone = constant + max(outer_excess(1 / slope, steps), rounding / slope)
    if steps == 1:
        return bit, bit
    blur = _BLUR * rounding
    return alone + blur, slope * constant + rounding + (1 - slope) * bit + blur
