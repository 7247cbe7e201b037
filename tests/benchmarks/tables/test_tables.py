"""Tables of pages: printed to the digit, and in an order that their columns say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from benchmarks.accuracy import (
    accuracy,
    exactness,
    learn_factors,
    poisoning,
    ranges,
    release,
    vectors,
)
from benchmarks.accuracy import poisoning_beginnings as beginnings
from benchmarks.lib.page import head
from benchmarks.tables import numbers_table, shuffled_table
from benchmarks.tables.minimax_table import SLACK, alone, best_of, variance
from benchmarks.tables.numbers_table import analytic_sigma, classical_sigma
from client_sdk.mechanisms.numbers.minimax import DESIGNS
from tests.client_sdk.mechanisms.test_mutation_bank import table as bank
from tests.docs.pages import text_of

ROW: Final = 10  # of DESIGNS, from ε = 2 on
EXACT: Final = 2e-3  # of the variance: a byte may differ on another processor


def test_a_row_of_the_table_is_what_the_program_gives_for_its_ends() -> None:
    """Of another processor's doubles a byte may be rounded otherwise; the error then is as good."""
    (first, width, distances), (last, *_) = DESIGNS[ROW : ROW + 2]

    worst, found, _ = best_of(first, last)

    assert found == width
    for thousandths in (first, last):
        beside = variance(thousandths, width, int(distances, 16)) / alone(thousandths)
        assert beside <= worst * (1 + EXACT)
        assert worst <= SLACK[0]


@pytest.mark.parametrize("distances", [0xFFFF, 0x80FF])
def test_a_design_whose_windows_do_not_rise_is_no_candidate(distances: int) -> None:
    assert variance(1_000, 1, distances) == float("inf")


PAGE = (Path(__file__).parents[3] / "docs" / "ask" / "numbers.md").read_text(encoding="utf-8")


def test_the_classical_scale_of_the_worked_example_is_the_one_of_the_page() -> None:
    assert f"= {classical_sigma(1, 1e-5):.2f}. " in PAGE
    assert classical_sigma(1, 1e-5) == pytest.approx(4.84, abs=5e-3)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-9])
def test_the_analytic_scale_is_below_the_classical_one(epsilon: float, delta: float) -> None:
    assert analytic_sigma(epsilon, delta) < classical_sigma(epsilon, delta)


TABLES: Final = "docs/evidence/tables"
# The draws of fakes that begin are seeded; the suite draws the first line, which is the cheapest.
PRINTED: Final[list[tuple[str, Callable[[], str]]]] = [
    (f"{TABLES}/accuracy.md", accuracy.table),
    (f"{TABLES}/accuracy.md", accuracy.worst),
    ("docs/evidence/accuracy.md", accuracy.worst),
    (f"{TABLES}/exactness.md", exactness.table),
    (f"{TABLES}/mutants.md", bank),
    (f"{TABLES}/ranges.md", ranges.table),
    (f"{TABLES}/release.md", lambda: release.example_table(release.example())),
    (f"{TABLES}/release.md", release.bucket_table),
    ("docs/ask/numbers.md", numbers_table.error_table),
    ("docs/ask/numbers.md", numbers_table.laplace_example),
    ("docs/ask/numbers.md", numbers_table.gauss_table),
    ("docs/ask/shuffled.md", shuffled_table.shuffled_table),
    ("docs/ask/vectors.md", vectors.table),
    ("docs/learn/factors.md", learn_factors.needs),
    ("docs/operate/poisoning.md", lambda: "\n".join(poisoning.worth())),
    ("docs/operate/poisoning.md", lambda: "\n".join(poisoning.means())),
    (
        "docs/operate/poisoning.md",
        lambda: head("earlier epochs", *(case.title for case in beginnings.CASES)),
    ),
    ("docs/operate/poisoning.md", lambda: beginnings.line(beginnings.BEFORE[0])),
    ("docs/operate/poisoning.md", beginnings.number_heads),
    ("docs/operate/poisoning.md", lambda: beginnings.numbers(beginnings.BEFORE[1])),
]


@pytest.mark.parametrize(("page", "printed"), PRINTED)
def test_what_a_command_prints_is_on_its_page(page: str, printed: Callable[[], str]) -> None:
    assert printed() in text_of(page)
