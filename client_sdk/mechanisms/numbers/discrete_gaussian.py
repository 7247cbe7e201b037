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

The exact δ at a given ε is bounded by sums of e^(-x^2/2σ^2), taken term by term in decimals of
DIGITS digits: a term comes from the one before by two products, so its relative error after x terms
is below x^2 10^(1-DIGITS).  With at most 60,000 terms that is below 1e-38, and _SLACK covers it
many times over.

Draws: round(x, steps), then until a number stands: y as in ``discrete_laplace`` with t = 1 +
    isqrt(n // 1024), n = ``noise``, and s = 1; with off = |y| 1024 t - n, exp(off^2, 2 n 1024 t^2)
    takes it.  Of an exponent above 1 its whole part is so many exp(1, 1), all of which must hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache

from ...core.dataclass import dataclass
from ...core.errors import InvalidParameterError
from ...core.randomness import Randomness
from ...core.typing import ClassVar, Final
from ..base import EpsilonLike
from ..exact import THRESHOLD_BITS, exp_floor
from ._sums import SumReports
from .discrete_laplace import bernoulli_exp, discrete_laplace

NOISE_UNIT: Final = 1024  # parts of a squared step in which σ^2 is given
_MAX_NOISE: Final = 4096 * 4096 * NOISE_UNIT  # a deviation of 4096 steps
_ROUNDS_LITTLE: Final = 64 * NOISE_UNIT  # σ = 8 steps: rounding adds at most 0.4 % to the variance

DIGITS: Final = 50  # decimal digits of a term
LEAST: Final = Decimal("1e-40")  # of a term; a further one is left out
_NEAR: Final = 20  # the first step of the search is 2^-20 of where it begins
_SLACK: Final = Fraction(1, 10**30)  # relative

TAIL: Final = 9  # deviations; an honest report is clamped with probability below 3e-19
_MAX_STEPS: Final = 256  # of the grid that the noise is drawn on
_MAX_DELTA_EXPONENT: Final = 12


def weights(noise: int) -> list[Decimal]:
    """Return e^(-x^2/2σ^2) for x = 0, 1, … down to LEAST, σ^2 being *noise* / NOISE_UNIT."""
    context = Context(prec=DIGITS)
    multiply = context.multiply
    ratio = context.exp(context.divide(Decimal(-NOISE_UNIT), Decimal(2 * noise)))
    fall = multiply(ratio, ratio)
    weight, terms = Decimal(1), []
    while weight >= LEAST:
        terms.append(weight)
        weight, ratio = multiply(weight, ratio), multiply(ratio, fall)
    return terms


def tail_loss(epsilon: Fraction, shift: int, noise: int) -> Fraction:
    """Return an upper bound of δ(ε) between discrete Gaussian noise and the same, *shift* higher.

    The half-line x <= c that gives δ ends where the likelihood ratio falls below e^ε: at the
    largest integer c <= shift/2 - εσ^2/shift.  By symmetry its mass is a sum from -c up.
    """
    terms = weights(noise)
    start = math.ceil(epsilon * noise / (NOISE_UNIT * shift) - Fraction(shift, 2))
    total = 2 * _sum(terms[1:]) + 1
    mass, shifted = _from(start, terms), _from(start + shift, terms)
    left_out = 2 * _beyond(noise, len(terms))  # on both sides
    most = (mass + left_out) * (1 + _SLACK) - exp_floor(epsilon) * shifted * (1 - _SLACK)
    return max(most, Fraction(0)) / (total * (1 - _SLACK))


@lru_cache
def _best_noise(epsilon: Fraction, delta: Fraction, shift: int) -> int:
    """Return the least noise, in 1/NOISE_UNIT squared steps, that bisection finds to keep to δ.

    Raises: InvalidParameterError: it takes more than MAX_NOISE.
    """
    low, high = _bracket(epsilon, delta, shift)
    while high - low > 1:
        middle = (low + high) // 2
        if tail_loss(epsilon, shift, middle) > delta:
            low = middle
        else:
            high = middle
    return high


def _bracket(epsilon: Fraction, delta: Fraction, shift: int) -> tuple[int, int]:
    """Return a noise that does not keep to δ, or 0, and a larger one that does."""
    likely = _guess(float(epsilon), float(delta), shift)
    # below a few steps the loss need not fall with noise: there the first power of two counts
    low, high, step = 0, 1, 1
    if likely >= _ROUNDS_LITTLE:
        step = 1 + (likely >> _NEAR)
        high = min(likely, _MAX_NOISE)
        low = high - step
        while tail_loss(epsilon, shift, low) <= delta:
            low, high, step = max(low - 2 * step, 1), low, 2 * step
    while tail_loss(epsilon, shift, high) > delta:
        if high == _MAX_NOISE:
            rule = "is too small: this delta needs noise of more than 4096 times the range"
            raise InvalidParameterError("epsilon", epsilon, rule)
        low, high, step = high, min(high + step, _MAX_NOISE), 2 * step
    return low, high


def _guess(epsilon: float, delta: float, shift: int) -> int:
    """Return about the least noise: that of the continuous Gaussian, where the search begins.

    In doubles; the search ends at the same noise wherever it begins, as the loss falls with noise.
    Source: Balle, Wang, ICML 2018, Theorem 8.
    """
    low, high = 1.0, 2.0 * _MAX_NOISE
    for _ in range(_NEAR + 40):  # halvings of the ratio, to the last bit of a double
        noise = math.sqrt(low * high)
        sigma = math.sqrt(noise / NOISE_UNIT) / shift
        ahead, behind = 1 / (2 * sigma) - epsilon * sigma, 1 / (2 * sigma) + epsilon * sigma
        inside = math.erfc(-ahead / math.sqrt(2)) / 2
        loss = inside - math.exp(epsilon) * math.erfc(behind / math.sqrt(2)) / 2
        low, high = (noise, high) if loss > delta else (low, noise)
    return round(high)


def _best_steps(epsilon: Fraction, delta: Fraction) -> int:
    """Return the fewest steps, about, that make the noise wide enough for rounding to be little."""
    return 1 + math.isqrt(_ROUNDS_LITTLE // _best_noise(epsilon, delta, 1))


def _from(start: int, terms: Sequence[Decimal]) -> Fraction:
    """Return the sum of weights from *start*, which may be negative, to the last one found."""
    if start > 0:
        return _sum(terms[start:])
    return _sum(terms) + _sum(terms[1 : 1 - start])


def _sum(terms: Sequence[Decimal]) -> Fraction:
    context = Context(prec=DIGITS)
    total = Decimal(0)
    for weight in reversed(terms):
        total = context.add(total, weight)
    return Fraction(total)


def _beyond(noise: int, first: int) -> Fraction:
    """Return a bound of the sum of weights from *first* on: each is below LEAST and they fall.

    Their ratios are at most e^-(2x+1)/2σ^2 <= e^-r, r = first/σ^2, and 1/(1-e^-r) <= 1 + 1/r.
    """
    return Fraction(LEAST) * (1 + Fraction(noise, NOISE_UNIT * first))


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
        self.fix("delta_exponent", delta_exponent, least=1, most=_MAX_DELTA_EXPONENT)
        count = _best_steps(self.epsilon, self.delta) if steps is None else steps
        self.fix("steps", count, least=1, most=_MAX_STEPS)
        least = _best_noise(self.epsilon, self.delta, count) if noise is None else noise
        self.fix("noise", least, least=1, most=_MAX_NOISE)
        self.validate()

    def validate(self) -> None:
        """Refuse noise that does not keep to ``delta``."""
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
        terms = [float(weight) for weight in weights(self.noise)]
        spread = 2 * math.fsum(x * x * weight for x, weight in enumerate(terms))
        return float(self.unit**2) * spread / (2 * math.fsum(terms) - 1)

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
