"""Corrections for many comparisons: exact where the answer is known."""

from __future__ import annotations

import pytest

from collector.estimation.significance import any_of, chi_square_tail, each_of, holm


def test_intervals_of_independent_numbers_hold_together_exactly_as_often_as_asked() -> None:
    """(1 - a)^m = 1 - α."""
    assert (1 - each_of(0.05, 20)) ** 20 == pytest.approx(0.95)
    assert each_of(0.05, 1) == pytest.approx(0.05)
    assert each_of(1e-6, 50_000) == pytest.approx(2e-11, rel=1e-3)


def test_the_smallest_of_many_chances_counts_them_all() -> None:
    """The inverse of the correction of levels."""
    assert any_of(each_of(0.05, 20), 20) == pytest.approx(0.05)
    assert any_of(1.0, 3) == 1


def test_holm_multiplies_by_what_is_left_and_never_falls() -> None:
    """The worked example of a step-down: 3, 2 and 1 times, in order of size."""
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("value", "freedom", "tail"),
    [
        (3.841458820694124, 1, 0.05),
        (18.307038053275146, 10, 0.05),
        (23.20925115895436, 10, 0.01),
        (2.0, 2, 0.36787944117144233),  # e^-1
        (4.0, 4, 3 * 0.1353352832366127),  # e^-2 (1 + 2)
        (60.0, 2, 9.357622968840175e-14),  # e^-30
        (0.0, 3, 1.0),
    ],
)
def test_the_chi_square_tail_agrees_with_tables_and_closed_forms(
    value: float, freedom: int, tail: float
) -> None:
    """Of even degrees the tail is a finite sum; others are in every table."""
    assert chi_square_tail(value, freedom) == pytest.approx(tail, rel=1e-9)


@pytest.mark.parametrize("freedom", [1, 5, 30, 364])
def test_the_chi_square_tail_falls_where_its_two_forms_meet(freedom: int) -> None:
    """Series and fraction agree at the seam, to what a step of 1e-6 explains."""
    below, above = (chi_square_tail(freedom + 2 + step, freedom) for step in (-1e-6, 1e-6))

    assert 0 <= below - above < 1e-6
