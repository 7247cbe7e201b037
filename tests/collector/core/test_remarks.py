"""Remarks are values: known by their code, with words that name no metric."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from string import Formatter
from typing import Final

import msgspec

from collector.core.remarks import WORDS, Code, Remark, remark
from tests.support.loops import in_turn

ROOT: Final = Path(__file__).parents[3] / "collector"
SOURCES: Final = [
    path.read_text("utf-8") for path in sorted(ROOT.rglob("*.py")) if path.name != "remarks.py"
]


def uses_of(code: Code) -> list[ast.Call]:
    """Return the calls in the collector that make a remark of *code*."""
    trees = (ast.parse(text) for text in SOURCES if f"Code.{code.name}" in text)
    calls = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [
        call for call in calls if call.args and ast.unparse(call.args[0]) == f"Code.{code.name}"
    ]


@in_turn("code", Code)
def test_each_code_has_words_and_is_said_somewhere(code: Code) -> None:
    """Law: with the parameters that its words have, and no others where they stand in the call."""
    places = {name for _, name, _, _ in Formatter().parse(WORDS[code]) if name}

    assert set(WORDS) == set(Code)
    assert any(f"Code.{code.name}" in text for text in SOURCES)
    for call in uses_of(code):
        given = {each.arg for each in call.keywords if each.arg}
        is_whole = all(each.arg for each in call.keywords)
        assert not is_whole or places <= given - {"metric", "group"}, ast.unparse(call)


def test_a_remark_is_named_where_it_is_shown_and_not_in_its_text() -> None:
    of_metric = remark(Code.NO_REPORTS, "page")
    of_group = remark(Code.IMPOSSIBLE, "page", "linux", what="a share")

    assert of_metric.text == "no reports for these days"
    assert str(of_metric) == "page: no reports for these days"
    assert of_group.of("Pages").startswith("Pages (linux): impossible")
    assert str(remark(Code.UNEVEN)) == WORDS[Code.UNEVEN]


def test_two_remarks_are_one_if_they_say_the_same_of_the_same() -> None:
    assert len({remark(Code.NO_REPORTS, "page"), remark(Code.NO_REPORTS, "page")}) == 1
    assert remark(Code.NO_REPORTS, "page") != remark(Code.NO_REPORTS, "theme")


def test_a_program_gets_the_code_and_the_text() -> None:
    sent = msgspec.json.encode(remark(Code.NO_REPORTS, "page"))

    assert msgspec.json.decode(sent) == {
        "code": "no_reports",
        "text": "no reports for these days",
        "metric": "page",
    }
    assert msgspec.json.decode(sent, type=Remark) == remark(Code.NO_REPORTS, "page")


def test_no_room_compares_or_takes_apart_what_a_remark_says() -> None:
    """Law: what is done with a remark is done by its code."""
    taken_apart = re.compile(
        r"(warning|remark|note|each)s?\.text\.(partition|split|startswith|endswith|remove\w+|find)"
        r"|in (warning|remark|note|each)s?\.text\b"
    )

    assert [text for text in SOURCES if taken_apart.search(text)] == []
