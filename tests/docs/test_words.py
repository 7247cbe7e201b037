"""No identifier of the packages is a word that the glossary replaced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("client_sdk", "collector")
BANNED: Final = {"witness", "ballast", "looking", "denial", "denials", "spending", "balance"}
RIDDLES: Final = {"one", "found", "told", "asked", "made"}  # of things that have a noun
WITHOUT_RIDDLES: Final = ("client_sdk",)
PARTICIPLES: Final = {"Told", "Asked", "Wanted", "Made"}  # no classes; a class is a noun
# Older names that are still to be replaced.  None may be added.
ALLOWED: Final = {
    "ballast", "denial", "looking", "witness",
    "Asked", "Wanted",
}  # fmt: skip
# Words that say nothing of what a variable holds, and the rooms that are free of them.
VAGUE: Final = {"one", "found", "told", "asked", "made"}
FREE_ROOMS: Final = (
    "collector/planning",
    "collector/audit",
    "collector/rendering",
    "collector/operations",
    "collector/query",
    "collector/demo",
    "collector/web",
    "collector/cli",
    "collector/client.py",
)

Name = tuple[str, str]  # "class" or "name", identifier


def names_in(tree: ast.AST) -> Iterator[Name]:
    """Yield the names that *tree* binds: of classes, functions, arguments and variables."""
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name):
                yield "class", name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
                yield "name", name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield "name", name


def is_banned(kind: str, name: str) -> bool:
    """Whether an identifier holds a banned word, or is a class and a participle."""
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    participle = kind == "class" and name.lstrip("_") in PARTICIPLES
    return name not in ALLOWED and (participle or bool(words & BANNED))


def banned_in(source: str) -> list[str]:
    return [name for kind, name in names_in(ast.parse(source)) if is_banned(kind, name)]


def vague_in(source: str) -> list[str]:
    return [name for _, name in names_in(ast.parse(source)) if name.strip("_") in VAGUE]


@pytest.mark.parametrize("room", FREE_ROOMS)
def test_a_variable_is_named_after_what_it_holds(room: str) -> None:
    path = ROOT / room
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))

    assert files
    assert [f"{f.relative_to(ROOT)}: {n}" for f in files for n in vague_in(f.read_text())] == []


def test_no_identifier_is_a_banned_word() -> None:
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in [*banned_in(path.read_text("utf-8")), path.stem * is_banned("name", path.stem)]
        if name
    }

    assert len(files) > 100
    assert sorted(found) == []


def riddles_in(source: str) -> list[str]:
    """Return the identifiers that say nothing of what they name."""
    return [name for _, name in names_in(ast.parse(source)) if name.strip("_").lower() in RIDDLES]


def test_no_identifier_is_a_riddle() -> None:
    files = [path for package in WITHOUT_RIDDLES for path in sorted((ROOT / package).rglob("*.py"))]
    riddles = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in riddles_in(path.read_text("utf-8"))
    ]

    assert len(files) > 80
    assert riddles == []


def test_planted_riddles_are_found() -> None:
    """The control of the test above: each kind of name, and no part of a longer word."""
    planted = """
def told(one, *, _asked): FOUND = _asked
for found in made.of(one): self.made = found
"""
    clean = "def one_of(asked_for): told_of = [metric for metric in made]"

    assert sorted(riddles_in(planted)) == ["FOUND", "_asked", "found", "made", "one", "told"]
    assert riddles_in(clean) == []


def test_planted_words_are_found() -> None:
    """The control of the test above: each kind of name, and no part of a longer word."""
    planted = """
class _Made: ...
class WitnessFile: ...
def read_witness(balance, *, denial_of): day_spending = ballast.size
with lent() as told: self.is_looking = told
"""
    clean = "class Teller: ...\ndef rebalanced(told): asked = dispending = told"

    assert sorted(banned_in(planted)) == [
        "WitnessFile", "_Made", "balance", "day_spending", "denial_of", "is_looking",
        "read_witness",
    ]  # fmt: skip
    assert banned_in(clean) == []


def test_planted_vague_names_are_found() -> None:
    planted = "def _found(one, *, told_at): oneself = self.made = [asked for asked in one]"

    assert sorted(vague_in(planted)) == ["_found", "asked", "made", "one"]
