"""No identifier of the packages is a word that the glossary replaced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("client_sdk", "collector")
BANNED: Final = {"witness", "ballast", "looking", "denial", "denials", "spending", "balance"}
VAGUE: Final = {"one", "found", "told", "asked", "made"}  # whole names: the thing has a noun
PARTICIPLES: Final = {  # no classes; a class is a noun
    "Accepted", "Ended", "Estimated", "Held", "Joined", "Kept", "Peeled", "Pooled", "Wanted",
}  # fmt: skip

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
    """Whether an identifier holds a banned word, is a vague one, or is a class and a participle."""
    bare = name.strip("_")
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    is_whole = bare.lower() in VAGUE or (kind == "class" and bare in PARTICIPLES)
    return is_whole or bool(words & BANNED)


def banned_in(source: str) -> list[str]:
    return [name for kind, name in names_in(ast.parse(source)) if is_banned(kind, name)]


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


def test_planted_words_are_found() -> None:
    """The control of the test above: each kind of name, and no part of a longer word."""
    planted = """
class _Made: ...
class WitnessFile: ...
def read_witness(balance, *, denial_of): day_spending = ballast.size
with lent() as told: self.is_looking = told
def _found(one, *, told_at): FOUND = self.made = [asked for asked in one]
"""
    clean = """
class Teller: ...
def one_of(asked_for): rebalanced = dispending = [oneself for oneself in made]
"""

    assert sorted(banned_in(planted)) == [
        "FOUND", "WitnessFile", "_Made", "_found", "asked", "balance", "day_spending",
        "denial_of", "is_looking", "made", "one", "read_witness", "told",
    ]  # fmt: skip
    assert banned_in(clean) == []
