"""Run benchmarks by name: ``python -m benchmarks NAME ... [--write]``; without one, list them."""

from __future__ import annotations

import ast
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

# As the command ``hearsay`` does, before numpy is loaded: times are those of the server.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

HERE: Final = Path(__file__).parent
ROOMS: Final = {
    "accuracy": "How close estimates come, and how often intervals hold the truth",
    "speed": "What things cost: processor time, waiting, memory, bytes",
    "peers": "Ours beside the libraries that others use",
    "tables": "Tables of the pages that are computed, not measured",
}
USAGE: Final = """usage: python -m benchmarks NAME ... [--write]

--write puts the tables of answers, looks, peers, questions, rough, sdk_costs and typescript into
their pages, operate_pages into theirs, and compiled_schema into its file.
"""


def rooms() -> dict[str, str]:
    """Return the room of every benchmark: what lies in a room is its list."""
    return {path.stem: room for room in ROOMS for path in sorted((HERE / room).glob("[!_]*.py"))}


def summary(name: str) -> str:
    """Return the first line of a benchmark's docstring; nothing of it is imported."""
    source = (HERE / rooms()[name] / f"{name}.py").read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def listing() -> str:
    """Return the usage and a line a benchmark, by room."""
    lines = [USAGE]
    for room, subject in ROOMS.items():
        names = [name for name, where in rooms().items() if where == room]
        lines += [f"{subject}:", *(f"  {name:16} {summary(name)}" for name in names), ""]
    return "\n".join(lines)


def main(words: list[str]) -> None:
    """Run what *words* name, or list what there is; flags are read by the benchmarks."""
    names = [word for word in words if not word.startswith("-")]
    unknown = sorted(set(names) - set(rooms()))
    if unknown:
        raise SystemExit(f"benchmarks={', '.join(unknown)}: known are {', '.join(rooms())}")
    others = sorted({word for word in words if word.startswith("-")} - {"--write", "--help", "-h"})
    if others:
        raise SystemExit(f"option={', '.join(others)}: known are --write and --help")
    if not names or "--help" in words or "-h" in words:
        print(listing())
        return
    for name in names:
        print(f"## {name}\n")
        import_module(f"benchmarks.{rooms()[name]}.{name}").main()
        print()


if __name__ == "__main__":
    main(sys.argv[1:])
