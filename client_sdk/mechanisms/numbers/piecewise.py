"""Piecewise mechanism on a grid: report a step within a window around the position, or outside it.

Source: Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu, *Collecting and Analyzing Multidimensional Data
    with Local Differential Privacy*, ICDE 2019: the piecewise mechanism, whose window is the part
    1/(a+1) of all outputs, a = e^(ε/2); here with steps for reals, which makes it exact.
Proof: rounding to an inner step is a mixture.  An output inside the window of a step has the
    probability inside/w, one outside (1-inside)/m, m + w being the number of outputs.  The ratio of
    the two is at most e^ε because ``inside`` is E w/(E w + m), E = e^ε, rounded down to the grid.

Variance (derived in ``_window``): with m large and w = m/a it is that of the source,
x^2/(a-1) + (a+3)/(3(a-1)^2) with the range as [-1, 1].  m and w are chosen for the smallest worst
case among reports of one byte.  That is below the source (by 3 % at ε = 1, 23 % at ε = 4), because
a window of few outputs need not be blurred by more.

Draws: round(x, steps), the step i; true(inside), then i + uniform(width); else uniform(steps), from
    i on ``width`` higher.
"""

from __future__ import annotations

from fractions import Fraction

from ...core.randomness import Randomness
from ...core.typing import Final
from ._wave import (
    LEAST_STEPS,
    MOST_OUTPUTS,
    ChosenWindow,
    WindowReports,
    best_window,
)


class Piecewise(ChosenWindow, WindowReports):
    """The window channel over ``steps`` + 1 positions with a window of ``width`` outputs."""

    name = "piecewise"

    least_steps = LEAST_STEPS
    most_outputs = MOST_OUTPUTS

    def best(self) -> tuple[int, int]:
        """Return those of the window alone."""
        return best_window(self.epsilon, MOST_OUTPUTS)

    def draw(self, value: Fraction, randomness: Randomness) -> int:
        """Round *value* to an inner step and send it through the channel."""
        return self.window.draw(self.round_to_steps(value, self.steps, randomness), randomness)


MECHANISM: Final = Piecewise
