"""Calibration of discrete Gaussian noise: its exact δ at a given ε, bounded from above.

Sums of e^(-x^2/2σ^2) are taken term by term in decimals of DIGITS digits: a term comes from the one
before by two products, so its relative error after x terms is below x^2 10^(1-DIGITS).  With at
most 60,000 terms that is below 1e-38, and SLACK covers it many times over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from ..core.errors import InvalidParameterError
from ._exact import exp_floor

NOISE_UNIT: Final = 1024  # parts of a squared step in which σ^2 is given
MAX_NOISE: Final = 4096 * 4096 * NOISE_UNIT  # a deviation of 4096 steps
ROUNDS_LITTLE: Final = 64 * NOISE_UNIT  # σ = 8 steps: rounding adds at most 0.4 % to the variance

DIGITS: Final = 50  # decimal digits of a term
LEAST: Final = Decimal("1e-40")  # of a term; a further one is left out
NEAR: Final = 20  # the first step of the search is 2^-20 of where it begins
SLACK: Final = Fraction(1, 10**30)  # relative


def weights(noise: int) -> list[Decimal]:
    """Return e^(-x^2/2σ^2) for x = 0, 1, … down to LEAST, σ^2 being *noise* / NOISE_UNIT."""
    context = Context(prec=DIGITS)
    multiply = context.multiply
    ratio = context.exp(context.divide(Decimal(-NOISE_UNIT), Decimal(2 * noise)))
    fall = multiply(ratio, ratio)
    weight, found = Decimal(1), []
    while weight >= LEAST:
        found.append(weight)
        weight, ratio = multiply(weight, ratio), multiply(ratio, fall)
    return found


def tail_loss(epsilon: Fraction, shift: int, noise: int) -> Fraction:
    """Return an upper bound of δ(ε) between discrete Gaussian noise and the same, *shift* higher.

    The half-line x <= c that gives δ ends where the likelihood ratio falls below e^ε: at the
    largest integer c <= shift/2 - εσ^2/shift.  By symmetry its mass is a sum from -c up.
    """
    found = weights(noise)
    start = math.ceil(epsilon * noise / (NOISE_UNIT * shift) - Fraction(shift, 2))
    total = 2 * _sum(found[1:]) + 1
    mass, shifted = _from(start, found), _from(start + shift, found)
    left_out = 2 * _beyond(noise, len(found))  # on both sides
    most = (mass + left_out) * (1 + SLACK) - exp_floor(epsilon) * shifted * (1 - SLACK)
    return max(most, Fraction(0)) / (total * (1 - SLACK))


@lru_cache
def best_noise(epsilon: Fraction, delta: Fraction, shift: int) -> int:
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
    if likely >= ROUNDS_LITTLE:
        step = 1 + (likely >> NEAR)
        high = min(likely, MAX_NOISE)
        low = high - step
        while tail_loss(epsilon, shift, low) <= delta:
            low, high, step = max(low - 2 * step, 1), low, 2 * step
    while tail_loss(epsilon, shift, high) > delta:
        if high == MAX_NOISE:
            rule = "is too small: this delta needs noise of more than 4096 times the range"
            raise InvalidParameterError("epsilon", epsilon, rule)
        low, high, step = high, min(high + step, MAX_NOISE), 2 * step
    return low, high


def _guess(epsilon: float, delta: float, shift: int) -> int:
    """Return about the least noise: that of the continuous Gaussian, where the search begins.

    In doubles; the search ends at the same noise wherever it begins, as the loss falls with noise.
    Source: Balle, Wang, ICML 2018, Theorem 8.
    """
    low, high = 1.0, 2.0 * MAX_NOISE
    for _ in range(NEAR + 40):  # halvings of the ratio, to the last bit of a double
        noise = math.sqrt(low * high)
        sigma = math.sqrt(noise / NOISE_UNIT) / shift
        ahead, behind = 1 / (2 * sigma) - epsilon * sigma, 1 / (2 * sigma) + epsilon * sigma
        inside = math.erfc(-ahead / math.sqrt(2)) / 2
        loss = inside - math.exp(epsilon) * math.erfc(behind / math.sqrt(2)) / 2
        low, high = (noise, high) if loss > delta else (low, noise)
    return round(high)


def best_steps(epsilon: Fraction, delta: Fraction) -> int:
    """Return the fewest steps, about, that make the noise wide enough for rounding to be little."""
    return 1 + math.isqrt(ROUNDS_LITTLE // best_noise(epsilon, delta, 1))


def _from(start: int, found: Sequence[Decimal]) -> Fraction:
    """Return the sum of weights from *start*, which may be negative, to the last one found."""
    if start > 0:
        return _sum(found[start:])
    return _sum(found) + _sum(found[1 : 1 - start])


def _sum(found: Sequence[Decimal]) -> Fraction:
    context = Context(prec=DIGITS)
    total = Decimal(0)
    for weight in reversed(found):
        total = context.add(total, weight)
    return Fraction(total)


def _beyond(noise: int, first: int) -> Fraction:
    """Return a bound of the sum of weights from *first* on: each is below LEAST and they fall.

    Their ratios are at most e^-(2x+1)/2σ^2 <= e^-r, r = first/σ^2, and 1/(1-e^-r) <= 1 + 1/r.
    """
    return Fraction(LEAST) * (1 + Fraction(noise, NOISE_UNIT * first))
