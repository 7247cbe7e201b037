"""Enumeration of e^-γ coins: a run of draws γ/1, γ/2, γ/3, … is one choice instead of a loop.

The coin of Canonne et al., Algorithm 1, tosses ``bernoulli_ratio(n, d * k)`` for k = 1, 2, … until
one fails, and looks at whether the last k is odd.  Nothing else of the run matters, so a path may
choose the parity instead of the length, with bounds of its exact probability as weights.  That
shortens the paths through discrete Laplace noise from thousands of tosses to a few.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeVar

from client_sdk.core.randomness import Randomness
from tests.support.enumeration.enumeration import Law, Path, distribution

Outcome = TypeVar("Outcome", bound=Hashable)

GRID: Final = 1 << 256  # bounds of probabilities are multiples of 1 / GRID


class RunPath(Path):
    """A Path that ends a run at its second, third or no later toss, as its parity demands."""

    def __init__(self, choices: Sequence[int]) -> None:
        super().__init__(choices)
        self.run = (0, 0)  # n and d of the last run
        self._toss = 0  # k of the last toss of a run that goes on, or 0

    def bernoulli_ratio(self, numerator: int, denominator: int) -> bool:
        """Toss once; where this is the second toss of a run, choose the parity of its length."""
        n, d = self.run
        if self._toss and (numerator, denominator) == (n, d * (self._toss + 1)):
            return self._go_on(n, d)
        if self._toss > 1:
            raise AssertionError("a run broke off: these tosses are no e^-γ coin")
        self.run = (numerator, denominator)
        tossed = super().bernoulli_ratio(numerator, denominator)
        self._toss = 1 if tossed else 0
        return tossed

    def uniform(self, n: int) -> int:
        """Branch into n equal parts; no run goes on after that."""
        if self._toss > 1:
            raise AssertionError("a run broke off: these tosses are no e^-γ coin")
        self._toss = 0
        return super().uniform(n)

    def _go_on(self, n: int, d: int) -> bool:
        if self._toss == 1:
            parity = self.choose(lambda: parities(Fraction(n, d)))
            self._toss = 2 if parity else 0
            return bool(parity)
        self._toss = 0
        return False


class Restart(Exception):  # noqa: N818  # the end of a pass, not an error
    """The sampler begins anew."""


class OnePass(RunPath):
    """Follows a sampler over Laplace noise to its first restart."""

    begun = signed = False

    def uniform(self, n: int) -> int:
        """Let one magnitude and one sign be drawn; anything further is a new pass."""
        if not self.begun:
            self.begun = True
        elif self.run == (1, 1) and not self.signed:  # the run that ends a magnitude
            self.signed = True
        else:
            raise Restart
        return super().uniform(n)


def one_pass_law(sample: Callable[[Randomness], Outcome], least_mass: Fraction) -> Law:
    """Return the law of *sample*, which restarts until a pass ends.

    Passes are independent and alike, so it is the law of one pass, given that it ends.
    """

    def one_pass(randomness: Randomness) -> tuple[Outcome, ...]:
        try:
            return (sample(randomness),)
        except Restart:
            return ()

    pmf, rest = distribution(one_pass, least_mass, OnePass)
    ends = 1 - pmf.pop((), Fraction(0))
    found = {outcome[0]: mass / ends for outcome, mass in pmf.items() if isinstance(outcome, tuple)}
    return Law(found, rest / ends)


def parities(gamma: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """Return both bounds of ``parity_bounds`` and, of a third parity, their width."""
    even, odd = parity_bounds(gamma)
    return even, odd, 1 - even - odd


@lru_cache
def parity_bounds(gamma: Fraction) -> tuple[Fraction, Fraction]:
    """Return lower bounds of Pr[even | k >= 2] and Pr[odd | k >= 2] for a run of 0 < γ <= 1.

    Pr[k > j] = γ^j/j!, so Pr[odd | k >= 2] = (e^-γ - 1 + γ)/γ = γ/2! - γ^2/3! + …, whose partial
    sums lie on either side of it.
    """
    total, term, j = Fraction(0), Fraction(1), 1
    while term * GRID > 1:
        term *= gamma / (j + 1)
        total += term if j % 2 else -term
        j += 1
    low, high = total - term, total + term
    return _floor(1 - high), _floor(low)


def _floor(p: Fraction) -> Fraction:
    return Fraction(p.numerator * GRID // p.denominator, GRID)
