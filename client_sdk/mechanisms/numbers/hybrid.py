"""Hybrid mechanism: toss a public coin, then report by the piecewise mechanism or by Duchi's bit.

Source: Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu, *Collecting and Analyzing Multidimensional Data
    with Local Differential Privacy*, ICDE 2019: piecewise with probability 1 - 1/a, a = e^(ε/2),
    and Duchi's bit otherwise; for small ε (below about 0.61) Duchi's bit alone.
Proof: the coin does not depend on the value and the symbol shows how it fell, so a symbol is at
    most as much likelier under one value than another as within its own mechanism, and both keep
    to e^ε (see ``piecewise`` and ``duchi``).  Hence the coin may be rounded either way.

Coin (derived): piecewise has the variance A + (1/κ - 1) u^2 at distance u from the middle, Duchi's
bit C^2/4 - u^2.  Mixed with probability κ they give κ A + (1-κ) C^2/4: the same for every value.
For the window of the source κ is 1 - 1/a.  Duchi's bit alone, ``steps`` = 1, where that is better.

Draws: true(coin), unless steps = 1: the window by round(x, steps) and ``inside`` as in
    ``piecewise``.  Else the bit by round(x, 1) and ``truth`` as in ``duchi``, after all symbols of
    the window.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

from ...core.randomness import Randomness
from ...core.typing import Final
from ..base import Constant, Numpy
from ..exact import floor_to_grid
from ._symbols import Moments
from ._wave import MOST_OUTPUTS, ChosenWindow, Window, best_mixed_window, inside_of

_COIN_BITS: Final = 64  # of the public coin, which costs no privacy
BIT: Final = 2  # symbols of Duchi's bit, the last two


class Hybrid(ChosenWindow):
    """A window channel over ``steps`` and ``width``, mixed with one bit; or the bit alone."""

    name = "hybrid"

    least_steps = 1
    most_outputs = MOST_OUTPUTS - BIT
    constants = ("truth", "inside", "coin")

    def best(self) -> tuple[int, int]:
        """Return those of the mixture."""
        return best_mixed_window(self.epsilon, self.most_outputs)

    @cached_property
    def inside(self) -> Fraction:
        """The chance of an output within the window of the piecewise part."""
        return inside_of(self.epsilon, self.steps, self.width, self.precision)

    @cached_property
    def window(self) -> Window | None:
        """The piecewise part, or None if there is only Duchi's bit."""
        return None if self.steps == 1 else Window(self.steps, self.width, self.inside)

    @cached_property
    def truth(self) -> Fraction:
        """The chance that Duchi's part tells an end as it is."""
        return inside_of(self.epsilon, 1, 1, self.precision)

    @cached_property
    def bit(self) -> Window:
        """Duchi's part: binary randomized response on the two ends."""
        return Window(1, 1, self.truth)

    @cached_property
    def coin(self) -> Fraction:
        """The chance of the piecewise part: its κ, rounded down."""
        if not self.window:
            return Fraction(0)
        return floor_to_grid(self.window.slope, min(_COIN_BITS, self.precision))

    def constant_values(self) -> dict[str, Constant]:
        """Duchi's bit alone has neither a window nor a coin."""
        return super().constant_values() if self.window else {"truth": self.truth}

    @cached_property
    def outputs(self) -> int:
        """Symbols of the piecewise part, the first ones."""
        return self.window.outputs if self.window else 0

    @property
    def payload_count(self) -> int:
        """Those of both parts."""
        return self.outputs + BIT

    @property
    def likelihood_ratio(self) -> Fraction:
        """The larger one of the two parts."""
        ratio = self.bit.likelihood_ratio
        return max(ratio, self.window.likelihood_ratio) if self.window else ratio

    @cached_property
    def moments(self) -> Moments:
        """Those of the parts, mixed by the coin."""
        if not self.window:
            return self.bit.moments
        window, bit = self.window.moments, self.bit.moments
        constant = self.coin * window.constant + (1 - self.coin) * bit.constant
        return Moments(constant, self.coin * window.square, self.steps)

    def variation(self, np: Numpy) -> float:
        """Those of both parts, mixed by the coin: their symbols are different."""
        coin = float(self.coin)
        inner = self.window.variation if self.window else 0.0
        return coin * inner + (1 - coin) * self.bit.variation

    def position(self, symbol: int) -> Fraction:
        """Return the position of a symbol by the part it comes from."""
        if self.window and symbol < self.outputs:
            return self.window.position(symbol)
        return self.bit.position(symbol - self.outputs)

    def draw(self, value: Fraction, randomness: Randomness) -> int:
        """Toss the coin, then round and send *value* through the part it shows."""
        self.require_value(value)
        if self.window and randomness.bernoulli(self.coin):
            return self.window.draw(self.round_to_steps(value, self.steps, randomness), randomness)
        return self.outputs + self.bit.draw(self.round_to_steps(value, 1, randomness), randomness)


MECHANISM: Final = Hybrid
