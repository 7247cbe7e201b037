"""The window of the least error: a search in doubles, on no sampling path.

Any choice is private, as the channel is then built of fractions.  Of doubles only + - * / and sqrt
are used, which are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import sqrt
from typing import Final

from ._exact import exp_ceil
from ._moments import outer_excess
from ._window import LEAST_STEPS

# Reports do not tell how far rounding to inner steps spreads, so intervals state the most it can.
# At this weight that is at most 2.5 % of the variance up to ε = 5; at 0 it would be up to a third.
BLUR: Final = 4


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
    blur = BLUR * rounding
    return alone + blur, slope * constant + rounding + (1 - slope) * bit + blur
