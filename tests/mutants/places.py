"""Where a file can be changed by a small bug, and into what.

Left out are changes that no run can show to be wrong.  ``frozen``, ``slots`` and ``kw_only`` of a
class and ``strict`` of ``zip`` forbid what the code does not do; ``show_default`` is how a page of
help looks, and so is a size whose comment says "user units".  Every other number is drawn, since
nothing tells a matter of taste from a limit that is promised.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

_OPERATORS: Final = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"), ast.Or: ("or", "and"),
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
}  # fmt: skip
_DECLARATIONS: Final = ("frozen", "slots", "kw_only", "show_default")
_SIZE: Final = "user units"
_GUARDS: Final = (ast.Raise, ast.Return, ast.Continue, ast.Break)


@dataclass(frozen=True)
class Mutant:
    """A file with one bug: *old* at *start* of its text is *new*."""

    file: str  # below the root of the project
    start: int
    old: str
    new: str
    line: int
    before: str  # the line, and what becomes of it
    after: str

    def planted(self, text: str) -> str:
        """Return the *text* of the file with the bug.

        Raises: ValueError: it is another text.
        """
        end = self.start + len(self.old)
        if text[self.start : end] != self.old:
            raise ValueError(f"{self.file}: has changed since the bug was drawn")
        return text[: self.start] + self.new + text[end:]


def mutants_of(root: Path, file: Path) -> list[Mutant]:
    """Return every bug that can be planted in *file*."""
    text = file.read_text("utf-8")
    name = file.relative_to(root).as_posix()
    return [_mutant(name, text, *change) for change in sorted(set(_changes(text)))]


def rooms(root: Path, packages: Iterable[str]) -> dict[str, list[Path]]:
    """Return the files of each room: a folder of a package, or what lies in the package itself."""
    found: dict[str, list[Path]] = {}
    for package in packages:
        for file in sorted((root / package).rglob("*.py")):
            inner = file.relative_to(root / package).parts
            room = "/".join((package, inner[0])) if len(inner) > 1 else package
            found.setdefault(room, []).append(file)
    return found


def _mutant(file: str, text: str, start: int, end: int, new: str) -> Mutant:
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    before = text[first:last].strip()
    after = (text[first:start] + new + text[end:last]).strip()
    return Mutant(file, start, text[start:end], new, text.count("\n", 0, start) + 1, before, after)


def _changes(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the start and the end of each place, and what stands there instead."""
    tree, at = ast.parse(text), _Offsets(text)
    taste = set(_matters_of_taste(tree, text.splitlines()))
    for node in ast.walk(tree):
        match node:
            case _ if node in taste:
                continue
            case ast.Compare(left, [operator], [right]):
                yield from _between(text, at.end(left), at.start(right), operator)
            case ast.BinOp(left, operator, right):
                yield from _between(text, at.end(left), at.start(right), operator)
            case ast.BoolOp(operator, values):
                for one, other in pairwise(values):
                    yield from _between(text, at.end(one), at.start(other), operator)
            case ast.UnaryOp(ast.Not()):
                yield at.start(node), at.start(node) + len("not "), ""
            case ast.Constant(bool() as value):
                yield at.start(node), at.end(node), str(not value)
            case ast.Constant(int() as value):
                yield at.start(node), at.end(node), str(value + 1)
            case ast.If(body=[guard], orelse=[]) if isinstance(guard, _GUARDS):
                yield at.start(guard), at.end(guard), "pass"


def _matters_of_taste(tree: ast.AST, lines: Sequence[str]) -> Iterator[ast.AST]:
    """Yield the nodes that no run can show to be wrong."""
    for node in ast.walk(tree):
        match node:
            case ast.keyword(name, value) if name in _DECLARATIONS:
                yield value
            case ast.Call(ast.Name("zip")):
                yield from (keyword.value for keyword in node.keywords)
            case ast.AnnAssign() | ast.Assign() if _SIZE in lines[node.lineno - 1]:
                yield from ast.walk(node)


def _between(text: str, start: int, end: int, operator: ast.AST) -> Iterator[tuple[int, int, str]]:
    """Yield the place of an *operator* between two operands, which brackets may surround."""
    if words := _OPERATORS.get(type(operator)):
        pattern = r"\s+".join(map(re.escape, words[0].split()))
        if found := re.search(pattern, text[start:end]):
            yield start + found.start(), start + found.end(), words[1]


class _Offsets:
    """Places of nodes in a text: the tree counts lines, and bytes within them."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self._at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.end_lineno, node.end_col_offset)

    def _at(self, line: int, column: int) -> int:
        before = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(before)
