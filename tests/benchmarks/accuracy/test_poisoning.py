"""Simulated fakes gain what is stated, and the page says what sources and recovery undo."""

from __future__ import annotations

import re
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from benchmarks.accuracy._poisoning_cases import Case, cases
from benchmarks.accuracy.poisoning import (
    BEST,
    EPSILONS,
    EXACT,
    HONEST,
    PROTOCOLS,
    SHARES,
    TARGETS,
    fakes_of,
)
from benchmarks.accuracy.poisoning_recovery import METHODS, recovered
from benchmarks.accuracy.poisoning_sources import KEYS, SEEDS, SHARE, Site, gains, is_as_never_sent
from client_sdk.mechanisms import FrequencyOracle, load
from collector.analytics.postprocess import simplex_l2
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


FIGURES: Final = (Path(__file__).parents[3] / "docs/evidence/tables/poisoning.md").read_text(
    "utf-8"
)
SMALL: Final = [
    replace(case, per_key=400, earlier=0) for case in cases() if "strings" not in case.name
]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_an_excluded_key_takes_its_fakes_with_it_integer_for_integer(case: Case) -> None:
    site, attack = Site(case, 1), next(iter(case.attacks.values()))

    storage, gain = gains(site, attack, spread=False)
    spread, _ = gains(site, attack, spread=True)

    unit, stated = next(iter(case.stated(case, attack, SHARE).items()))
    assert stated is not None
    assert gain[unit] == pytest.approx(stated, rel=0.25)
    assert is_as_never_sent(site, attack, storage)
    assert not is_as_never_sent(site, attack, spread)


def test_the_best_report_gains_more_than_an_honest_one_and_both_pass_intake() -> None:
    for case in SMALL:
        for unit, best in case.stated(case, BEST, SHARE).items():
            honest = case.stated(case, HONEST, SHARE)[unit]
            assert honest is None or (best is not None and best > honest)
    assert {len(set(KEYS)), SEEDS} == {8, 5}


def test_a_constant_that_recovery_subtracts_is_lost_in_its_projection() -> None:
    """So without the targets LDPRecover is norm-sub of shares that are stretched by 1 + η."""
    draw = np.random.default_rng(1)
    for _ in range(50):
        shares, eta = draw.normal(0.02, 0.05, 64), draw.uniform(0, 0.5)

        found = recovered(shares, eta, np.full(64, draw.normal(0, 1)))

        assert found == pytest.approx(simplex_l2((1 + eta) * shares), abs=1e-12)


def rows(heading: str) -> list[list[str]]:
    section = FIGURES.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:1] == "|"]
    return lines[2:]


def test_the_page_says_that_an_exclusion_undoes_what_came_under_one_key() -> None:
    one, every = rows("Fakes under one key"), rows("Fakes spread over all keys")

    names = [case.name for case in cases()]
    assert {line[0] for line in one} == {line[0] for line in every} == set(names)
    runs = SEEDS * sum(len(case.attacks) for case in cases())
    assert f"it had never sent: in {runs} of {runs} runs." in FIGURES
    assert {line[-2] for line in every} == {"0"}


def test_the_page_says_that_recovery_without_the_targets_is_no_better_than_a_projection() -> None:
    table = rows("Recovery by published methods")

    heads = ["mechanism", "fakes", *METHODS]
    assert len(table) == 6
    for line in table:
        errors = {name: float(cell.split(" %")[0]) for name, cell in zip(heads, line, strict=True)
                  if " %, " in cell}  # fmt: skip
        assert all(errors[name] >= errors["norm-sub"] for name in METHODS if "LDPRecover" in name)
