"""docs/operate/poisoning.md and its tables hold what the command prints."""

from __future__ import annotations

import re
from math import sqrt
from pathlib import Path

from benchmarks.accuracy.poisoning import (
    BEST,
    EPSILONS,
    EXACT,
    PROTOCOLS,
    SHARES,
    TARGETS,
    fakes_of,
)
from client_sdk.mechanisms import FrequencyOracle, load
from tests.support.enumeration.seeded import SeededRandomness

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "operate/poisoning.md").read_text("utf-8")
TABLES = (DOCS / "evidence/tables/poisoning.md").read_text("utf-8")


def test_every_simulated_gain_is_within_five_standard_errors_of_the_stated_one() -> None:
    """Law: 54 cells, drawn anew by every run; a run passes 5 with a chance below 1e-4."""
    cells = re.findall(r"\(([+-][\d.]+) s\.e\.\)", TABLES)

    assert len(cells) == 3 * len(PROTOCOLS) * len(EPSILONS[:3])
    assert max(abs(float(cell)) for cell in cells) < 5


def test_the_page_states_what_attacks_on_four_items_are_found_from_the_first_day() -> None:
    """Law: 5 % of fakes of 100,000 reports in at least 95 % of epochs, where the page says so."""
    rows = [line.strip("| ").split(" | ") for line in TABLES.splitlines() if "| steep |" in line]
    rates = {  # of four targets, the second of the counts
        tuple(row[:3]): float(row[-1].split(" %")[0].split(", ")[1])
        for row in rows
        if "," in row[-1]
    }

    assert len(rows[0]) == 4 + len(SHARES)
    assert {key for key, rate in rates.items() if rate >= 95} == {
        ("grr", "64", "best"),
        ("oue", "64", "unpadded"),
        ("hadamard", "64", "best"),
        ("sampled_item", "64", "best"),
        ("pgr", "64", "best"),
    }
    assert {key for key, rate in rates.items() if rate <= 5} == {
        ("grr", "16", "best"),
        ("oue", "64", "exact"),
        ("sue", "64", "best"),
        ("sue", "64", "exact"),
    }


def test_exactly_padded_fakes_support_as_many_items_as_honest_reports_on_average() -> None:
    """Law: the sum of 5,000 draws is within 6.2 standard errors (1e-9); nearest padding is not."""
    oracle, m, chance = load("oue")("1", 64), 5_000, SeededRandomness(b"padding")
    assert isinstance(oracle, FrequencyOracle)
    p, q = float(oracle.channel.p), float(oracle.channel.q)

    def off(attack: str) -> float:
        ones = fakes_of(oracle, attack, TARGETS, m, chance).sum()
        return abs(float(ones) - m * (p + 63 * q)) / (0.5 * sqrt(m))

    assert off(EXACT) <= 6.2
    assert off(BEST) > 6.2
