"""Local Laplace noise on integers: an exact discrete Laplace sample added to a grid position.

Source: Canonne, Kamath, Steinke, *The Discrete Gaussian for Differential Privacy*, NeurIPS 2020,
    Algorithms 1 (bernoulli_exp) and 2 (discrete Laplace).
Proof: the noise X has Pr[X = x] proportional to a^|x| with a = e^(-ε/M).  Two positions differ by
    at most M = domain_size - 1, so Pr[y | v] / Pr[y | w] = a^(|y-v| - |y-w|) <= a^(-M) = e^ε.
    Rounding to the grid before the noise is a mixture, clamping after it a function: neither adds
    loss.  ε is rational and the sampler exact, so nothing is rounded and ``spent`` is ε itself.

Reports are clamped to TAIL scales beyond the range, which keeps them in a fixed width and bounds
what a forged report can do; an honest one is clamped with probability below e^-TAIL.

Draws: round(x, top), then with ``scale`` = t/s until a number stands: uniform(t) = u; exp(u, t),
    else anew; v, how often exp(1, 1) holds before it fails; uniform(2) = 1 is negative; the
    magnitude is (u + t v) // s, and minus zero begins anew.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import Final
from ._sums import MAX_MAGNITUDE, SumReports

TAIL: Final = 40  # scales; e^-40 = 4e-18, far below what any number of reports can show


class DiscreteLaplace(SumReports):
    """Position plus discrete Laplace noise of scale M/ε.  A report is a clamped integer."""

    name = "discrete_laplace"
    constants = ("scale",)

    def validate(self) -> None:
        """Refuse a range whose noise would not fit a tally."""
        if self.top + self.margin >= MAX_MAGNITUDE:
            rule = f"is too fine a grid for epsilon={self.epsilon}: take a larger step"
            raise InvalidParameterError("domain_size", self.domain_size, rule)

    @cached_property
    def scale(self) -> Fraction:
        """M/ε in grid steps, as t/s in lowest terms."""
        return Fraction(self.top) / self.epsilon

    @cached_property
    def margin(self) -> int:
        """Grid steps that a report may lie beyond either end of the range."""
        return math.ceil(self.scale * TAIL)

    @property
    def spent(self) -> Fraction:
        """M over the scale of the noise: exactly the epsilon asked for."""
        return self.top / self.scale

    @cached_property
    def noise_variance(self) -> float:
        """2a/(1-a)^2 with a = e^(-1/scale), in grid steps squared."""
        a = math.exp(-1 / self.scale)
        return 2 * a / (1 - a) ** 2

    def draw_noise(self, randomness: Randomness) -> int:
        """Draw a discrete Laplace number."""
        return discrete_laplace(self.scale.numerator, self.scale.denominator, randomness)


def discrete_laplace(t: int, s: int, randomness: Randomness) -> int:
    """Return X with Pr[X = x] = (1-a)/(1+a) a^|x|, a = e^(-s/t); Canonne et al., Algorithm 2."""
    while True:
        u = randomness.uniform(t)
        if not bernoulli_exp(u, t, randomness):
            continue
        v = 0
        while bernoulli_exp(1, 1, randomness):
            v += 1
        magnitude = (u + t * v) // s
        negative = randomness.uniform(2)
        if magnitude or not negative:  # minus zero would count zero twice
            return -magnitude if negative else magnitude


def bernoulli_exp(n: int, d: int, randomness: Randomness) -> bool:
    """Return True with probability e^(-n/d), for 0 <= n <= d; Canonne et al., Algorithm 1."""
    k = 1
    while randomness.bernoulli_ratio(n, d * k):
        k += 1
    return k % 2 == 1


MECHANISM: Final = DiscreteLaplace
