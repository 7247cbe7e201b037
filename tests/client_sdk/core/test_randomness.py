"""The primitives are exact over all bytes, read the bytes that they state, and fail closed."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest

from client_sdk.core.errors import EntropyError, InvalidParameterError
from client_sdk.core.randomness import ByteRandomness, Randomness, system_randomness
from tests.support.enumeration.enumeration import distribution

COINS = [Fraction(1, 2), Fraction(1, 4), Fraction(3, 8), Fraction(11, 16), Fraction(0), Fraction(1)]


def over_bytes(draw: Callable[[ByteRandomness], int]) -> Callable[[Randomness], int]:
    """Return *draw* over a byte source whose bytes the enumeration chooses."""

    def sample(source: Randomness) -> int:
        return draw(ByteRandomness(lambda n: source.uniform(256**n).to_bytes(n, "big")))

    return sample


def over_words(
    draw: Callable[[ByteRandomness], int], bits: int, low: int
) -> Callable[[Randomness], int]:
    """Return *draw* over one-byte words: their top *bits* enumerated, the dropped ones fixed."""

    def sample(source: Randomness) -> int:
        def read(count: int) -> bytes:
            assert count == 1
            return bytes([source.uniform(1 << bits) << (8 - bits) | low >> bits])

        return draw(ByteRandomness(read))

    return sample


class Recorded:
    """A byte source that gives a fixed text and notes how much was asked for."""

    def __init__(self, text: bytes) -> None:
        self.text, self.sizes = text, list[int]()

    def read(self, count: int) -> bytes:
        self.sizes.append(count)
        taken, self.text = self.text[:count], self.text[count:]
        return taken


@pytest.mark.parametrize("n", [1, 2, 4, 16, 256])
def test_uniform_over_every_byte_is_flat_where_nothing_is_rejected(n: int) -> None:
    law = distribution(over_bytes(lambda randomness: randomness.uniform(n)))

    assert law.rest == 0
    assert law.pmf == {i: Fraction(1, n) for i in range(n)}


@pytest.mark.parametrize("n", [3, 5, 6, 100, 255])
def test_uniform_over_every_byte_stays_flat_under_rejection(n: int) -> None:
    law = distribution(over_bytes(lambda randomness: randomness.uniform(n)), Fraction(1, 300))

    assert set(law.pmf) == set(range(n))
    assert len(set(law.pmf.values())) == 1


@pytest.mark.parametrize("p", COINS)
def test_bernoulli_over_every_byte_is_exact(p: Fraction) -> None:
    coin = distribution(over_bytes(lambda randomness: randomness.bernoulli(p)))
    ratio = distribution(
        over_bytes(lambda rnd: rnd.bernoulli_ratio(4 * p.numerator, 4 * p.denominator))
    )

    assert coin.rest == ratio.rest == 0
    assert coin.pmf.get(True, 0) == ratio.pmf.get(True, 0) == p


@pytest.mark.parametrize(("p", "n"), list(product(COINS[:-1], [1, 2, 3])))
def test_bernoulli_bits_over_every_word_are_independent_and_exact(p: Fraction, n: int) -> None:
    expected = distribution(lambda randomness: randomness.bernoulli_bits(p, n))

    for low in (0, 255):  # what the dropped bits are changes nothing
        found = distribution(over_words(lambda rnd: rnd.bernoulli_bits(p, n), n, low))
        assert found == expected


def test_uniform_reads_whole_bytes_and_keeps_the_high_bits() -> None:
    source = Recorded(bytes([0b1011_1111, 0b0110_0000]))
    randomness = ByteRandomness(source.read)

    drawn = [randomness.uniform(8), randomness.uniform(8)]

    assert drawn == [0b101, 0b011]
    assert source.sizes == [1, 1]


@pytest.mark.parametrize(
    ("n", "size"), [(1, 0), (2, 1), (256, 1), (257, 2), (65_537, 3), (1 << 128, 16)]
)
def test_uniform_reads_as_many_bytes_as_the_largest_result_needs(n: int, size: int) -> None:
    source = Recorded(bytes(40))

    ByteRandomness(source.read).uniform(n)

    assert source.sizes == [size]


def test_bernoulli_bits_read_one_word_a_digit_until_all_are_decided() -> None:
    source = Recorded(bytes([0b0011_0000, 0b1010_0000]))  # p = 0.11 in binary

    bits = ByteRandomness(source.read).bernoulli_bits(Fraction(3, 4), 4)

    # the first digit, 1, closes the two bits 0 as below; the second, 1, one of the other two
    assert bits == 0b1101
    assert source.sizes == [1, 1]


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1)])
def test_bernoulli_bits_of_certain_bits_are_certain(p: Fraction) -> None:
    bits = [system_randomness().bernoulli_bits(p, 9) for _ in range(50)]

    assert set(bits) == {511 * p.numerator}


@pytest.mark.parametrize("n", [0, -1, -3])
def test_uniform_refuses_an_empty_range_without_showing_it(n: int) -> None:
    """It would never return, or blame the byte source."""
    with pytest.raises(InvalidParameterError, match=r"^n=\.\.\.: must be at least 1$"):
        system_randomness().uniform(n)


def _raise_oserror(count: int) -> bytes:
    raise OSError("no entropy")


def _raise_notimplemented(count: int) -> bytes:
    raise NotImplementedError


@pytest.mark.parametrize(
    "read", [_raise_oserror, _raise_notimplemented, lambda n: b"", lambda n: bytes(n + 1)]
)
def test_a_source_that_fails_or_gives_another_length_draws_nothing(
    read: Callable[[int], bytes],
) -> None:
    randomness = ByteRandomness(read)

    draws: list[Callable[[], int]] = [
        lambda: randomness.uniform(10),
        lambda: randomness.bernoulli(Fraction(1, 3)),
        lambda: randomness.bernoulli_ratio(1, 3),
        lambda: randomness.bernoulli_bits(Fraction(1, 3), 5),
    ]
    for draw in draws:
        with pytest.raises(EntropyError, match="no report was made"):
            draw()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_forked_processes_never_repeat_a_draw() -> None:
    randomness = system_randomness()
    randomness.uniform(1 << 128)
    draws = {_draw_in_a_child(randomness) for _ in range(20)}

    assert len(draws) == 20


def _draw_in_a_child(randomness: ByteRandomness) -> bytes:
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write_end, randomness.uniform(1 << 128).to_bytes(16, "big"))
        os._exit(0)
    os.waitpid(child, 0)
    drawn = os.read(read_end, 16)
    os.close(read_end)
    os.close(write_end)
    return drawn
