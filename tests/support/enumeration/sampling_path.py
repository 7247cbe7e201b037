"""Which code lies on the sampling path, and what in it would be inexact: an ast lint.

The path begins at ``randomize`` and at every primitive of ``client_sdk/core/randomness.py``, and
takes in whatever function, and whatever constant of a module or class, is mentioned by name in the
given sources.  That is more than is ever called, which errs on the strict side.  debias, predict
and their like are exempt because nothing on the path mentions them.

What the path may use is listed here; all else is a fault.  So is a quotient of two numbers of which
neither is annotated as a fraction.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import client_sdk
from client_sdk.core.randomness import ByteRandomness

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


ROOT: Final = "randomize"
PRIMITIVES: Final = {name for name in vars(ByteRandomness) if not name.startswith("__")}
DEVICE: Final = Path(client_sdk.__file__).parent
BESIDE: Final = ("core/randomness.py", "registry/longitudinal.py")

EXACT: Final = {  # builtins and classes without floats and without chance
    *(
        "abs",
        "all",
        "any",
        "bool",
        "bytearray",
        "bytes",
        "dict",
        "divmod",
        "enumerate",
        "frozenset",
        "int",
    ),
    *("isinstance", "len", "list", "map", "max", "min", "next", "pow", "range", "reversed", "set"),
    *("sorted", "str", "sum", "super", "tuple", "type", "zip", "Exception"),
    *("Fraction", "Decimal", "Context", "accumulate", "pairwise", "comb", "gcd", "lcm", "isqrt"),
    *("InvalidParameterError", "InvalidValueError", "EntropyError"),
}
EXACT_MEMBERS: Final = {  # by module; math's on int and Fraction
    "math": {"ceil", "floor", "gcd", "lcm", "comb", "perm", "isqrt"},
    "hashlib": {"sha256", "shake_256"},
}
TYPING: Final = {"Callable", "ClassVar", "Final", "Mapping", "TypeAlias", "TypeVar", "cast"}

Node: TypeAlias = ast.FunctionDef | ast.Assign | ast.AnnAssign


class Definition(NamedTuple):
    """A function, or a variable of a module or class, and the names that it mentions."""

    name: str
    node: Node
    mentioned: frozenset[str]


def sources(name: str) -> dict[str, str]:
    """Return the text of every file that the sampling path of mechanism *name* can touch.

    Its own file and those that it imports, what all mechanisms share, and what hands it chance.
    """
    folder = DEVICE / "mechanisms"
    todo = [
        *folder.glob(f"*/{name}.py"),
        *folder.glob("*.py"),
        *folder.glob("*/_[a-z]*.py"),
        *(DEVICE / file for file in BESIDE),
    ]
    found: dict[str, str] = {}
    while todo:
        file = todo.pop()
        if file.name in found:
            continue
        found[file.name] = file.read_text("utf-8")
        todo += [path for path in _neighbours(file) if path.exists() and folder in path.parents]
    return found


def path_nodes(sources: Mapping[str, str], roots: Iterable[str]) -> dict[str, Node]:
    """Return the functions and constants reached from *roots*, as ``file:name``."""
    by_name: dict[str, list[tuple[str, Definition]]] = {}
    for file, text in sources.items():
        for definition in _definitions(text):
            by_name.setdefault(definition.name, []).append((file, definition))
    reached: dict[str, Node] = {}
    todo = set(roots)
    done: set[str] = set()
    while todo:
        wanted = todo.pop()
        done.add(wanted)
        for file, definition in by_name.get(wanted, ()):
            reached[f"{file}:{wanted}"] = definition.node
            todo |= definition.mentioned - done
    return reached


def faults_on_path(sources: Mapping[str, str], roots: Iterable[str]) -> dict[str, list[str]]:
    """Return what is inexact in every place reached from *roots*: nothing, if all is well."""
    defined = {each.name for text in sources.values() for each in _definitions(text)}
    classes = {name for text in sources.values() for name in _classes(text)}
    fractions = Fractions(fraction_names(map(_parsed, sources.values())))
    return {
        place: found
        for place, node in path_nodes(sources, roots).items()
        if (found := list(_faults(node, defined | classes, fractions)))
    }


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def _neighbours(file: Path) -> tuple[Path, ...]:
    return tuple(
        file.parents[node.level - 1].joinpath(*node.module.split(".")).with_suffix(".py")
        for node in ast.walk(_parsed(file.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and node.level and node.module
    )


@cache
def _definitions(text: str) -> tuple[Definition, ...]:
    """Return all functions, and the variables of the module and of its classes."""
    return tuple(Definition(name, node, _mentioned(node)) for name, node in _defined(text))


def _defined(text: str) -> Iterator[tuple[str, Node]]:
    for node in ast.walk(_parsed(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        if not isinstance(node, ast.Module | ast.ClassDef):
            continue
        for each in node.body:
            match each:
                case ast.Assign(targets=[ast.Name(id=name)]):
                    yield name, each
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                    yield name, each


def _mentioned(node: Node) -> frozenset[str]:
    inside = list(ast.walk(node))
    names = {each.id for each in inside if isinstance(each, ast.Name)}
    return frozenset(names | {each.attr for each in inside if isinstance(each, ast.Attribute)})


@cache
def _classes(text: str) -> frozenset[str]:
    found = ast.walk(_parsed(text))
    return frozenset(node.name for node in found if isinstance(node, ast.ClassDef))


def _code(node: Node) -> list[ast.AST]:
    """Return what of *node* runs: a body with the defaults before it, or a value."""
    if isinstance(node, ast.FunctionDef):
        defaults = [*node.args.defaults, *node.args.kw_defaults]
        return [*node.body, *(each for each in defaults if each)]
    return [node.value] if node.value else []


def _local(node: Node) -> Iterator[str]:
    for each in ast.walk(node):
        match each:
            case ast.arg(arg=name) | ast.FunctionDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.ExceptHandler(name=str() as name):
                yield name


def _faults(node: Node, defined: set[str], fractions: Fractions) -> Iterator[str]:
    known = {*defined, *_local(node), *EXACT, *TYPING}
    own = fractions.of(node) if isinstance(node, ast.FunctionDef) else fractions
    for part in _code(node):
        inside = list(ast.walk(part))
        of_module = {id(n.value) for n in inside if isinstance(n, ast.Attribute)}
        for each in inside:
            match each:
                case ast.Constant(value=float() | complex() as number):
                    yield f"float literal {number}"
                case ast.Attribute(value=ast.Name(id=root), attr=name) if root not in known:
                    if name not in EXACT_MEMBERS.get(root, ()):
                        yield f"{root}.{name}"
                case ast.Name(id=name, ctx=ast.Load()) if name not in known:
                    if id(each) not in of_module:
                        yield f"use of {name}"
                case ast.BinOp(left=left, op=ast.Div(), right=right):
                    if not (own.holds(left) or own.holds(right)):
                        yield f"quotient {ast.unparse(each)}"
                case (
                    ast.AugAssign(op=ast.Div())
                    | ast.BinOp(op=ast.Pow(), right=ast.UnaryOp(op=ast.USub()))
                ):
                    yield f"quotient {ast.unparse(each)}"
                case ast.Import(names=names) | ast.ImportFrom(names=names):
                    yield f"import of {names[0].name}"
