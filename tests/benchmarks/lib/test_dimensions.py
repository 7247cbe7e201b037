"""Answers by one and two of three dimensions hold every report; the page says how they fare."""

from __future__ import annotations

import re

import pytest

from benchmarks.accuracy.answers import BY, DEVICES, HIGH, LOW, TABLES, measured

LINES = re.search(
    r"<!-- dimensions -->\n(.*?)\n<!-- dimensions -->", TABLES.read_text("utf-8"), re.DOTALL
)


def test_every_question_is_on_the_page_with_all_reports_and_intervals_that_hold() -> None:
    """Each dimension, each two of them and none, on one day and day by day."""
    assert LINES is not None
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in LINES[1].splitlines()[2:]
    ]

    assert [row[0] for row in rows] == 2 * [" × ".join(by) or "nothing" for by in BY]
    for _, _, _, reports, _, held, _ in rows:
        counted, of = reports.split(" of ")
        assert counted == of
        assert LOW <= float(held.removesuffix(" %")) / 100 <= HIGH


@pytest.mark.parametrize(("by", "days"), [(["country", "platform"], 1), (["version"], 3)])
def test_an_answer_holds_every_report_in_the_row_that_its_label_says(
    by: list[str], days: int
) -> None:
    """The benchmark itself holds each row's reports against its label."""
    found = measured(by, days, 2)

    assert found.reports == DEVICES * days
    assert found.together > 0 or by == ["version"]
