"""docs/registry.md and docs/mechanisms.md hold every key and every mechanism of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.mechanism_table import describe, table
from client_sdk.mechanisms import names
from client_sdk.registry import Registry
from client_sdk.registry_schema import KEYS, TYPES

DOCS = Path(__file__).parents[1] / "docs"
REGISTRY = (DOCS / "registry.md").read_text("utf-8")
MECHANISMS = (DOCS / "mechanisms.md").read_text("utf-8")


def keys_of(heading: str) -> set[str]:
    """Return the keys in the first column of the table below *heading*."""
    section = REGISTRY.split(f"## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_every_row_of_the_table_of_mechanisms_is_what_its_command_prints() -> None:
    """A mechanism may be newer than the page, so that adding one touches no page."""
    printed = table().splitlines()
    shown = [line for line in MECHANISMS.splitlines() if line.startswith("| `")]

    assert len(shown) > 10
    assert [line for line in shown if line not in printed] == []


@pytest.mark.parametrize("name", names())
def test_a_mechanism_is_described_by_its_docstring(name: str) -> None:
    what, source = describe(name)

    assert what
    assert source


@pytest.mark.parametrize("heading", list(KEYS))
def test_every_key_of_a_registry_is_in_the_docs_and_no_other(heading: str) -> None:
    assert keys_of(heading) == KEYS[heading]


def test_every_type_is_in_the_docs() -> None:
    assert [kind for kind in TYPES if f"`{kind}`" not in REGISTRY] == []


def test_the_registry_of_the_docs_has_no_problem() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", REGISTRY, re.DOTALL)

    assert [metric.name for metric in Registry.from_text(text)] == ["theme"]
