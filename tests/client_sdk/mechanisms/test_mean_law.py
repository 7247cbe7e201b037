"""A mean mechanism reports the position on average, with the variance that it states."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import cast

import numpy as np
import pytest

from client_sdk.mechanisms import MeanMechanism
from client_sdk.mechanisms.numbers._symbols import SymbolReports
from tests.support.enumeration.vectors import Small, every_small, laws

every_mean = every_small(MeanMechanism)


def mean_of(small: Small) -> MeanMechanism:
    """Return the mechanism as the mean mechanism that it is."""
    return cast("MeanMechanism", small.mechanism)


@cache
def farthest(mechanism: MeanMechanism) -> Fraction:
    """Return a bound of how far a report can lie from a position, in grid steps."""
    every = range(256**mechanism.payload_size)
    return max(
        abs(mechanism.decode(payload)) + mechanism.domain_size
        for payload in (number.to_bytes(mechanism.payload_size, "big") for number in every)
        if mechanism.reason(payload) is None
    )


@cache
def sums(small: Small, place: int) -> tuple[Fraction, Fraction]:
    """Return the sums of mass times report and times its square, of the value at *place*."""
    pmf = laws(small)[place].pmf
    whole = math.lcm(*(mass.denominator for mass in pmf.values()))
    parts = [
        (mean_of(small).decode(cast("bytes", r)), m.numerator * (whole // m.denominator))
        for r, m in pmf.items()
    ]
    first, second = sum(x * m for x, m in parts), sum(x * x * m for x, m in parts)
    return Fraction(first) / whole, Fraction(second) / whole


def moments(small: Small, place: int, centre: Fraction) -> tuple[Fraction, Fraction]:
    """Return the mean and mean square of (report - centre), over the mass that was reached."""
    reached = 1 - laws(small)[place].rest
    first, second = sums(small, place)
    return first - centre * reached, second - 2 * centre * first + centre**2 * reached


@every_mean
def test_the_mean_report_is_the_position_up_to_the_mass_not_reached(small: Small) -> None:
    mechanism = mean_of(small)
    reach = farthest(mechanism)

    assert not isinstance(mechanism, SymbolReports) or not any(law.rest for law in laws(small))
    for place, (value, law) in enumerate(zip(small.values, laws(small), strict=True)):
        bias, _ = moments(small, place, value)
        assert abs(bias) <= law.rest * reach
        assert law.rest * reach < Fraction(1, 10_000)


@every_mean
def test_the_variance_of_a_report_is_the_stated_one(small: Small) -> None:
    mechanism = mean_of(small)

    for place, (value, law) in enumerate(zip(small.values, laws(small), strict=True)):
        _, square = moments(small, place, value)
        stated = Fraction(mechanism.variance_of(value))
        unreached = law.rest * farthest(mechanism) ** 2
        assert abs(square - stated) <= unreached + (1 + stated) / 10**9
        assert unreached < Fraction(1, 100)


@every_mean
def test_no_position_has_a_larger_variance_than_the_worst_and_one_comes_close(small: Small) -> None:
    mechanism = mean_of(small)

    found = [mechanism.variance_of(Fraction(i * mechanism.top, 1000)) for i in range(1001)]

    assert 0.99 * mechanism.worst_variance <= max(found)
    assert max(found) <= mechanism.worst_variance * (1 + 1e-12)


@every_mean
def test_debias_states_the_sum_and_a_variance_of_at_most_the_worst(small: Small) -> None:
    mechanism = mean_of(small)
    payloads = [cast("bytes", payload) for payload in laws(small)[1].pmf]

    totals, variances = mechanism.debias(mechanism.tally(b"".join(payloads), np), len(payloads), np)

    assert totals == pytest.approx([float(sum(map(mechanism.decode, payloads)))], abs=1e-9)
    assert 0 < variances[0] <= len(payloads) * mechanism.worst_variance * (1 + 1e-12)


@every_mean
def test_predict_is_the_stated_error_of_the_mean_as_a_part_of_the_range(small: Small) -> None:
    mechanism = mean_of(small)

    predicted = mechanism.predict(100)

    squared = (predicted * mechanism.top) ** 2 * 100
    assert squared == pytest.approx(mechanism.worst_variance)


@every_mean
def test_a_column_of_reports_shifted_by_one_step_is_not_unbiased(small: Small) -> None:
    mechanism = mean_of(small)
    law = laws(small)[0]

    bias, _ = moments(small, 0, small.values[0] - 1)

    assert abs(bias) > law.rest * farthest(mechanism)
