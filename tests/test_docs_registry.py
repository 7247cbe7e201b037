"""registry.md and mechanisms.md of docs/ask hold every key and every mechanism of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.tables.mechanism_table import describe, table
from client_sdk.errors import RegistryError
from client_sdk.mechanisms import names
from client_sdk.registry import Registry
from client_sdk.registry_domains import kinds
from client_sdk.registry_schema import known_keys
from tests.support.every_type import FORMS
from tests.support.uploads import COMMON

DOCS = Path(__file__).parents[1] / "docs"
REGISTRY = (DOCS / "ask" / "registry.md").read_text("utf-8")
MECHANISMS = (DOCS / "ask" / "mechanisms.md").read_text("utf-8")


def keys_of(heading: str) -> set[str]:
    """Return the keys in the first column of the table below *heading*."""
    section = REGISTRY.split(f"## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_every_row_of_the_table_of_mechanisms_is_what_its_command_prints() -> None:
    """None is left over and none differs; one may be missing, since a mechanism is two files."""
    section = MECHANISMS.split("## All of them\n")[1].split("\n## ")[0]
    shown = [line for line in section.splitlines() if line[:1] == "|"]

    assert len(shown) > 20
    assert [line for line in shown if line not in table().splitlines()] == []


@pytest.mark.parametrize("name", names())
def test_a_mechanism_is_described_by_its_docstring(name: str) -> None:
    what, source = describe(name)

    assert what
    assert source
    assert not re.search(r"\(below\)|derived below", source)  # a cell is read outside of its file


@pytest.mark.parametrize("heading", list(known_keys()))
def test_every_key_of_a_registry_is_in_the_docs_and_no_other(heading: str) -> None:
    assert keys_of(heading) == known_keys()[heading]


def minimal(form: str) -> dict[str, str]:
    """Return the keys of a metric of a type, of which every one may be required."""
    lines = f"{form}\n{COMMON.format(epsilon=1, min_reports=100, expires='2999-12-31')}"
    given = dict(line.split(" = ", 1) for line in lines.splitlines() if line)
    given |= {"title": '"What it is"', "question": '"Which?"', "every": '"1d"'}
    return {key: value for key, value in given.items() if key not in ("mechanism", "segments")}


def is_whole(keys: dict[str, str]) -> bool:
    rows = "".join(f"{key} = {value}\n" for key, value in keys.items())
    try:
        Registry.from_text(f'schema = 1\napp = "x"\n[metrics.m]\n{rows}')
    except RegistryError:
        return False
    return True


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_docs_name_the_keys_that_a_metric_of_a_type_requires(form: str) -> None:
    keys = minimal(form)
    (common,) = re.findall(r"^Required of every metric are (.*)\.", REGISTRY, re.MULTILINE)
    kind = keys["type"].strip('"')
    (own,) = re.findall(rf"^\| (?:\w+, )*{kind}(?:, \w+)* \|(.*)\|$", REGISTRY, re.MULTILINE)

    assert is_whole(keys)
    required = {key for key in keys if not is_whole({k: keys[k] for k in keys if k != key})}
    assert required == set(re.findall(r"`(\w+)`", common + own))


def test_every_type_is_in_the_docs() -> None:
    shipped = [name for name, kind in kinds().items() if kind.__module__.startswith("client_sdk.")]

    assert [name for name in shipped if f"`{name}`" not in REGISTRY] == []


def test_the_registry_of_the_docs_has_no_problem() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", REGISTRY, re.DOTALL)

    assert [metric.name for metric in Registry.from_text(text)] == ["theme"]
