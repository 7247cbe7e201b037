"""Every mechanism in one table: what it is for, when ``auto`` takes it, and what it costs.

Run: ``python -m benchmarks mechanism_table``; docs/ask/mechanisms.md holds the first table and a
test compares it, so a new mechanism needs no line written by hand.  The second has the sources.
"""

from __future__ import annotations

import re
from collections import defaultdict
from fractions import Fraction
from importlib import import_module
from inspect import getdoc
from typing import Final

from benchmarks.lib import page
from client_sdk.mechanisms import (
    ItemMechanism,
    KeyValueMechanism,
    RecordMechanism,
    SetMechanism,
    TextMechanism,
    VectorMechanism,
    load,
    names,
)
from client_sdk.registry.encodings import NUMBERS, Family
from client_sdk.registry.keys import AUTO
from client_sdk.registry.selection import choose, fitting_names

EPSILONS: Final = ("0.5", "1", "2", "4")
FAMILIES: Final[dict[Family, str]] = {
    ItemMechanism: "items",
    SetMechanism: "sets",
    KeyValueMechanism: "key-values",
    TextMechanism: "strings",
    RecordMechanism: "records",
    VectorMechanism: "vectors",
    NUMBERS: "numbers",
}
UNITS: Final[dict[Family, str]] = {
    ItemMechanism: "items",
    SetMechanism: "items of sets",
    KeyValueMechanism: "keys, one held",
    TextMechanism: "bytes",
    RecordMechanism: "items of one attribute",
    VectorMechanism: "coordinates",
    NUMBERS: "grid points",
}
SIZES: Final[dict[Family, tuple[int, ...]]] = {  # items; grid points
    ItemMechanism: (4, 16, 128, 1024, 8192),
    SetMechanism: (16,),
    KeyValueMechanism: (16,),
    TextMechanism: (16,),
    RecordMechanism: (16,),
    VectorMechanism: (16,),
    NUMBERS: (101,),
}
SHOWN: Final = 100  # items or grid points of the columns of costs, at epsilon 1


def table() -> str:
    """Return the table as Markdown."""
    taken = _taken()
    heads = ("name", "what", "of", f"bytes at ε = 1, {SHOWN} items or grid points",
             "steps a fold", "`auto` takes it at")  # fmt: skip
    rows = []
    for name in names():
        mechanism = load(name)("1", SHOWN)
        of = next(what for family, what in FAMILIES.items() if name in fitting_names(family))
        where = "; ".join(taken[name]) or ("–" if mechanism.automatic else "only by name")
        what, _ = describe(name)
        rows.append((f"`{name}`", what, of, mechanism.payload_size, mechanism.fold_steps, where))
    return page.table(heads, rows)


def sources() -> str:
    """Return the table of what each mechanism is taken from, as Markdown."""
    return page.table(("name", "source"), ((f"`{name}`", describe(name)[1]) for name in names()))


def describe(name: str) -> tuple[str, str]:
    """Return the first line and the source from the docstring of the file of mechanism *name*."""
    docstring = getdoc(import_module(load(name).__module__)) or ""
    what = docstring.split("\n\n")[0].replace("\n", " ").split(":")[0].removesuffix(".")
    cited = re.search(r"^Source: +(.*?)(?=^\S|\Z)", docstring, re.DOTALL | re.MULTILINE)
    return what, " ".join(cited[1].split()).removesuffix(".").replace("|", "/") if cited else ""


def _taken() -> dict[str, list[str]]:
    """Return where ``auto`` takes each mechanism."""
    found: dict[str, list[str]] = defaultdict(list)
    for family, sizes in SIZES.items():
        unit = UNITS[family]
        for size in sizes:
            at: dict[str, list[str]] = defaultdict(list)
            for epsilon in EPSILONS:
                at[choose(AUTO, family, Fraction(epsilon), size)[0]].append(epsilon)
            for name, epsilons in at.items():
                found[name].append(f"{size} {unit}, ε {', '.join(epsilons)}")
    return found


def main() -> None:
    """Print both tables."""
    print(table(), sources(), sep="\n\n")
