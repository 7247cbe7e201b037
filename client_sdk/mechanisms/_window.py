"""The window channel: a step is reported within a window around it more often than outside.

Input i of 0 … m, output j of 0 … N-1 with N = m + w.  The output lies in the window i … i+w-1 with
probability ``inside`` and outside otherwise, evenly in either case.  With m = w = 1 this is binary
randomized response; with m large and w = m/e^(ε/2) it is the piecewise mechanism on a grid.

Centred, i' = i - m/2 and j' = j - (N-1)/2, and with κ = inside - (1-inside) w/m:
    E[j' | i] = κ i', since the window's centre is i' and the mean of all outputs is 0;
    E[j'^2 | i] = κ (i'^2 + (w^2-1)/12) + (1-inside) N (N^2-1) / (12 m).
So 1/2 + j'/(κ m) is an unbiased position, as a part of the range.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Final, TypeVar

from ..dataclass import dataclass
from ..errors import InvalidParameterError
from ..randomness import Randomness
from ._exact import exp_ceil, exp_floor
from ._response import truth_chance

MOST_OUTPUTS: Final = 256  # reports of one byte; more would gain less than 1e-4 of the error
LEAST_STEPS: Final = 2  # inner steps of a window; one is Duchi's bit
# Reports do not tell how far rounding to inner steps spreads, so intervals state the most it can.
# At this weight that is at most 2.5 % of the variance up to ε = 5; at 0 it would be up to a third.
BLUR: Final = 4


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
        return self.constant + max(_outer(self.square, self.steps), self.square * self.rounding)


Real = TypeVar("Real", Fraction, float)


def _outer(square: Real, steps: int) -> Real:
    """Return the largest chord - u^2 between the last inner step before an end and that end."""
    inner = 1 - type(square)(2) / steps  # twice the centred position of that step
    peak = min(max(square * (1 + inner) / 2, inner), type(square)(1))  # twice that of the peak
    return (square * ((1 + inner) * peak - inner) - peak * peak) / 4


@dataclass(frozen=True)
class Window:
    """The channel from ``steps`` + 1 inputs to ``steps`` + ``width`` outputs."""

    steps: int
    width: int
    inside: Fraction

    @property
    def outputs(self) -> int:
        """N, how many different outputs there are."""
        return self.steps + self.width

    @property
    def likelihood_ratio(self) -> Fraction:
        """An output within the window against one outside."""
        return self.inside * self.steps / ((1 - self.inside) * self.width)

    @cached_property
    def kept(self) -> Fraction:
        """κ, the part of a position that is left in the mean report."""
        return self.inside - (1 - self.inside) * Fraction(self.width, self.steps)

    def draw(self, step: int, randomness: Randomness) -> int:
        """Return the output for *step*."""
        if randomness.bernoulli(self.inside):
            return step + randomness.uniform(self.width)
        other = randomness.uniform(self.steps)
        return other + self.width if other >= step else other  # skips the window

    def position(self, output: int) -> Fraction:
        """Return the unbiased position of *output*, as a part of the range."""
        return Fraction(1, 2) + (2 * output + 1 - self.outputs) / (2 * self.kept * self.steps)

    @cached_property
    def moments(self) -> Moments:
        """The second moments of ``position``; with one step, (x - 1/2)^2 + r is always 1/4."""
        kept, outputs = self.kept, self.outputs
        within = kept * Fraction(self.width**2 - 1, 12)
        outside = (1 - self.inside) * Fraction(outputs * (outputs**2 - 1), 12 * self.steps)
        constant = (within + outside) / (kept * self.steps) ** 2
        if self.steps == 1:
            return Moments(constant + 1 / kept / 4, Fraction(0), 1)
        return Moments(constant, 1 / kept, self.steps)


def window_of(epsilon: Fraction, steps: int, width: int, precision: int) -> Window:
    """Return the window channel of *epsilon*: inside is E w/(E w + m), rounded down to the grid."""
    return Window(steps, width, truth_chance(exp_floor(epsilon) * width, steps, precision))


def require_window(steps: object, width: object, least: int, most: int) -> None:
    """Refuse a window of fewer than *least* steps or more than *most* outputs, or wider than one
    output for one step.  Raises InvalidParameterError.
    """
    if type(steps) is not int or not least <= steps < most:
        raise InvalidParameterError("steps", steps, f"must be from {least} to {most - 1}")
    widest = 1 if steps == 1 else most - steps
    if type(width) is not int or not 1 <= width <= widest:
        rule = f"must be from 1 to {widest} for steps={steps}"
        raise InvalidParameterError("width", width, rule)


def best_window(epsilon: Fraction, most: int) -> tuple[int, int]:
    """Return steps and width of the smallest worst variance, with at most *most* outputs.

    Any choice is private.  It is made in doubles, whose + - * / and sqrt are the same everywhere.
    """
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
    kept = gain * width / weight
    square_sum = kept * (width**2 - 1) / 12 + outputs * (outputs**2 - 1) / (12 * weight)
    constant, rounding = square_sum / (kept * steps) ** 2, 1 / (4 * steps**2)
    bit = ((gain + 2) / gain) ** 2 / 4
    alone = constant + max(_outer(1 / kept, steps), rounding / kept)
    if steps == 1:
        return bit, bit
    blur = BLUR * rounding
    return alone + blur, kept * constant + rounding + (1 - kept) * bit + blur
