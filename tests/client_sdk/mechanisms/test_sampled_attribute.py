"""A drawn attribute of a record: privacy, unbiased shares, and the size of its subsets."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np
import pytest

from client_sdk.mechanisms import Record, load, starts_of
from client_sdk.mechanisms.composite.sampled_attribute import SampledAttribute
from tests.support.enumeration.enumeration import Law, distribution
from tests.support.enumeration.seeded import SeededRandomness

SIZES: Final = (2, 3, 4)
TIMES: Final = 6.5  # standard errors; a normal number is farther away with 8e-11


def made(epsilon: str, sizes: tuple[int, ...] = SIZES) -> SampledAttribute:
    return SampledAttribute(epsilon, sum(sizes), starts=starts_of(sizes))


def chances(mechanism: SampledAttribute, law: Law) -> tuple[list[Fraction], list[Fraction]]:
    """Return the chance that each attribute is drawn, and that each item is supported."""
    drawn = [Fraction(0)] * len(mechanism.sizes)
    supported = [Fraction(0)] * mechanism.domain_size
    for payload, chance in law.pmf.items():
        assert isinstance(payload, bytes)
        items = list(mechanism.supports(payload))
        places = [sum(first.first <= item for first in mechanism.attributes) - 1 for item in items]
        assert len(set(places)) == 1
        drawn[places[0]] += chance
        for item in items:
            supported[item] += chance
    return drawn, supported


@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
@pytest.mark.parametrize("value", [Record((0, 2, 5)), Record((1, 4, 8))])
def test_whatever_the_record_attributes_are_drawn_evenly_and_shares_are_unbiased(
    epsilon: str, value: Record
) -> None:
    mechanism = made(epsilon)

    drawn, supported = chances(mechanism, distribution(partial(mechanism.randomize, value)))

    assert drawn == [Fraction(1, 3)] * 3
    for first, selection in mechanism.attributes:
        p, q = selection.channel.p, selection.channel.q
        for item in range(first, first + selection.domain_size):
            assert (3 * supported[item] - q) / (p - q) == (item in value)


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "2", "4", "8"])
@pytest.mark.parametrize("size", [2, 4, 12, 32])
def test_a_cell_errs_no_more_than_by_either_response_or_unary_encoding(
    epsilon: str, size: int
) -> None:
    """Of one attribute drawn among d, errors are √d times those of all reports about it."""
    (attribute,) = made(epsilon, (size,)).attributes

    least = min(load(name)(epsilon, size).predict(1) for name in ("grr", "oue"))

    assert attribute.mechanism.predict(1) <= least * (1 + 1e-12)
    assert made(epsilon, (size,)).predict(100) == pytest.approx(attribute.mechanism.predict(100))


def test_the_reports_of_attributes_of_any_size_fit_eight_bytes() -> None:
    for epsilon in ("0.01", "0.5", "4"):
        mechanism = made(epsilon, (2, 100, 1_000, 2_000))
        assert mechanism.payload_size <= 8
        assert mechanism.payload_count < 1 << 64


def test_stated_errors_are_those_that_shares_scatter_with() -> None:
    """Seeded: 400 crowds of 300; a variance of so many is off by half of itself with 4e-12."""
    mechanism, n, runs = made("2", (2, 4)), 300, 400
    randomness = SeededRandomness(b"scatter")
    kinds = [Record((0, 2)), Record((0, 3)), Record((1, 3))]
    truth = np.array([2, 1, 1, 2, 0, 0]) * n / 3
    squares, stated = np.zeros(6), np.zeros(6)
    for _ in range(runs):
        column = b"".join(mechanism.randomize(kinds[i % 3], randomness) for i in range(n))
        totals, variances = mechanism.debias(mechanism.tally(column, np), n, np)
        assert [totals[:2].sum(), totals[2:].sum()] == pytest.approx([n, n])
        squares += (totals - truth) ** 2 / runs
        stated += variances / runs

    assert squares == pytest.approx(stated, rel=0.5)
    assert squares.sum() == pytest.approx(stated.sum(), rel=0.25)
