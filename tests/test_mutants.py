"""Planted bugs are judged rightly, and what is called equivalent is still there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.mutants.__main__ import EQUIVALENT, PROJECT, drawn, identity, report
from tests.mutants.judging import BROKEN, KILLED, SURVIVED, TIMEOUT, Judge
from tests.mutants.places import Mutant, mutants_of
from tests.support.patience import PATIENCE

SOURCE: Final = """
from dataclasses import dataclass
def least(a, b):
    return (a) < (b) and a or b  # ä

def doubled(a):
    return a * 2

def counted(a):
    n = 0
    while n != a:
        n = n + 1
    return n

def unlucky(a):
    if not a:
        raise ValueError
    return a - 0

HIGH = 3  # user units

@dataclass(frozen=True)
class Pair:
    both = zip((), (), strict=True)
"""
TESTS: Final = """
from toy.room.thing import counted, doubled, least, unlucky
def test_least():
    assert (least(1, 2), least(2, 1), least(3, 3)) == (1, 1, 3)
def test_doubled():
    assert doubled(2) == 4
def test_counted():
    assert counted(3) == 3
"""


@pytest.fixture
def mutants(tmp_path: Path) -> dict[str, Mutant]:
    """The bugs of a package of one file with tests, by what becomes of a line."""
    for name, text in (("toy/room/thing.py", SOURCE), ("tests/toy/room/test_thing.py", TESTS)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text, "utf-8")
    return {one.after: one for one in mutants_of(tmp_path, tmp_path / "toy/room/thing.py")}


def test_every_place_of_a_file_is_found(mutants: dict[str, Mutant]) -> None:
    assert set(mutants) == {
        "return (a) <= (b) and a or b  # ä",
        "return (a) < (b) or a or b  # ä",
        "return (a) < (b) and a and b  # ä",
        "return a // 2",
        "return a * 3",
        "n = 1",
        "while n == a:",
        "n = n - 1",
        "n = n + 2",
        "if a:",
        "pass",
        "return a + 0",
        "return a - 1",
    }


@pytest.mark.parametrize(
    ("after", "outcome", "by"),
    [
        ("return (a) <= (b) and a or b  # ä", SURVIVED, ""),  # equal numbers are the same
        ("return a * 3", KILLED, "::test_doubled"),
        ("return a + 0", SURVIVED, ""),
    ],
)
def test_a_bug_is_killed_by_the_test_that_sees_it_and_an_equivalent_one_lives(
    mutants: dict[str, Mutant], tmp_path: Path, after: str, outcome: str, by: str
) -> None:
    verdict = Judge(tmp_path, PATIENCE).verdict(mutants[after])

    assert verdict.outcome == outcome
    assert verdict.by.endswith(by)
    assert (tmp_path / "toy/room/thing.py").read_text("utf-8") == SOURCE


def test_a_bug_without_an_end_is_one_that_is_seen(
    mutants: dict[str, Mutant], tmp_path: Path
) -> None:
    assert Judge(tmp_path, 5.0).verdict(mutants["n = n - 1"]).outcome == TIMEOUT


def test_a_test_that_fails_without_a_bug_judges_none(
    mutants: dict[str, Mutant], tmp_path: Path
) -> None:
    with (tmp_path / "tests/toy/room/test_thing.py").open("a") as file:
        file.write("def test_broken():\n    assert unlucky(0)\n")

    assert Judge(tmp_path, PATIENCE).verdict(mutants["return a + 0"]).outcome == BROKEN


def test_the_same_seed_draws_the_same_bugs_each_once(
    mutants: dict[str, Mutant], tmp_path: Path
) -> None:
    first, again = ([*drawn(tmp_path, ["toy"], 7)] for _ in range(2))

    assert first == again
    assert sorted(one.after for one in first) == sorted(mutants)


def test_the_report_counts_neither_bugs_that_are_none_nor_broken_tests() -> None:
    verdicts = [
        {"file": "a.py", "line": place, "before": "x", "after": f"y{place}", "outcome": outcome}
        for place, outcome in enumerate([KILLED, TIMEOUT, SURVIVED, SURVIVED, BROKEN])
    ]

    text = report(verdicts, {("a.py", "x", "y3"): "why"})

    assert text.splitlines() == [
        "survived a.py:2: x → y2",
        "broken a.py:4: x → y4",
        "2 of 3 bugs died, 66.7%; 1 are none",
    ]


def test_bugs_that_are_called_none_are_still_possible_and_have_a_reason() -> None:
    named = {identity(one): one["why"] for one in json.loads(EQUIVALENT.read_text("utf-8"))}
    files = {file for file, _, _ in named}
    possible = {
        (one.file, one.before, one.after)
        for file in files
        for one in mutants_of(PROJECT, PROJECT / file)
    }

    assert set(named) - possible == set()
    assert all(named.values())
