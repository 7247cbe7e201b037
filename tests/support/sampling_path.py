"""Which functions lie on the sampling path, and what in them would be inexact: an ast lint.

The path begins at ``randomize`` and at every function of ``client_sdk/randomness.py``, and takes in
whatever function of the given sources is mentioned by name.  That is more than is ever called,
which errs on the strict side.  debias, predict and their like are exempt because nothing on the
path mentions them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

ROOT: Final = "randomize"
EXACT_MATH: Final = {
    "ceil",
    "floor",
    "gcd",
    "lcm",
    "comb",
    "perm",
    "isqrt",
}  # exact on int and Fraction
FORBIDDEN_NAMES: Final = {"float", "complex", "random", "numpy", "np", "secrets", "cmath"}


def path_functions(sources: Mapping[str, str], roots: Iterable[str]) -> dict[str, ast.FunctionDef]:
    """Return the functions reached from *roots*, as ``file:name``."""
    functions = {
        f"{file}:{node.name}": node
        for file, text in sources.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    }
    reached: dict[str, ast.FunctionDef] = {}
    todo = set(roots)
    done: set[str] = set()
    while todo:
        wanted = todo.pop()
        done.add(wanted)
        for place, node in functions.items():
            if node.name == wanted:
                reached[place] = node
                todo |= set(_mentioned(node)) - done
    return reached


def faults_on_path(sources: Mapping[str, str], roots: Iterable[str]) -> dict[str, list[str]]:
    """Return what is inexact in every function reached from *roots*: nothing, if all is well."""
    reached = path_functions(sources, roots)
    return {place: found for place, node in reached.items() if (found := inexact(node))}


def inexact(function: ast.FunctionDef) -> list[str]:
    """Return what in the body of *function* is not integer or fraction arithmetic."""
    return [fault for statement in function.body for fault in _faults(statement)]


def _faults(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        match node:
            case ast.Constant(value=float() | complex() as number):
                yield f"float literal {number}"
            case ast.Attribute(value=ast.Name(id="math"), attr=name) if name not in EXACT_MATH:
                yield f"math.{name}"
            case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_NAMES:
                yield f"call of {name}"
            case ast.Attribute(value=ast.Name(id=name)) if name in FORBIDDEN_NAMES:
                yield f"use of {name}"
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield f"import of {names[0].name}"


def _mentioned(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
