"""What a verb is like stands in its own file: nothing else tells verbs apart by their names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from collector.analytics import verb
from collector.analytics.verb import names
from tests.support.loops import in_turn

ROOT: Final = Path(__file__).parents[3] / "collector"
HOME: Final = ROOT / "analytics"
FILES: Final = sorted(
    path
    for kind in ("*.py", "*.html")
    for path in ROOT.rglob(kind)
    if path != HOME / "verb.py" and path.parent != HOME / "verbs"
)
CONSTANTS: Final = {
    name for name, value in vars(verb).items() if isinstance(value, str) and value in names()
}
# A word that is the name of a verb and of something else; those of the client and of the commands
# are the verb of a question that names none, which they show without loading the analyses.
OTHERS: Final = {
    "analytics/answer.py": {"mean"},  # the item of a mean
    "analytics/poisoning/findings.py": {"mean"},
    "analytics/rows.py": {"map"},  # a kind of chart
    "cli/query.py": {"estimate"},
    "cli/root.py": {"range"},  # an option of several commands
    "cli/sources.py": {"estimate"},  # a key of JSON and a column
    "client.py": {"estimate"},
    "demo/truth_table.py": {"estimate"},  # a column
    "learning/rounds.py": {"variance"},  # a number of a round
    "planning/codegen.py": {"sum"},  # an aggregation on the device
    "planning/compilation.py": {"segments"},  # a key of the registry
    "query/release/publish.py": {"histogram"},  # a kind of release
    "query/request.py": {"range"},
    "rendering/charts/frame.py": {"lift"},  # what a row measures
    "testing/fleet.py": {"estimate"},
    "web/api/query.py": {"range", "segments"},
    "web/pages/ask.py": {"segments"},  # a name in the template
    "web/pages/choices.py": {"range"},
    "web/pages/compare.py": {"compare"},  # the page
    "web/pages/fields.py": {"mean"},  # what a line follows if it is no quantile
    "web/pages/layout.py": {"range"},
    "web/pages/metric_panels.py": {"adoption"},  # a part of the page
    "web/pages/panels.py": {"range"},
    "web/templates/ask.html": {"range"},  # names of fields and classes
    "web/templates/boards.html": {"range"},
    "web/templates/metric.html": {"mean"},
    "web/templates/notes.html": {"range"},
    "web/templates/parts.html": {"range"},
    "web/templates/plan.html": {"range"},
    "web/templates/share.html": {"range"},
}


def literals_of(path: Path) -> set[str]:
    """Return the texts of a file that are the name of a verb and nothing else."""
    text = path.read_text("utf-8")
    if path.suffix == ".html":
        return {word for word in re.findall(r"[\"'](\w+)[\"']", text) if word in names()}
    texts = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and text in names()}


def told_apart(source: str) -> Iterator[str]:
    """Yield the constants of verbs that *source* compares with, or keeps a table by."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            inside = node.comparators
        elif isinstance(node, ast.Dict):
            inside = [key for key in node.keys if key]
        else:
            continue
        used = {each.id for part in inside for each in ast.walk(part) if isinstance(each, ast.Name)}
        yield from used & CONSTANTS - {"ESTIMATE"}  # which is to have named none


@in_turn("path", FILES)
def test_no_file_but_its_own_names_a_verb(path: Path) -> None:
    place = path.relative_to(ROOT).as_posix()

    assert literals_of(path) == OTHERS.get(place, set())
    if path.suffix == ".py":
        assert not list(told_apart(path.read_text("utf-8")))


@pytest.mark.parametrize(
    "source",
    ["x = verb == TREND", "x = verb in (COMPARE, LIFT)", "TITLES = {CDF: 'Curve'}"],
)
def test_a_planted_test_for_a_verb_is_found(source: str) -> None:
    assert list(told_apart(source))


def test_the_verbs_that_are_asked_by_name_are_verbs() -> None:
    assert {"ESTIMATE", "TREND", "COMPARE"} <= CONSTANTS
    assert {getattr(verb, name) for name in CONSTANTS} <= set(names())
