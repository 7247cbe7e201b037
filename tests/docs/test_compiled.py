"""The page for devices in any language: types, keys and version are those of the code."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Final

import pytest

from benchmarks.tables.compiled_schema import PLACE, schema
from client_sdk.mechanisms import load, names
from client_sdk.registry.compiled import VERSION
from client_sdk.registry.keys import FILE, METRIC, SPENT, Key
from client_sdk.registry.metric import MEANING
from client_sdk.registry.types import kinds
from tests.docs.pages import flowing, text_of

PAGE: Final = "docs/design/compiled-registry.md"


def draws_of(name: str) -> str:
    """Return the paragraph on the draws of mechanism *name*, from its module's docstring."""
    mechanism = load(name)
    text = (inspect.getdoc(import_module(mechanism.__module__)) or "").partition("\nDraws: ")[2]
    return " ".join(text.partition("\n\n")[0].split()).replace("``", "`")


def test_the_example_of_the_page_is_what_its_file_says() -> None:
    assert f"For `grr`: *{draws_of('grr')}*" in flowing(PAGE)


@pytest.mark.parametrize("name", names())
def test_a_mechanism_tells_how_it_draws_by_each_of_its_constants(name: str) -> None:
    line = draws_of(name)
    written_otherwise = {"exponential": "weight", "rappor": "rates", "padding_sampling": "flip"}

    told = [constant for constant in load(name).constants if constant in line]

    assert told == list(load(name).constants) or written_otherwise[name] in line


def test_the_page_tells_what_a_value_of_every_type_becomes() -> None:
    rows = [line.split("|")[1] for line in text_of(PAGE).splitlines() if line.startswith("| `")]
    types = {word.strip(" `") for row in rows for word in row.split(",")}

    assert types == {name for name, kind in kinds().items() if kind.__module__.startswith("client")}


def test_the_schema_is_what_the_table_of_keys_gives() -> None:
    assert PLACE.read_text("utf-8") == schema()


@pytest.mark.parametrize(
    ("file", "name", "keys"),
    [("read", "SHAPE", FILE), ("metric", "ENTRY", METRIC), ("metric", "SPENT", SPENT)],
)
def test_the_typescript_sdk_reads_the_same_keys(
    file: str, name: str, keys: tuple[Key, ...]
) -> None:
    source = text_of(f"client_sdk_ts/src/registry/{file}.ts").split(f"const {name} = ")[1]
    kinds_read = "".join(re.findall('"(.*?)"', source.partition(");")[0]))

    assert kinds_read.split() == [f"{key.name}:{key.compiled}" for key in keys if key.compiled]


def test_the_typescript_sdk_takes_the_same_keys_for_the_meaning() -> None:
    source = text_of("client_sdk_ts/src/registry/metric.ts").split("const MEANING = ")[1]

    read = re.findall(r'"(\w+)"', source.partition(";")[0])

    assert read == [key for key in MEANING if key not in ("mechanism", "otherwise")]


def test_the_page_names_the_version_of_the_format() -> None:
    assert f"`hearsay_registry` other than {VERSION}" in flowing(PAGE)
