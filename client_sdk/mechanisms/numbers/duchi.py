"""Duchi's one bit: round a position to an end of the range at random, then flip that end.

Source: Duchi, Jordan, Wainwright, *Minimax Optimal Procedures for Locally Private Estimation*, JASA
    2018: the one-dimensional mechanism; here as rounding followed by Warner's coin.
Proof: rounding draws from the value alone; what it yields is one of two ends, reported as they are
    with probability p and swapped otherwise.  So any report is at most p/(1-p) times likelier under
    one value than another, and p is e^ε/(e^ε+1) rounded down to the grid.

Variance (derived): with the range as [-1, 1] a report is ±C, C = 1/(2p-1) = (e^ε+1)/(e^ε-1), and
its mean is the position x, so Var = C^2 - x^2.

Draws: round(x, 1); true(inside) keeps the end, and else uniform(1), which reads nothing, swaps it.
"""

from __future__ import annotations

from fractions import Fraction

from ...core.randomness import Randomness
from ...core.typing import Final
from ._wave import WindowReports


class Duchi(WindowReports):
    """One bit: which end of the range the position was rounded to."""

    name = "duchi"

    def draw(self, value: Fraction, randomness: Randomness) -> int:
        """Round *value* to an end, then keep or swap it."""
        return self.window.draw(self.round_to_steps(value, 1, randomness), randomness)


MECHANISM: Final = Duchi
