"""The table of docs/ask/shuffled.md is what its command prints, and in the right order."""

from __future__ import annotations

from pathlib import Path

from benchmarks.tables.shuffled_table import CROWDS, EPSILONS, shuffled_table

PAGE = (Path(__file__).parents[3] / "docs" / "ask" / "shuffled.md").read_text(encoding="utf-8")


def test_the_table_of_the_page_is_what_its_command_prints_and_attacks_stay_below_bounds() -> None:
    shown = shuffled_table()

    rows = [line.strip("| ").split(" | ") for line in shown.splitlines()[2:]]
    assert shown in PAGE
    assert len(rows) == len(CROWDS) * len(EPSILONS)
    for row in rows:
        by_hand, any_mechanism, grr, attack, two, attack_on_two = map(float, row[3:])
        assert attack <= grr <= any_mechanism <= by_hand
        assert attack_on_two <= two < any_mechanism
