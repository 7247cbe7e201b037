"""Which expressions of annotated source are fractions: those whose quotient is exact."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

SAME_TYPE: Final = {"min", "max"}  # of what they are given


def fraction_names(trees: Iterable[ast.Module]) -> set[str]:
    """Return the names that are annotated as fractions wherever *trees* define them.

    Fields, and what functions and properties return.  ``X | None`` and ``tuple[X, X]`` are X.
    """
    kinds: dict[str, set[bool]] = {"Fraction": {True}}
    for tree in trees:
        for name, is_fraction in _kinds(tree):
            kinds.setdefault(name, set()).add(is_fraction)
    return {name for name, kind in kinds.items() if kind == {True}}


@cache
def _kinds(tree: ast.Module) -> frozenset[tuple[str, bool]]:
    return frozenset((name, _is_fraction_type(kind)) for name, kind in _annotated(tree))


def _annotated(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name, returns=ast.expr() as annotation):
                yield name, annotation
            case ast.ClassDef(body=body):
                for field_ in body:
                    match field_:
                        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                            yield name, annotation


def _is_fraction_type(annotation: ast.expr) -> bool:
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    return "Fraction" in names and names <= {"Fraction", "tuple"}


@dataclass
class Fractions:
    """What is known to be a fraction inside of one function."""

    known: set[str]
    local: Mapping[str, bool] = field(default_factory=dict)

    def of(self, function: ast.FunctionDef) -> Fractions:
        """Return this with the parameters and variables of *function*, in order of assignment."""
        local: dict[str, bool] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.arg):
                local[node.arg] = node.annotation is not None and _is_fraction_type(node.annotation)
        inner = Fractions(self.known, local)
        for target, value in _assignments(function):
            for name, found in inner._bound(target, value):
                local[name] = local.get(name, True) and found
        return inner

    def holds(self, node: ast.expr) -> bool:
        """Whether *node* is surely a fraction."""
        match node:
            case ast.Name(id=name):
                return self.local.get(name, False)
            case ast.Attribute(attr=name):
                return name in self.known
            case ast.Call(func=ast.Name(id=name), args=args) if name in SAME_TYPE:
                return bool(args) and all(map(self.holds, args))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return name in self.known
            case ast.BinOp(left=left, op=ast.Pow()):
                return self.holds(left)
            case ast.BinOp(left=left, right=right):
                return self.holds(left) or self.holds(right)
            case ast.UnaryOp(operand=operand):
                return self.holds(operand)
            case ast.IfExp(body=body, orelse=orelse):
                return self.holds(body) and self.holds(orelse)
        return False

    def _bound(self, target: ast.expr, value: ast.expr) -> Iterator[tuple[str, bool]]:
        match target, value:
            case ast.Tuple(elts=names), ast.Tuple(elts=parts) if len(names) == len(parts):
                for name, part in zip(names, parts, strict=True):
                    yield from self._bound(name, part)
            case ast.Tuple(elts=names), _:
                for name in names:
                    yield from self._bound(name, value)
            case ast.Name(id=name), _:
                yield name, self.holds(value)


def _assignments(function: ast.FunctionDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    found = [n for n in ast.walk(function) if isinstance(n, ast.Assign | ast.NamedExpr)]
    for node in sorted(found, key=lambda n: (n.lineno, n.col_offset)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            yield target, node.value
