"""Exact output laws of shipped code: replay it along every path of its random choices.

A ``Path`` is a Randomness whose choices are fixed in advance.  When they run out it raises
``Branch`` with the weights of what may come next, and the enumeration follows every one.  The
result is the law of the code as it stands, in fractions: no sampling, no tolerance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple, TypeVar

from client_sdk.core.randomness import Randomness

Outcome = TypeVar("Outcome", bound=Hashable)


class Branch(BaseException):  # a fork in the road, not an error
    """The path ends at a choice with these *weights*.  No ``except Exception`` may stop it."""

    def __init__(self, weights: Sequence[Fraction]) -> None:
        self.weights = weights


class Path:
    """A Randomness that replays *choices*.  It takes exact numbers only: a float is a fault."""

    def __init__(self, choices: Sequence[int]) -> None:
        self._choices, self._taken = choices, 0

    def choose(self, weights: Callable[[], Sequence[Fraction]]) -> int:
        """Return the next choice, an index into *weights*, or raise Branch.

        A choice that is replayed needs no weights, and most are.
        """
        if self._taken == len(self._choices):
            raise Branch(weights())
        self._taken += 1
        return self._choices[self._taken - 1]

    def bernoulli(self, p: Fraction) -> bool:
        """Branch into False and True."""
        _require_probability(p)
        return bool(self.choose(lambda: (1 - p, p)))

    def bernoulli_ratio(self, numerator: int, denominator: int) -> bool:
        """Branch into False and True."""
        _require_integers(numerator, denominator)
        if not 0 <= numerator <= denominator:
            raise TypeError("a probability must be from 0 to 1")
        p, whole = numerator, denominator
        return bool(self.choose(lambda: (Fraction(whole - p, whole), Fraction(p, whole))))

    def bernoulli_bits(self, p: Fraction, n: int) -> int:
        """Branch into the 2**n words of n independent bits."""
        _require_probability(p)
        _require_integers(n)
        return self.choose(lambda: words(p, n))

    def uniform(self, n: int) -> int:
        """Branch into n equal parts."""
        _require_integers(n)
        return self.choose(lambda: (Fraction(1, n),) * n)


def words(p: Fraction, n: int) -> list[Fraction]:
    """Return the probability of every word of *n* independent bits, each 1 with probability *p*."""
    by_ones = [p**ones * (1 - p) ** (n - ones) for ones in range(n + 1)]
    return [by_ones[word.bit_count()] for word in range(1 << n)]


class Untouchable:
    """A Randomness that fails the test if anything is drawn from it."""

    error: Exception = AssertionError("something was drawn")

    def bernoulli(self, p: Fraction) -> bool:
        raise self.error

    def bernoulli_ratio(self, numerator: int, denominator: int) -> bool:
        raise self.error

    def bernoulli_bits(self, p: Fraction, n: int) -> int:
        raise self.error

    def uniform(self, n: int) -> int:
        raise self.error


class Law(NamedTuple):
    """The mass reached for each outcome, and the *rest* that was not followed to its end."""

    pmf: dict[Hashable, Fraction]
    rest: Fraction


def distribution(
    sample: Callable[[Randomness], Outcome],
    least_mass: Fraction = Fraction(0),
    path: Callable[[Sequence[int]], Randomness] = Path,
) -> Law:
    """Return the exact law of *sample*.

    Args:    sample: code that draws from the Randomness it is handed, and returns its outcome.
             least_mass: paths lighter than this end in ``rest``: a bound for loops without one.
             path: makes the Randomness that replays choices.
    Returns: pmf and rest, which sum to 1.  Without ``least_mass`` rest is 0.
    """
    reached: dict[Hashable, Fraction] = defaultdict(Fraction)
    rest = Fraction(0)
    todo: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while todo:
        choices, mass = todo.pop()
        if mass < least_mass:
            rest += mass
            continue
        try:
            reached[sample(path(choices))] += mass
        except Branch as at:
            if mass * max(at.weights) < least_mass:
                rest += mass  # every branch would end there
                continue
            todo += [((*choices, i), mass * w) for i, w in enumerate(at.weights) if w]
    return Law(dict(reached), rest)


def exp_below(x: Fraction) -> Fraction:
    """Return a rational just below e^x, 0 <= x <= 64: its Taylor series, every term rounded down.

    Independent of the code under test, which has its bounds from ``decimal``.
    """
    scale = 10**130
    term = total = scale
    k = 0
    while term:
        k += 1
        term = term * x.numerator // (x.denominator * k)
        total += term
    return Fraction(total, scale)


def _require_probability(p: object) -> None:
    if not isinstance(p, Fraction) or not 0 <= p.numerator <= p.denominator:
        raise TypeError("a probability must be a Fraction from 0 to 1")


def _require_integers(*numbers: object) -> None:
    if any(type(number) is not int for number in numbers):
        raise TypeError("must be integers")


UNBOUNDED: Final = Fraction(10**100)  # more than any mechanism's e^epsilon


def largest_ratio(pmfs: Sequence[Mapping[Outcome, Fraction]]) -> Fraction:
    """Return the largest likelihood ratio of an outcome under two laws, or UNBOUNDED."""
    outcomes = {outcome for pmf in pmfs for outcome in pmf}
    if any(pmf.keys() != outcomes for pmf in pmfs):
        return UNBOUNDED
    return max(max(pmf[o] for pmf in pmfs) / min(pmf[o] for pmf in pmfs) for o in outcomes)
