"""docs/ask/numbers.md tells the truth: its tables are what the command prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.tables.numbers_table import (
    analytic_sigma,
    classical_sigma,
)

PAGE = (Path(__file__).parents[3] / "docs" / "ask" / "numbers.md").read_text(encoding="utf-8")


def test_the_classical_scale_of_the_worked_example_is_the_one_of_the_page() -> None:
    assert f"= {classical_sigma(1, 1e-5):.2f}. " in PAGE
    assert classical_sigma(1, 1e-5) == pytest.approx(4.84, abs=5e-3)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_the_analytic_scale_is_below_the_classical_one(epsilon: float, delta: float) -> None:
    assert analytic_sigma(epsilon, delta) < classical_sigma(epsilon, delta)
