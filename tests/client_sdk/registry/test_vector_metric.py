"""Vectors in a registry: what is declared, what a value becomes, and what is refused."""

from __future__ import annotations

from array import array
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.mechanisms import UNIT
from tests.support.device.registries import VECTOR
from tests.support.enumeration.enumeration import Untouchable
from tests.support.enumeration.populations import metric_of


@pytest.mark.parametrize(
    "value",
    [
        [0.5, -0.25, 0],
        (0.5, Decimal("-0.25"), Fraction(0)),
        array("d", [0.5, -0.25, 0]),
        np.array([0.5, -0.25, 0]),
        [np.float32(0.5), -0.25, np.int64(0)],
    ],
)
def test_any_sequence_of_numbers_is_a_vector(value: Any) -> None:
    assert metric_of(VECTOR).encode(value) == (UNIT // 2, -UNIT // 4, 0)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3))
def test_whatever_its_length_a_vector_becomes_one_within_the_bound(value: list[float]) -> None:
    """The mechanism takes it: its own check comes before any draw."""
    for norm in ("l2", "max"):
        of = metric_of(VECTOR, norm=f'"{norm}"', bound="2.5")
        encoded = of.encode(value)
        with pytest.raises(AssertionError, match="drawn"):
            of.mechanism.randomize(encoded, Untouchable())
        if norm == "max" or sum(Fraction(x) ** 2 for x in value) <= Fraction("6.25"):
            kept = [min(max(Fraction(x), Fraction("-2.5")), Fraction("2.5")) for x in value]
            numbers: Any = of.domain.as_given(encoded)
            off = [abs(a - Fraction(b)) for a, b in zip(kept, numbers, strict=True)]
            assert max(off) < Fraction("2.5") / UNIT


def test_a_longer_vector_counts_as_that_of_the_bound_in_its_direction() -> None:
    assert metric_of(VECTOR).encode([30, 40, 0]) == (UNIT * 3 // 5, UNIT * 4 // 5, 0)
    assert metric_of(VECTOR, norm='"max"').encode([30, -40, 0.5]) == (UNIT, -UNIT, UNIT // 2)


def test_a_report_of_a_cube_reaches_its_corners_by_the_diagonal() -> None:
    """With ``max`` no vector is cut to the ball, and errors are those of the longest."""
    named = {"mechanism": '"codebook"'}
    ball, cube = (
        metric_of(VECTOR, **named).mechanism,
        metric_of(VECTOR, **named, norm='"max"').mechanism,
    )

    assert cube.predict(1) == pytest.approx(3**0.5 * ball.predict(1))
    assert (ball.parameters["cube"], cube.parameters["cube"]) == (0, 1)
