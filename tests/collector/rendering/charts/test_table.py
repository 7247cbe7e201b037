"""The table of a chart, and what is read off its rows."""

from __future__ import annotations

import csv
from collections.abc import Callable
from io import StringIO
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from collector.analytics.rows import COLUMNS
from collector.rendering.charts.distribution import adjoining, cell_of, edges_of, threshold_of
from collector.rendering.charts.scale import (
    Linear,
    Log,
    is_gap,
    log_ticks,
    nice_ticks,
    ticks,
    usual_step,
)
from collector.rendering.letters import shortened, width_of, wrapped
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
    assert csv_of(rows).endswith("\r\n")
    assert set(COLUMNS) <= set(csv_of([]).split("\r\n")[0].split(","))


def test_a_missing_number_is_empty_in_a_file_and_never_zero() -> None:
    (found,) = read(csv_of([blank("a")]))

    assert (found["value"], found["ci_low"], found["reason"]) == ("", "", REASON)


@pytest.mark.parametrize(
    ("label", "kept"),
    [
        *((label, f"'{label}") for label in ("=1+1", "@sum", "+a", "-a", "+cmd|' /C calc'!A0")),
        *((label, f"'{label}") for label in ("-2+3+cmd|x", "\t=1", "\r=1", " =1")),
        *((label, label) for label in ("-5", "-20-10", "-5–0", "+3", "a=b", 'say "hi", twice')),
        *((label, label) for label in ("a\nb", "a\r\nb", " a ", "ü", "'")),
    ],
)
def test_a_label_that_a_spreadsheet_would_run_is_made_inert_and_no_other(
    label: str, kept: str
) -> None:
    (found,) = read(csv_of([row(label, 0.1, 0.01)]))

    assert found["item"] == kept


def test_a_difference_of_shares_is_told_in_points_and_what_fakes_could_do_in_words() -> None:
    """Law: 8 points more are not 8 % more, and nobody must know what a fake that reverses is."""
    fakes = {"p_value": 0.004, "fakes_to_flip": 1, "influence": 0.022}

    text = table_of([replace(row("a", 0.08, 0.04), **fakes)])

    assert ">8 points<" in text
    assert "1 fake device could reverse it" in text
    assert "1 fake device in 100 could shift it by 2.2 points" in text


def test_a_gap_is_more_than_the_usual_step() -> None:
    step = usual_step([0, 24, 48, 96])

    assert step == 24
    assert is_gap(48, 96, step)
    assert not is_gap(24, 48, step)


@given(st.integers(0, 1_000_000), st.integers(1, 1_000_000), st.integers(2, 12))
def test_ticks_of_time_are_few_and_within_their_ends(low: int, length: int, most: int) -> None:
    found = ticks(low, low + length, most)

    assert len(found) <= most + 1
    assert all(low <= tick.hours <= low + length for tick in found)
    assert all(a.hours < b.hours for a, b in pairwise(found))


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.integers(3, 8))
def test_ticks_reach_over_their_ends_and_are_round(low: float, length: float, most: int) -> None:
    found = nice_ticks(low, low + length, most)

    slack = 1e-6 * (found[1] - found[0])
    assert found[0] <= low + slack
    assert found[-1] >= low + length - slack
    assert 2 <= len(found) <= most + 2


@given(st.floats(1e-6, 1e6), st.floats(1, 1e6))
def test_logarithmic_ticks_reach_over_their_ends(low: float, factor: float) -> None:
    found = log_ticks(low, low * factor)

    assert found[0] <= low * 1.001
    assert found[-1] >= low * factor * 0.999
    assert len(found) <= 20


@given(st.floats(0, 1))
def test_scales_are_undone_by_their_inverse(part: float) -> None:
    line, log = Linear(-3, 8, 400, 20), Log(0.01, 1e4, 30, 600)
    place = 400 - 380 * part

    assert line.at(line.inverse(place)) == pytest.approx(place)
    assert log.at(log.inverse(30 + 570 * part)) == pytest.approx(30 + 570 * part)


@pytest.mark.parametrize(
    ("read_item", "item", "meant"),
    [
        (edges_of, "10–20", (10, 20)),
        (edges_of, "10-20", (10, 20)),
        (edges_of, "-5–0", (-5, 0)),
        (edges_of, "−5..−1", (-5, -1)),
        (edges_of, "[0, 10)", (0, 10)),
        (edges_of, "[0,10)", (0, 10)),
        (edges_of, "1,000–2,000 ms", (1000, 2000)),
        (edges_of, "0.5 to 1.5", (0.5, 1.5)),
        (edges_of, "1e3…1e4", (1000, 10000)),
        (edges_of, "20–10", None),
        (edges_of, "light", None),
        (edges_of, "", None),
        (edges_of, "10", None),
        *((threshold_of, text, 20) for text in ("20", "≤ 20 ms", "10–20")),
        *((threshold_of, "-3.5", -3.5), (threshold_of, "p50", 50), (threshold_of, "never", None)),
        *((cell_of, "3,4", (3, 4)), (cell_of, "0,0", (0, 0)), (cell_of, "3", None)),
        *((cell_of, "a,b", None), (cell_of, "-1,2", None)),
    ],
)
def test_the_numbers_of_an_item_are_read(
    read_item: Callable[[str], object], item: str, meant: object
) -> None:
    """The edges of a bucket, a threshold, and the row and column of a cell."""
    assert read_item(item) == meant


def test_buckets_adjoin_only_if_each_begins_where_one_ends() -> None:
    assert adjoining(["0–10", "10–20"]) == ((0, 10), (10, 20))
    assert adjoining(["0–10", "20–30"]) is None
    assert adjoining(["0–10", "more"]) is None
    assert adjoining([]) is None


@given(st.text(max_size=200), st.floats(10, 300))
def test_a_text_that_is_shortened_or_wrapped_fits(text: str, room: float) -> None:
    assert width_of(shortened(text, 12, room), 12) <= room + 12
    assert all(width_of(line, 11) <= 200 for line in wrapped(text, 11, 200))
