"""docs/ask/numbers.md tells the truth: its tables are what the command prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.tables.numbers_table import (
    analytic_sigma,
    classical_sigma,
    error_table,
    gauss_table,
    laplace_example,
)

PAGE = (Path(__file__).parents[3] / "docs" / "ask" / "numbers.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("table", [error_table, laplace_example, gauss_table])
def test_a_table_of_the_page_is_what_its_command_prints(table: object) -> None:
    assert callable(table)
    assert table() in PAGE


def test_the_classical_scale_of_the_worked_example_is_the_one_of_the_page() -> None:
    assert f"= {classical_sigma(1, 1e-5):.2f}. " in PAGE
    assert classical_sigma(1, 1e-5) == pytest.approx(4.84, abs=5e-3)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_the_analytic_scale_is_below_the_classical_one(epsilon: float, delta: float) -> None:
    assert analytic_sigma(epsilon, delta) < classical_sigma(epsilon, delta)
