"""Every string of entropy bytes, not a sample: the integer counts of outputs are the law's."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import cache, partial
from typing import Any, cast

import pytest

from client_sdk.errors import InvalidParameterError
from client_sdk.mechanisms import FrequencyOracle, Mechanism, load, names
from client_sdk.randomness import ByteRandomness, Randomness
from tests.support.enumeration import Law, distribution
from tests.support.seeded import ShakeStream
from tests.support.vectors import Small, label, read, small_parameters

Primitives = Callable[[Callable[[int], bytes]], Randomness]

TWO_BYTES = 256**2  # strings; what reads more is left, and counted as rest
SOME_REPORTS = 32  # a loop that is entered more often than never shows itself
PRECISION = 8  # bits of the grid where a file names no parameters of its own


def small_enough() -> list[Small]:
    """Return every mechanism with parameters so small that two bytes make a report.

    A vector file may say which: ``exhaustive``.  Mechanisms whose file does not are taken with two
    items or grid points, if that is enough.
    """
    found = []
    for name in names():
        plain = [{"epsilon": "2", "domain_size": 2, "precision": PRECISION}]
        for parameters in read(name).get("exhaustive", plain):
            try:
                mechanism = load(name)(**small_parameters(name) | parameters)
            except InvalidParameterError:
                continue  # not every mechanism can be built on a grid of 8 bits
            if bytes_read(mechanism) <= 2:
                found.append(Small(name, mechanism, Fraction(1, TWO_BYTES)))
    return found


def bytes_read(mechanism: Mechanism[Any]) -> int:
    """Return the most bytes that one of some reports of the first value takes."""
    most = 0
    for seed in range(SOME_REPORTS):
        stream = ShakeStream(bytes([seed]))
        sizes: list[int] = []
        first, *_ = Small(mechanism.name, mechanism, Fraction(0)).values
        mechanism.randomize(first, ByteRandomness(partial(_counted, stream, sizes)))
        most = max(most, sum(sizes))
    return most


def _counted(stream: ShakeStream, sizes: list[int], count: int) -> bytes:
    sizes.append(count)
    return stream.read(count)


@cache
def law_over_bytes(
    mechanism: Mechanism[Any], value: Any, least_mass: Fraction, primitives: Primitives
) -> Law:
    """Return the law of the payload when every byte string that is read is equally likely."""

    def sample(source: Randomness) -> bytes:
        def read(count: int) -> bytes:
            return source.uniform(256**count).to_bytes(count, "big")

        return mechanism.randomize(value, primitives(read))

    return distribution(sample, least_mass)


def counts(law: Law) -> dict[Hashable, Fraction]:
    """Return of how many of the two-byte strings each payload comes."""
    return {payload: mass * TWO_BYTES for payload, mass in law.pmf.items()}


def byte_strings_follow_the_law(small: Small, primitives: Primitives = ByteRandomness) -> None:
    """Count the byte strings of every payload and compare with its enumerated probability.

    The counts are exact; strings that were left, after a rejection or a second byte, may belong to
    any payload.
    """
    for value in small.values[:2]:
        found = law_over_bytes(small.mechanism, value, small.least_mass, primitives)
        exact = distribution(partial(small.mechanism.randomize, value), Fraction(1, 10**7))
        left = found.rest * TWO_BYTES
        reached = counts(found)
        assert all(count.denominator == 1 for count in reached.values())
        for payload in found.pmf.keys() | exact.pmf.keys():
            least = exact.pmf.get(payload, Fraction(0)) * TWO_BYTES
            most = least + exact.rest * TWO_BYTES
            assert reached.get(payload, 0) <= most
            assert least <= reached.get(payload, 0) + left


every_small = pytest.mark.parametrize("small", small_enough(), ids=label)
every_small_oracle = pytest.mark.parametrize(
    "small", [s for s in small_enough() if isinstance(s.mechanism, FrequencyOracle)], ids=label
)


@every_small
def test_the_byte_strings_of_every_payload_are_counted_by_its_law(small: Small) -> None:
    byte_strings_follow_the_law(small)


@every_small_oracle
def test_the_byte_strings_whose_report_supports_an_item_are_counted_by_the_channel(
    small: Small,
) -> None:
    oracle = cast("FrequencyOracle", small.mechanism)
    p, q = oracle.channel.p, oracle.channel.q

    for value in range(oracle.domain_size):
        law = law_over_bytes(oracle, value, small.least_mass, ByteRandomness)
        supporting = [
            sum(
                (m for r, m in law.pmf.items() if item in set(oracle.supports(cast("bytes", r)))),
                Fraction(0),
            )
            for item in range(oracle.domain_size)
        ]
        for item, found in enumerate(supporting):
            assert 0 <= (p if item == value else q) - found <= law.rest


def test_every_mechanism_that_reads_two_bytes_at_most_is_counted_without_rest() -> None:
    whole = {
        small.name
        for small in small_enough()
        if law_over_bytes(small.mechanism, small.values[0], small.least_mass, ByteRandomness).rest
        == 0
    }

    assert {"grr", "sue", "hadamard", "pgr", "subset_selection"} <= whole


def test_rejected_bytes_are_drawn_again_and_bend_no_probability() -> None:
    value = 2
    mechanism = load("grr")("1", 4, precision=8)  # a lie is uniform in 3: 1 of 4 is rejected
    assert isinstance(mechanism, FrequencyOracle)
    p, q = mechanism.channel.p, mechanism.channel.q

    pmf, rest = law_over_bytes(mechanism, value, Fraction(1, TWO_BYTES), ByteRandomness)

    lies = [pmf[bytes([item])] for item in range(4) if item != value]
    assert 0 < rest < Fraction(1, 5)
    assert pmf[bytes([value])] == p
    assert len(set(lies)) == 1
    assert lies[0] < q <= lies[0] + rest
