"""The pages of the docs, and the blocks on them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def text_of(page: str) -> str:
    """Return the text of *page*, a path below the root."""
    return (ROOT / page).read_text(encoding="utf-8")


def flowing(page: str) -> str:
    """Return the text of *page* without its line ends, to look for sentences."""
    return " ".join(text_of(page).split())


def blocks(page: str, language: str = "") -> list[tuple[str, str]]:
    """Return language and text of the blocks of *page*, in its order; only those of *language*."""
    return [block for block in _BLOCK.findall(text_of(page)) if language in ("", block[0])]


def only(page: str, language: str) -> str:
    """Return the text of the one block of *language* on *page*."""
    ((_, text),) = blocks(page, language)
    return text


def commands(page: str) -> list[tuple[str, str]]:
    """Return the commands of *page* that show their output, with it."""
    parts = [text.removeprefix("$ ").partition("\n") for _, text in blocks(page, "console")]
    return [(command, shown) for command, _, shown in parts if shown and "$ " not in shown]
