"""Numbers of several definitions of a metric become one about all devices that reported."""

from __future__ import annotations

import pytest

from collector.analytics.answer import combined
from collector.analytics.rows import Findings, Row, empty_row, row_of
from collector.core.remarks import Code, remark
from collector.estimation.estimate import Estimate, normal_quantile

Z = normal_quantile(0.05)


def found(value: float, error: float, n: int = 1_000) -> Findings:
    estimate = Estimate(value, error, value - Z * error, value + Z * error)
    return Findings((row_of({"item": "a"}, estimate, n, 0.05, "share"),))


def only(findings: Findings) -> Row:
    (row,) = findings.rows
    return row


def test_each_definition_counts_by_its_reports() -> None:
    """Not by how little it scatters: 3,000 devices at 0.3 and 1,000 at 0.5 are 0.35 of all."""
    row = only(combined([found(0.3, 0.02, 3_000), found(0.5, 0.01, 1_000)], 0.05))

    assert row.value == pytest.approx(0.35)
    assert row.std_error == pytest.approx(((0.75 * 0.02) ** 2 + (0.25 * 0.01) ** 2) ** 0.5)
    assert row.ci_high == pytest.approx(0.35 + Z * (row.std_error or 0))
    assert row.n == 4_000


def test_a_definition_that_has_just_begun_is_left_out_and_said() -> None:
    """A new release must not silence a metric until it has enough reports of its own."""
    refused = Findings((empty_row({"item": "a"}, 5, 0.05, "share", remark(Code.BOUNDS)),))

    row = only(combined([refused, found(0.3, 0.01)], 0.05))

    assert (row.value, row.n) == (0.3, 1_000)
    assert row.note == "without 5 reports under another definition, too few alone"
    assert only(combined([refused, refused], 0.05)).refusal == remark(Code.BOUNDS)


def test_one_definition_is_left_as_it_is() -> None:
    alone = found(0.3, 0.01)

    assert combined([alone], 0.05) is alone


def test_rows_that_one_definition_has_are_kept() -> None:
    other = Findings((row_of({"item": "b"}, Estimate(0.1, 0.01, 0.08, 0.12), 9, 0.05, "share"),))

    assert [row.item for row in combined([found(0.3, 0.01), other], 0.05).rows] == ["a", "b"]
