"""The page of answers: every verb, number, picture and dimension, and what missed its bar."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from benchmarks.accuracy.answers import (
    BY,
    DEVICES,
    HIGH,
    LOW,
    NEAR,
    PAGE,
    PICTURES,
    TABLES,
    VERBS,
    farthest,
    measured,
    wrapped,
)
from benchmarks.lib.crowds import accidents, dealt, households, long_waits, waits
from benchmarks.lib.questions import Scenario, measure, question
from benchmarks.lib.scenarios import scenarios
from collector.analytics.verb import names

TEXT = PAGE.read_text(encoding="utf-8")
SECTIONS = VERBS.read_text(encoding="utf-8")
EVERY = scenarios()
MOST_BYTES = 40_000  # of a picture


def section_of(verb: str) -> str:
    (found,) = re.findall(rf"^### {verb}\n(.*?)(?=^##|\Z)", SECTIONS, re.DOTALL | re.MULTILINE)
    return str(found)


def row_of(verb: str) -> list[str]:
    """Return the cells of the line of *verb* in the first table."""
    (line,) = re.findall(rf"^\| \[`{verb}`\].*$", TEXT, re.MULTILINE)
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_every_verb_is_on_the_page() -> None:
    """Two have their tables elsewhere, and are linked."""
    measured_here = {one.verb for one in EVERY}

    assert measured_here | {"heavy_hitters", "vector"} == set(names()), "ask it in scenarios()"
    assert "`heavy_hitters` has [tables" in TEXT
    assert "`vector` is measured [beside" in TEXT


@pytest.mark.parametrize("one", EVERY, ids=[one.verb for one in EVERY])
def test_the_question_of_a_verb_is_on_the_page_and_can_be_asked(one: Scenario) -> None:
    """As the collector reads and plans it."""
    (shown,) = re.findall(r"```json\n(.*?)\n```", section_of(one.verb), re.DOTALL)

    question(json.loads(shown))
    assert shown == wrapped(one.request)


@pytest.mark.parametrize("one", EVERY, ids=[one.verb for one in EVERY])
def test_the_farthest_row_is_what_the_command_prints(one: Scenario) -> None:
    """To the digit: the seed is fixed."""
    assert farthest(measure(one, 1)) in section_of(one.verb)


@pytest.mark.parametrize("one", EVERY, ids=[one.verb for one in EVERY])
def test_a_picture_stands_alone_and_is_small(one: Scenario) -> None:
    """It is well-formed, has its own light and dark colours, and is on the page."""
    path = PICTURES / f"{one.verb}.svg"
    text = path.read_text(encoding="utf-8")

    assert ElementTree.fromstring(text).tag.endswith("svg")  # noqa: S314  # our own
    assert "light-dark(" in text
    assert len(text.encode()) <= MOST_BYTES
    assert f"](../../images/answers/{one.verb}.svg)" in section_of(one.verb)


def test_what_misses_a_bar_is_named() -> None:
    """An error more than NEAR off the predicted one stands in the sentence below the table."""
    ratios = {one.verb: row_of(one.verb)[-1] for one in EVERY}
    off = [
        f"`{verb}` ({ratio})"
        for verb, ratio in ratios.items()
        if ratio != "no error" and abs(float(ratio) - 1) > NEAR
    ]

    (sentence,) = re.findall(r"^Outside 94 to 96 %.*$", TEXT, re.MULTILINE)
    assert sentence.endswith(f"predicted one: {', '.join(off) or 'none'}.")


def test_the_crowds_are_those_of_the_files() -> None:
    """Counts of the page are those of the data's README."""
    assert households().sum() == 48_842
    assert accidents().sum() == 140_029
    assert waits().sum() == sum(int(held.sum()) for held in long_waits().values()) == 48_604
    assert dealt(4).any(axis=1).all()


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
