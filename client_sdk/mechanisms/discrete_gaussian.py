"""Local Gaussian noise on integers: an exact discrete Gaussian sample added to a grid position.

Source: Canonne, Kamath, Steinke, *The Discrete Gaussian for Differential Privacy*, NeurIPS 2020,
    Algorithms 1 (bernoulli_exp, also above 1) and 3 (discrete Gaussian by rejection).
Proof: the noise X has Pr[X = x] proportional to e^(-x^2/2σ^2), so the likelihood ratio of a
    position to one s steps above it falls along the line and the best set of reports is a
    half-line: δ(s) = max over c of F(c) - e^ε F(c-s), which grows with s.  No two positions are
    more than ``steps`` apart, so the exact δ(steps), bounded from above by ``tail_loss``, holds for
    all of them; the constructor demands that it is at most ``delta``.  Rounding to the steps before
    the noise is a mixture, and (ε, δ) is jointly convex; clamping after it is a function.

This is (ε, δ)-privacy, weaker than that of all other mechanisms, hence never chosen by ``auto``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final

from ..core.dataclass import dataclass
from ..core.errors import InvalidParameterError
from ..core.randomness import Randomness
from ._base import EpsilonLike
from ._exact import THRESHOLD_BITS
from ._gaussian import MAX_NOISE, NOISE_UNIT, best_noise, best_steps, tail_loss, weights
from ._sums import SumReports
from .discrete_laplace import bernoulli_exp, discrete_laplace

TAIL: Final = 9  # deviations; an honest report is clamped with probability below 3e-19
MAX_STEPS: Final = 256  # of the grid that the noise is drawn on
MAX_DELTA_EXPONENT: Final = 12


@dataclass(frozen=True, init=False)
class DiscreteGaussian(SumReports):
    """Position on ``steps`` steps plus discrete Gaussian noise.  A report is a clamped integer."""

    name = "discrete_gaussian"
    automatic: ClassVar[bool] = False

    delta_exponent: int
    steps: int
    noise: int

    def __init__(
        self,
        epsilon: EpsilonLike,
        domain_size: int,
        *,
        delta_exponent: int = 6,
        steps: int | None = None,
        noise: int | None = None,
        precision: int = THRESHOLD_BITS,
    ) -> None:
        """Take δ = 10^-*delta_exponent*, and the least noise on a grid that rounds little.

        Args:   steps: of the grid that the noise is drawn on.  noise: σ^2 in 1/1024 steps squared.
        Raises: InvalidParameterError: names the parameter; a *noise* that does not keep to δ too.
        """
        self.prepare(epsilon, domain_size, precision)
        if type(delta_exponent) is not int or not 1 <= delta_exponent <= MAX_DELTA_EXPONENT:
            rule = f"must be from 1 to {MAX_DELTA_EXPONENT}"
            raise InvalidParameterError("delta_exponent", delta_exponent, rule)
        object.__setattr__(self, "delta_exponent", delta_exponent)
        wanted = best_steps(self.epsilon, self.delta) if steps is None else steps
        if type(wanted) is not int or not 1 <= wanted <= MAX_STEPS:
            raise InvalidParameterError("steps", steps, f"must be from 1 to {MAX_STEPS}")
        object.__setattr__(self, "steps", wanted)
        least = best_noise(self.epsilon, self.delta, wanted) if noise is None else noise
        object.__setattr__(self, "noise", least)
        self.validate()

    def validate(self) -> None:
        """Refuse noise that does not keep to ``delta``, or is too much to be of use."""
        if type(self.noise) is not int or not 1 <= self.noise <= MAX_NOISE:
            raise InvalidParameterError("noise", self.noise, f"must be from 1 to {MAX_NOISE}")
        if tail_loss(self.epsilon, self.steps, self.noise) > self.delta:
            rule = f"must be more for epsilon={self.epsilon} and delta=1e-{self.delta_exponent}"
            raise InvalidParameterError("noise", self.noise, rule)

    @property
    def delta(self) -> Fraction:
        """10^-delta_exponent."""
        return Fraction(1, 10**self.delta_exponent)

    @property
    def spent(self) -> Fraction:
        """Exactly the epsilon asked for."""
        return self.epsilon

    @cached_property
    def unit(self) -> Fraction:
        """Grid points a step."""
        return Fraction(self.top, self.steps)

    @cached_property
    def margin(self) -> int:
        """Steps that a report may lie beyond either end of the range."""
        return TAIL * (math.isqrt(self.noise // NOISE_UNIT) + 1)

    @cached_property
    def noise_variance(self) -> float:
        """The variance of the discrete Gaussian; σ^2 but for noise of less than two steps."""
        found = [float(weight) for weight in weights(self.noise)]
        spread = 2 * math.fsum(x * x * weight for x, weight in enumerate(found))
        return float(self.unit**2) * spread / (2 * math.fsum(found) - 1)

    def draw_noise(self, randomness: Randomness) -> int:
        """Draw a discrete Gaussian number."""
        return discrete_gaussian(self.noise, NOISE_UNIT, randomness)


def discrete_gaussian(n: int, d: int, randomness: Randomness) -> int:
    """Return X with Pr[X = x] proportional to e^(-x^2/2σ^2), σ^2 = n/d; Algorithm 3."""
    t = math.isqrt(n // d) + 1
    while True:
        y = discrete_laplace(t, 1, randomness)
        off = abs(y) * d * t - n
        if bernoulli_exp_any(off * off, 2 * n * d * t * t, randomness):
            return y


def bernoulli_exp_any(n: int, d: int, randomness: Randomness) -> bool:
    """Return True with probability e^(-n/d), for any n >= 0; Canonne et al., Algorithm 1."""
    whole, rest = divmod(n, d)
    for _ in range(whole):
        if not bernoulli_exp(1, 1, randomness):
            return False
    return bernoulli_exp(rest, d, randomness)


MECHANISM: Final = DiscreteGaussian
