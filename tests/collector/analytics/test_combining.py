"""Numbers of several definitions of a metric become one, weighted by what each is worth."""

from __future__ import annotations

import pytest

from collector.analytics.combining import combined
from collector.analytics.rows import Findings, Row, empty_row, row_of
from collector.estimate import Estimate, normal_quantile

Z = normal_quantile(0.05)


def found(value: float, error: float, **more: float) -> Findings:
    estimate = Estimate(value, error, value - Z * error, value + Z * error)
    return Findings((row_of({"item": "a"}, estimate, 1_000, 0.05, "share", **more),))


def only(findings: Findings) -> Row:
    (row,) = findings.rows
    return row


def test_the_weights_are_inverse_variances() -> None:
    """0.3 with error 0.01 counts four times as much as 0.5 with error 0.02."""
    row = only(combined([found(0.3, 0.01), found(0.5, 0.02)], 0.05))

    assert row.value == pytest.approx((4 * 0.3 + 0.5) / 5)
    assert row.std_error == pytest.approx((1 / 0.01**2 + 1 / 0.02**2) ** -0.5)
    assert row.ci_high == pytest.approx((row.value or 0) + Z * (row.std_error or 0))
    assert row.n == 2_000


def test_a_definition_without_a_number_adds_nothing() -> None:
    refused = Findings((empty_row({"item": "a"}, 5, 0.05, "share", "not enough reports"),))

    assert only(combined([refused, found(0.3, 0.01)], 0.05)).value == 0.3
    assert only(combined([refused, refused], 0.05)).reason == "not enough reports"


def test_one_definition_is_left_as_it_is() -> None:
    alone = found(0.3, 0.01)

    assert combined([alone], 0.05) is alone


def test_the_p_value_of_a_combined_difference_is_that_of_the_combination() -> None:
    row = only(combined([found(0.02, 0.01, p_value=0.05), found(0.02, 0.01, p_value=0.05)], 0.05))

    assert row.p_value == pytest.approx(0.0047, abs=1e-4)  # 2.83 standard errors


def test_rows_that_one_definition_has_are_kept() -> None:
    other = Findings((row_of({"item": "b"}, Estimate(0.1, 0.01, 0.08, 0.12), 9, 0.05, "share"),))

    assert [row.item for row in combined([found(0.3, 0.01), other], 0.05).rows] == ["a", "b"]
