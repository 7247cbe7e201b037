"""Every string of entropy bytes, not a sample: the integer counts of outputs are the channel's."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any, cast

import pytest

from client_sdk.mechanisms import Channel, FrequencyOracle, Mechanism, load, names
from client_sdk.mechanisms.grr import GRR
from client_sdk.randomness import ByteRandomness, Randomness
from tests.support.enumeration import Law, distribution
from tests.support.vectors import read

exhaustive = pytest.mark.parametrize(
    ("name", "parameters"),
    [(name, parameters) for name in names() for parameters in read(name).get("exhaustive", [])],
    ids=repr,
)


def law_over_bytes(mechanism: Mechanism[int], value: int, least_mass: Fraction) -> Law:
    """Return the law of the payload when every byte string that is read is equally likely."""

    def sample(source: Randomness) -> bytes:
        def read(count: int) -> bytes:
            return source.uniform(256**count).to_bytes(count, "big")

        return mechanism.randomize(value, ByteRandomness(read))

    return distribution(sample, least_mass)


def supporting(oracle: FrequencyOracle, law: Law, strings: int) -> list[Fraction]:
    """Return of how many of all byte *strings* the report supports each item."""
    counts = [Fraction(0)] * oracle.domain_size
    for payload, mass in law.pmf.items():
        for item in oracle.supports(cast("bytes", payload)):
            counts[item] += mass * strings
    return counts


@exhaustive
def test_the_byte_strings_whose_report_supports_an_item_are_counted_by_the_channel(
    name: str, parameters: dict[str, Any]
) -> None:
    oracle = cast("FrequencyOracle", load(name)(**parameters))
    p, q = oracle.channel.p, oracle.channel.q
    strings = 256**2  # no report of these parameters reads more than two bytes

    for value in range(oracle.domain_size):
        law = law_over_bytes(oracle, value, Fraction(0))
        expected = [(p if item == value else q) * strings for item in range(oracle.domain_size)]
        assert law.rest == 0
        assert supporting(oracle, law, strings) == expected


def test_rejected_bytes_are_drawn_again_and_bend_no_probability() -> None:
    value = 2
    mechanism = GRR("1", 4, precision=8)  # the other item is uniform in 3: 1 of 4 is rejected
    p, q = mechanism.channel.p, mechanism.channel.q

    pmf, rest = law_over_bytes(mechanism, value, Fraction(1, 1 << 16))

    lies = [pmf[bytes([item])] for item in range(4) if item != value]
    assert 0 < rest < Fraction(1, 5)
    assert pmf[bytes([value])] == p
    assert len(set(lies)) == 1
    assert lies[0] < q <= lies[0] + rest


class _OffByOne(GRR):
    """Planted fault: one more of the 256 bytes tells the truth."""

    def randomize(self, value: int, randomness: Randomness) -> bytes:
        told = randomness.uniform(256) <= self.channel.p * 256
        return bytes([value if told else 1 - value])

    @cached_property
    def channel(self) -> Channel:
        return GRR(self.epsilon, 2, precision=8).channel


def test_a_planted_off_by_one_in_the_threshold_miscounts_by_one_byte() -> None:
    faulty = _OffByOne("1", 2)

    counts = supporting(faulty, law_over_bytes(faulty, 0, Fraction(0)), 256)

    assert counts == [faulty.channel.p * 256 + 1, faulty.channel.q * 256 - 1]
