"""The columns of the table of docs/ask/shuffled.md are in the right order."""

from __future__ import annotations

from benchmarks.tables.shuffled_table import CROWDS, EPSILONS, shuffled_table


def test_attacks_stay_below_bounds_at_every_setting() -> None:
    rows = [line.strip("| ").split(" | ") for line in shuffled_table().splitlines()[2:]]

    assert len(rows) == len(CROWDS) * len(EPSILONS)
    for row in rows:
        by_hand, any_mechanism, grr, attack, two, attack_on_two = map(float, row[3:])
        assert attack <= grr <= any_mechanism <= by_hand
        assert attack_on_two <= two < any_mechanism
