"""docs/evidence/tables/ranges.md tells the truth: its table is what the command prints."""

from __future__ import annotations

from pathlib import Path

from benchmarks.accuracy.ranges import table

PAGE = (Path(__file__).parents[3] / "docs" / "evidence" / "tables" / "ranges.md").read_text(
    encoding="utf-8"
)


def test_the_table_of_ranges_is_what_its_command_prints() -> None:
    """Nothing is drawn, so every digit is held."""
    assert table() in PAGE
