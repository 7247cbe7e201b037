"""Tables and files say what the chart says: every row, with its interval or its reason."""

from __future__ import annotations

import csv
from io import StringIO

import pytest
from msgspec.structs import replace

from collector.analytics.rows import COLUMNS
from collector.rendering.numbers import POINTS
from collector.rendering.tables import csv_of, table_of
from tests.support.sites.drawing import parsed
from tests.support.sites.gallery import REASON, blank, differences, row, shares


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text)))


def test_a_table_has_a_row_and_a_header_for_each_row() -> None:
    root = parsed(table_of(shares(), "Themes"))

    assert root.findtext("caption") == "Themes"
    names = [cell.text for cell in root.iterfind("tbody/tr/th")]
    assert names == [r.item for r in shares()]
    assert {cell.get("scope") for cell in root.iter("th")} == {"row", "col"}


def test_a_row_without_a_number_shows_its_reason_across_the_numbers() -> None:
    root = parsed(table_of([blank("a")]))

    cells = root.findall("tbody/tr/td")
    assert (cells[0].text, cells[0].get("colspan")) == (REASON, "4")


def test_a_table_shows_the_digits_of_the_interval() -> None:
    root = parsed(table_of([row("a", 0.20134, 0.0034)]))

    cells = [cell.text for cell in root.findall("tbody/tr/td")]
    assert cells[:4] == ["20.1 %", "0.4", "19.7 %", "20.5 %"]


def test_differences_are_shown_in_points() -> None:
    root = parsed(table_of(differences()[:1], unit=POINTS))

    assert root.findtext("tbody/tr/td") == "2.1 points"


def test_rows_beyond_the_limit_of_a_table_are_counted() -> None:
    root = parsed(table_of(shares(), most=4))

    assert len(root.findall("tbody/tr")) == 4
    assert root.findtext("tfoot/tr/td") == f"and {len(shares()) - 4} more"


def test_a_file_holds_all_numbers_exactly() -> None:
    rows = [row("a", 0.1 + 0.2, 1e-17), row({"platform": "linux", "item": "b"}, 2 / 3, 0.1)]

    found = read(csv_of(rows))

    assert [float(r["value"]) for r in found] == [0.1 + 0.2, 2 / 3]
    assert list(found[0]) == ["item", "platform", *COLUMNS]
    assert [r["platform"] for r in found] == ["", "linux"]


def test_a_missing_number_is_empty_in_a_file_and_never_zero() -> None:
    (found,) = read(csv_of([blank("a")]))

    assert (found["value"], found["ci_low"], found["reason"]) == ("", "", REASON)


@pytest.mark.parametrize(
    "label", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3+cmd|x", "\t=1", "\r=1", " =1"]
)
def test_a_label_that_a_spreadsheet_would_run_is_made_inert(label: str) -> None:
    (found,) = read(csv_of([row(label, 0.1, 0.01)]))

    assert found["item"] == f"'{label}"


@pytest.mark.parametrize("label", ["-5", "-5–0", "-5..0", "+3", "a=b", 'say "hi", twice', "a\nb"])
def test_other_labels_are_left_as_they_are(label: str) -> None:
    (found,) = read(csv_of([row(label, 0.1, 0.01)]))

    assert found["item"] == label


def test_a_difference_of_shares_is_told_in_points_and_what_fakes_could_do_in_words() -> None:
    """Law: 8 points more are not 8 % more, and nobody must know what a fake that reverses is."""
    fakes = {"p_value": 0.004, "fakes_to_flip": 1, "influence": 0.022}

    text = table_of([replace(row("a", 0.08, 0.04), **fakes)])

    assert ">8 points<" in text
    assert "1 fake device could reverse it" in text
    assert "1 fake device in 100 could shift it by 2.2 points" in text
