"""Every string of entropy bits, not a sample: outputs are counted, and the counts are the law's.

Thresholds are taken on a grid so coarse that the shipped code can be run on all strings.  The
primitives read whole bytes and drop the low bits that a draw has no use for: the source here
branches into the bits that are kept, and a test shows that the dropped ones change nothing.  A
rejected number is drawn again, and the loop remembers nothing of it; so strings that begin with a
rejected draw are left out, and the others are counted as if they were all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from typing import Any, Final, TypeVar, cast

import pytest

from client_sdk.core.errors import EntropyError
from client_sdk.core.randomness import ByteRandomness, Randomness
from client_sdk.mechanisms import FrequencyOracle, Mechanism, load, names
from client_sdk.mechanisms.items.grr import GRR
from client_sdk.mechanisms.items.oue import OUE
from client_sdk.mechanisms.numbers.discrete_gaussian import DiscreteGaussian
from client_sdk.mechanisms.numbers.discrete_laplace import DiscreteLaplace
from tests.support.enumeration.enumeration import Law, Path, distribution
from tests.support.enumeration.vectors import Small, label, read

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


MOST_VALUES: Final = 5  # of a mechanism; more only repeat what the law of privacy covers
# A loop without bound has no last string.  Each draw is tried on every string of its own instead,
# and the draws are followed until a path weighs less than this.
UNBOUNDED: Final = {
    "discrete_laplace": (DiscreteLaplace("2", 2), Fraction(1, 10**4)),
    "discrete_gaussian": (
        DiscreteGaussian("16", 2, delta_exponent=1, steps=1),
        Fraction(1, 10**3),
    ),
}


def smalls() -> list[Small]:
    """Return every mechanism with the parameters that its vector file calls ``exhaustive``."""
    return [
        Small(name, load(name)(**parameters), Fraction(0))
        for name in names()
        for parameters in read(name).get("exhaustive", [])
    ]


@cache
def law_of(mechanism: Mechanism[Any], value: Any, primitives: Primitives) -> Law:
    """Return the law of the payload when every string of bits is equally likely."""
    return law_over_bits(partial(mechanism.randomize, value), primitives)


def byte_strings_follow_the_law(small: Small, primitives: Primitives = ByteRandomness) -> None:
    """Count the strings of every payload and compare with its enumerated probability, exactly."""
    for value in small.values[:: -(-len(small.values) // MOST_VALUES)]:
        found = law_of(small.mechanism, value, primitives)
        assert found == distribution(partial(small.mechanism.randomize, value))


every_small = pytest.mark.parametrize("small", smalls(), ids=label)
every_small_with_a_channel = pytest.mark.parametrize(
    "small",
    [s for s in smalls() if isinstance(s.mechanism, FrequencyOracle) and s.mechanism.pure],
    ids=label,
)


@every_small
def test_the_strings_of_every_payload_are_counted_by_its_law(small: Small) -> None:
    byte_strings_follow_the_law(small)


@every_small_with_a_channel
def test_the_strings_whose_report_supports_an_item_are_counted_by_the_channel(small: Small) -> None:
    oracle = cast("FrequencyOracle", small.mechanism)
    p, q = oracle.channel.p, oracle.channel.q

    for value in range(oracle.domain_size):
        pmf, _ = law_of(oracle, value, ByteRandomness)
        found = [Fraction(0)] * oracle.domain_size
        for payload, mass in pmf.items():
            for item in oracle.supports(cast("bytes", payload)):
                found[item] += mass
        assert found == [p if item == value else q for item in range(oracle.domain_size)]


@pytest.mark.parametrize("name", sorted(UNBOUNDED))
def test_a_loop_without_bound_follows_the_law_with_every_draw_counted(name: str) -> None:
    mechanism, least_mass = UNBOUNDED[name]
    sample = partial(mechanism.randomize, Fraction(0))

    found = distribution(sample, least_mass, CountedPath)

    assert found == distribution(sample, least_mass)
    assert found.rest < Fraction(1, 2)


def test_every_mechanism_is_counted_string_by_string_or_draw_by_draw() -> None:
    counted = {small.name for small in smalls()}

    assert counted | UNBOUNDED.keys() == set(names())
    assert not counted & UNBOUNDED.keys()


@pytest.mark.parametrize("n", [2, 3, 5, 64, 100, 128, 129, 255, 256])
def test_the_bits_of_a_byte_that_a_uniform_number_drops_change_nothing(n: int) -> None:
    kept = 0xFF << (8 - (n - 1).bit_length()) & 0xFF

    drawn = [_drawn(byte, lambda rnd: rnd.uniform(n)) for byte in range(256)]

    assert drawn == [drawn[byte & kept] for byte in range(256)]
    assert {drawn.count(x) for x in range(n)} == {256 >> (n - 1).bit_length()}


@pytest.mark.parametrize("n", range(1, 9))
def test_the_bits_of_a_byte_that_a_word_of_coins_drops_change_nothing(n: int) -> None:
    kept = 0xFF << (8 - n) & 0xFF

    drawn = [_drawn(byte, lambda rnd: rnd.bernoulli_bits(Fraction(1, 2), n)) for byte in range(256)]

    assert drawn == [drawn[byte & kept] for byte in range(256)]


def _drawn(byte: int, draw: Callable[[Randomness], int]) -> int | None:
    """Return what is drawn from one *byte*, or None if it takes another one."""
    left = [bytes([byte])]
    try:
        return draw(ByteRandomness(lambda _: left.pop()))
    except EntropyError:
        return None


class _DigitShort(ByteRandomness):
    """Planted fault: coins are compared with all digits of p but the last."""

    def bernoulli_bits(self, p: Fraction, n: int) -> int:
        half = p.denominator // 2
        return super().bernoulli_bits(Fraction(p.numerator // 2, half), n)


class _OpenIsBelow(ByteRandomness):
    """Planted fault: a coin that equals p in every digit counts as below it."""

    def bernoulli_bits(self, p: Fraction, n: int) -> int:
        return super().bernoulli_bits(p + Fraction(1, p.denominator), n)


class _LowestIsNever(ByteRandomness):
    """Planted fault: zero is drawn again."""

    def uniform(self, n: int) -> int:
        return super().uniform(n) or super().uniform(n)


@pytest.mark.parametrize(
    ("fault", "mechanism"),
    [
        (_DigitShort, OUE("1", 3, precision=4)),
        (_OpenIsBelow, OUE("1", 3, precision=4)),
        (_LowestIsNever, GRR("1", 4, precision=8)),
    ],
)
def test_a_planted_fault_in_a_primitive_miscounts_the_strings(
    fault: Primitives, mechanism: Mechanism[Any]
) -> None:
    with pytest.raises(AssertionError):
        byte_strings_follow_the_law(Small("faulty", mechanism, Fraction(0)), fault)
