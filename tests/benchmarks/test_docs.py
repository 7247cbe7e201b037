"""``docs/accuracy.md`` holds what the commands print."""

from __future__ import annotations

from pathlib import Path

from benchmarks.accuracy import table as ratios
from tests.client_sdk.mechanisms.test_mutation_bank import table as bank

PAGE = (Path(__file__).parents[2] / "docs" / "accuracy.md").read_text("utf-8")


def test_the_table_of_ratios_is_what_its_command_prints() -> None:
    assert ratios() in PAGE


def test_the_table_of_planted_bugs_is_what_its_command_prints() -> None:
    assert bank() in PAGE
