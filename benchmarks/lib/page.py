"""The files that benchmarks read and write: real data, and pages with tables between marks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
PAGES: Final = ROOT / "docs"
DEMO: Final = ROOT / "collector" / "demo" / "data"
AGES: Final = DEMO / "age_income.csv"


def write(path: Path, **parts: str) -> None:
    """Put each text between the two marks ``<!-- name -->`` of its name, on the page at *path*.

    Raises:
        ValueError: The page does not have these marks.
    """
    page = path.read_text(encoding="utf-8")
    for name, text in parts.items():
        if page.count(mark(name)) != 2:
            raise ValueError(f"page={path.name}: must have {mark(name)} twice")
        before, _, after = page.split(mark(name))
        page = f"{before}{mark(name)}\n{text}\n{mark(name)}{after}"
    path.write_text(page, encoding="utf-8")


def part(path: Path, name: str) -> str:
    """Return what stands between the marks of *name* on the page at *path*."""
    return path.read_text(encoding="utf-8").split(mark(name))[1]


def mark(name: str) -> str:
    """Return what stands before and after the part called *name*."""
    return f"<!-- {name} -->"


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as Markdown."""
    return "\n".join([head(*heads), *(row(*cells) for cells in rows)])


def named_once(rows: Iterable[Sequence[object]], columns: int) -> Iterator[Sequence[object]]:
    """Yield *rows*, the first *columns* cells blank in those that begin as the row above."""
    above: Sequence[object] = ()
    for cells in rows:
        begin = tuple(cells[:columns])
        yield (*([""] * columns if begin == above else begin), *cells[columns:])
        above = begin


def show(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
    """Print a table line by line, each as soon as it is measured."""
    print(head(*heads), flush=True)
    for cells in rows:
        print(row(*cells), flush=True)


def publish(*pages: tuple[Path, Mapping[str, str]]) -> None:
    """Print the parts of pages, or with ``--write`` put them between their marks."""
    for path, parts in pages:
        if "--write" in sys.argv:
            write(path, **parts)
        else:
            print(*parts.values(), sep="\n\n", end="\n\n")


def head(*names: object) -> str:
    """Return the first two lines of a table."""
    return f"{row(*names)}\n{'|---' * len(names)}|"


def row(*cells: object) -> str:
    """Return a line of a table."""
    return "|" + "".join(f" {cell} |" if cell != "" else " |" for cell in cells)


def verdict(met: bool | None) -> str:
    """Return whether a bar is met, or nothing where there is none."""
    return "" if met is None else "pass" if met else "FAIL"
