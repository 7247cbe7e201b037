"""Tables of text have columns of equal width, and no blanks at the ends of lines."""

from __future__ import annotations

from collector.core.text_tables import table_lines


def test_columns_are_as_wide_as_their_widest_cell_and_aligned_as_asked() -> None:
    rows = [["name", "ε", "why"], ["a", "10.5", ""], ["longest", "2", "rare"]]

    assert list(table_lines(rows, "<><", indent="  ")) == [
        "  name        ε  why",
        "  a        10.5",
        "  longest     2  rare",
    ]


def test_a_cell_that_looks_like_a_format_is_printed_as_it_is() -> None:
    assert list(table_lines([["{width}", "%s"]], "><")) == ["{width}  %s"]
