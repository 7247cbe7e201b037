"""Exact laws of shipped code over every string of entropy bits, not over choices of primitives.

The shipped primitives read whole bytes and drop the low bits that a draw has no use for.  The
source here branches into the bits that are kept, 2^k strings for k of them, and leaves the dropped
ones 0; a test shows byte by byte that these change nothing.

A rejected number is drawn again, and the loop remembers nothing of it.  So the strings that begin
with a rejected draw are left out, and those that do not are counted as if they were all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import TypeVar

from client_sdk.core.randomness import ByteRandomness, Randomness
from tests.support.enumeration.enumeration import Law, Path

Outcome = TypeVar("Outcome", bound=Hashable)
Primitives = Callable[[Callable[[int], bytes]], Randomness]
Masses = Mapping[Hashable, Fraction | int]


class NextRead(BaseException):  # a fork in the road, not an error
    """The string ends at a read that keeps *bits* bits."""

    def __init__(self, bits: int) -> None:
        self.bits = bits


class Rejected(BaseException):  # a dead end, not an error
    """A draw that needs one read has come to a second."""


class BitString:
    """A Randomness that runs *primitives* over the bits that they keep of *words*, one a read."""

    def __init__(self, words: Sequence[int], primitives: Primitives) -> None:
        self._words, self._taken = words, 0
        self._kept = self._reads_left = 0
        self._primitives = primitives(self._read)

    def uniform(self, n: int) -> int:
        """Keep the bits of numbers below n, by one read unless that is rejected."""
        self._kept, self._reads_left = (n - 1).bit_length(), 1
        return self._primitives.uniform(n)

    def bernoulli(self, p: Fraction) -> bool:
        """Keep the bits of numbers below the denominator."""
        self._kept, self._reads_left = (p.denominator - 1).bit_length(), 1
        return self._primitives.bernoulli(p)

    def bernoulli_ratio(self, numerator: int, denominator: int) -> bool:
        """Keep the bits of numbers below the denominator."""
        self._kept, self._reads_left = (denominator - 1).bit_length(), 1
        return self._primitives.bernoulli_ratio(numerator, denominator)

    def bernoulli_bits(self, p: Fraction, n: int) -> int:
        """Keep n bits of as many reads as p has digits."""
        self._kept, self._reads_left = n, p.denominator.bit_length() - 1
        return self._primitives.bernoulli_bits(p, n)

    def _read(self, count: int) -> bytes:
        if not self._reads_left:
            raise Rejected
        self._reads_left -= 1
        if self._taken == len(self._words):
            raise NextRead(self._kept)
        self._taken += 1
        return (self._words[self._taken - 1] << (8 * count - self._kept)).to_bytes(count, "big")


def law_over_bits(
    sample: Callable[[Randomness], Outcome], primitives: Primitives = ByteRandomness
) -> Law:
    """Return the exact law of *sample* when every string of bits is equally likely.

    Args:   sample: code that draws from the Randomness it is handed, and returns its outcome; it
            must come to an end on every string.
            primitives: makes the primitives under test from a byte source.
    """

    def explore(words: tuple[int, ...]) -> Masses:
        try:
            return {sample(BitString(words, primitives)): 1}
        except Rejected:
            return {}
        except NextRead as at:
            return _mean([explore((*words, word)) for word in range(1 << at.bits)])

    return Law({outcome: Fraction(mass) for outcome, mass in explore(()).items()}, Fraction(0))


def _mean(pmfs: Sequence[Masses]) -> Masses:
    """Return the even mixture of the *pmfs* that are not empty."""
    accepted = [pmf for pmf in pmfs if pmf]
    total: dict[Hashable, Fraction | int] = defaultdict(int)
    for pmf in accepted:
        for outcome, mass in pmf.items():
            total[outcome] += mass
    return {outcome: Fraction(mass) / len(accepted) for outcome, mass in total.items()}


class CountedPath(Path):
    """A Path whose weights are not stated but counted: every draw on every string of its bits."""

    def uniform(self, n: int) -> int:
        """Branch into the numbers drawn."""
        return self._follow("uniform", n)

    def bernoulli(self, p: Fraction) -> bool:
        """Branch into the outcomes of the coin."""
        return bool(self._follow("bernoulli", p))

    def bernoulli_ratio(self, numerator: int, denominator: int) -> bool:
        """Branch into the outcomes of the coin."""
        return bool(self._follow("bernoulli_ratio", numerator, denominator))

    def bernoulli_bits(self, p: Fraction, n: int) -> int:
        """Branch into the words drawn."""
        return self._follow("bernoulli_bits", p, n)

    def _follow(self, primitive: str, *arguments: object) -> int:
        drawn = _counted(primitive, arguments)
        return drawn[self.choose(lambda: [mass for _, mass in drawn])][0]


@cache
def _counted(primitive: str, arguments: tuple[object, ...]) -> list[tuple[int, Fraction]]:
    """Return what one draw gives, and how often over every string of its bits; in rising order."""
    pmf, _ = law_over_bits(lambda randomness: int(getattr(randomness, primitive)(*arguments)))
    return sorted((value, mass) for value, mass in pmf.items() if isinstance(value, int))
