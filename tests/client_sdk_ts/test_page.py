"""docs/guide/typescript.md and the README: what they show compiles, against an example's module."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from client_sdk.registry import Registry
from tests.client_sdk_ts.test_codegen import faults, project
from tests.docs.pages import ROOT, blocks
from tests.support.node import Node

PAGE: Final = "docs/guide/typescript.md"
PAGES: Final = (PAGE, "README.md")


def test_every_program_of_the_page_compiles(node: Node, tmp_path: Path) -> None:
    """So does each mark of a wrong line: the compiler refuses one without an error."""
    programs = [text for page in PAGES for language, text in blocks(page) if language == "ts"]
    registry = Registry.from_file(ROOT / "examples" / "metrics.toml")

    folder = project(
        tmp_path, registry, **{f"block_{number}": text for number, text in enumerate(programs)}
    )

    assert len(programs) >= 4
    assert faults(node, folder) == []


def test_a_wrong_program_on_the_page_would_be_found(node: Node, tmp_path: Path) -> None:
    registry = Registry.from_file(ROOT / "examples" / "metrics.toml")
    program = next(text for language, text in blocks(PAGE) if language == "ts")

    folder = project(tmp_path, registry, wrong=program.replace('"dark"', '"drak"'))

    assert [name for name, _ in faults(node, folder)] == ["wrong.ts"]


def test_the_program_of_the_readme_has_five_lines() -> None:
    (text,) = [text for language, text in blocks("README.md") if language == "ts"]

    assert sum(bool(line) for line in text.splitlines()) == 5
