"""docs/operate/poisoning.md and its tables hold what the command prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.accuracy.poisoning import EPSILONS, PROTOCOLS, SHARES, means, worth
from benchmarks.accuracy.poisoning_beginnings import BEFORE, CASES, line
from benchmarks.lib.page import head

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "operate/poisoning.md").read_text("utf-8")
TABLES = (DOCS / "evidence/tables/poisoning.md").read_text("utf-8")


@pytest.mark.parametrize("table", [worth, means])
def test_a_table_that_follows_from_formulas_is_what_its_command_prints(table: object) -> None:
    assert callable(table)

    assert "\n".join(table()) in PAGE


def test_every_simulated_gain_is_within_five_standard_errors_of_the_stated_one() -> None:
    """Law: 54 cells, drawn anew by every run; a run passes 5 with a chance below 1e-4."""
    cells = re.findall(r"\(([+-][\d.]+) s\.e\.\)", TABLES)

    assert len(cells) == 3 * len(PROTOCOLS) * len(EPSILONS[:3])
    assert max(abs(float(cell)) for cell in cells) < 5


def test_the_page_states_what_attacks_on_four_items_are_found() -> None:
    """Law: 5 % of fakes of 100,000 reports in at least 95 % of epochs, where the page says so."""
    rows = [line.strip("| ").split(" | ") for line in TABLES.splitlines() if "| steep |" in line]
    rates = {(row[0], row[1]): row[-1] for row in rows if row[3] == "4"}

    assert len(rows[0]) == 4 + len(SHARES)
    found = {key for key, rate in rates.items() if float(rate.split(" %")[0]) >= 95}
    assert found == {
        ("grr", "best"),
        ("oue", "unpadded"),
        ("hadamard", "best"),
        ("sampled_item", "best"),
        ("pgr", "best"),
    }


def test_the_page_has_what_the_command_prints_of_fakes_that_begin() -> None:
    """The draws are seeded; the suite draws the first line, which is the cheapest."""
    heads = head("earlier epochs", *(case.title for case in CASES))

    assert heads in PAGE
    assert line(BEFORE[0]) in PAGE
