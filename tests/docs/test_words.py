"""No identifier and no sentence of the packages has a word that the glossary replaced."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jinja2 import Environment, nodes

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("client_sdk", "collector")
BANNED: Final = {"witness", "ballast", "looking", "denial", "denials", "spending", "balance"}
VAGUE: Final = {"one", "found", "told", "asked", "made"}  # whole names: the thing has a noun
PARTICIPLES: Final = {  # no classes; a class is a noun
    "Accepted", "Ended", "Estimated", "Held", "Joined", "Kept", "Peeled", "Pooled", "Wanted",
}  # fmt: skip

ROOMS: Final = (  # whose prose is plain; a room that becomes so joins them
    "client_sdk/core", "client_sdk/integrations", "client_sdk/learning", "client_sdk/registry",
    "client_sdk/wire", "client_sdk_ts/src", "collector/audit", "collector/intake",
    "collector/rendering", "collector/serving", "collector/storage", "collector/testing",
    "collector/web", "collector/worker", "collector/workspace",
)  # fmt: skip
PROSE: Final = {".html", ".js", ".lua", ".py", ".ts"}  # suffixes of files with sentences
LITERARY: Final = re.compile(r"\b(?:told|whoever|nobody|that of|those of)\b", re.IGNORECASE)
BREAK: Final = re.compile(r"\n\s*(?:#|//|\*|--)?\s*")  # of a line, within a comment or a docstring

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


def vague_in(template: str) -> list[str]:
    """Return the vague names that *template* binds or reads."""
    tree = Environment(autoescape=True).parse(template)
    return [each.name for each in tree.find_all(nodes.Name) if is_banned("name", each.name)]


def literary_in(source: str) -> list[str]:
    return LITERARY.findall(BREAK.sub(" ", source))


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


def test_no_name_in_a_template_is_vague() -> None:
    templates = sorted((ROOT / "collector/web/templates").glob("*.html"))
    found = {
        f"{path.name}: {name}" for path in templates for name in vague_in(path.read_text("utf-8"))
    }

    assert len(templates) > 20
    assert sorted(found) == []


def test_planted_names_in_a_template_are_found() -> None:
    planted = """{% for one in told %}{{ one.metric }}{% endfor %}
{% set asked = 1 %}{% macro row(found) %}{{ cell.made }}{% endmacro %}"""
    clean = "{% for metric in metrics %}<p class='one'>told {{ metric.found }}</p>{% endfor %}"

    assert sorted(vague_in(planted)) == ["asked", "found", "one", "one", "told"]
    assert vague_in(clean) == []


def test_no_sentence_of_a_plain_room_is_literary() -> None:
    """In docstrings, comments, messages and pages: say who does what, and name things again."""
    files = [
        path for room in ROOMS for path in sorted((ROOT / room).rglob("*")) if path.suffix in PROSE
    ]
    found = [
        f"{path.relative_to(ROOT)}: {words}"
        for path in files
        if (words := literary_in(path.read_text("utf-8")))
    ]

    assert len(files) > 300
    assert found == []


def test_planted_sentences_are_found() -> None:
    planted = [
        '"""Return those of *metrics* that\n    of all are new."""',
        "x = 1  # Whoever asks is told: nobody",
        "/**\n * A time after that\n * of `sent`.\n */",
        "-- that\n-- of a shard",
    ]
    clean = '"""Anyone who asks for those offers is shown that often is not nobody_else."""'

    assert [literary_in(text) for text in planted] == [
        ["those of", "that of"], ["Whoever", "told", "nobody"], ["that of"], ["that of"],
    ]  # fmt: skip
    assert literary_in(clean) == []
