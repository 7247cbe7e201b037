"""How much a report of a position scatters, which depends on the position."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

from ..core.dataclass import dataclass

Real = TypeVar("Real", Fraction, float)


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
