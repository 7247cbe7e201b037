"""What the channel says is what the code does, and debiasing undoes it without bias."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import cast

import numpy as np
import pytest

from client_sdk.mechanisms import Channel, FrequencyOracle, load, names
from tests.support.enumeration.enumeration import Law, distribution
from tests.support.enumeration.vectors import Small, is_pure, laws, small_parameters, smalls
from tests.support.loops import per_mechanism

ROUNDING = 1e-9  # relative; double precision from debias on

every_oracle = per_mechanism("small", smalls, is_pure)
every_oracle_class = pytest.mark.parametrize(
    "oracle",
    [cast("type[FrequencyOracle]", load(n)) for n in names() if is_pure(load(n))],
    ids=lambda oracle: oracle.name,
)


def oracle_of(small: Small) -> FrequencyOracle:
    """Return the mechanism as the frequency oracle that it is."""
    return cast("FrequencyOracle", small.mechanism)


def support_probabilities(oracle: FrequencyOracle, law: Law) -> list[Fraction]:
    """Return the probability that a report following *law* supports each item."""
    found = [Fraction(0)] * oracle.domain_size
    for payload, mass in law.pmf.items():
        for item in set(oracle.supports(cast("bytes", payload))):
            found[item] += mass
    return found


def column_following(oracle: FrequencyOracle, law: Law) -> bytes:
    """Return a column in which every payload has exactly its share."""
    n = math.lcm(*(mass.denominator for mass in law.pmf.values()))
    return b"".join(cast("bytes", payload) * int(mass * n) for payload, mass in law.pmf.items())


@every_oracle
def test_the_channel_is_the_enumerated_probability_of_support(small: Small) -> None:
    oracle = oracle_of(small)
    p, q = oracle.channel.p, oracle.channel.q

    for value, law in enumerate(laws(small)):
        expected = [p if item == value else q for item in range(oracle.domain_size)]
        assert support_probabilities(oracle, law) == expected


@every_oracle_class
@pytest.mark.parametrize("value", range(3))
def test_a_column_that_follows_the_law_exactly_is_debiased_to_the_truth(
    oracle: type[FrequencyOracle], value: int
) -> None:
    coarse = oracle("2", 3, precision=4, **small_parameters(oracle.name))
    law = distribution(lambda randomness: coarse.randomize(value, randomness))
    column = column_following(coarse, law)
    n = len(column) // coarse.payload_size

    totals, variances = coarse.debias(coarse.tally(column, np), n, np)

    p, q = float(coarse.channel.p), float(coarse.channel.q)
    spread = [p * (1 - p) if item == value else q * (1 - q) for item in range(3)]
    assert totals == pytest.approx([n * (item == value) for item in range(3)], abs=n * ROUNDING)
    assert variances == pytest.approx([n * s / (p - q) ** 2 for s in spread], rel=ROUNDING)


@every_oracle
def test_predict_is_the_root_mean_square_of_the_enumerated_errors(small: Small) -> None:
    oracle = oracle_of(small)
    p, q = oracle.channel.p, oracle.channel.q
    probabilities = support_probabilities(oracle, laws(small)[0])
    square = sum(s * (1 - s) for s in probabilities) / (p - q) ** 2 / oracle.domain_size

    predicted = oracle.predict(400)

    assert predicted == pytest.approx(math.sqrt(square / 400), rel=ROUNDING)


@every_oracle
def test_a_channel_with_p_and_q_swapped_is_not_the_enumerated_one(small: Small) -> None:
    oracle = oracle_of(small)
    swapped = Channel(oracle.channel.q, oracle.channel.p)

    assert support_probabilities(oracle, laws(small)[0])[0] != swapped.p
