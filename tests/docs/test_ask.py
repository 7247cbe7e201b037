"""docs/ask: its pages hold what the code has, and what they ask is answered as they say."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.tables.mechanism_table import describe, table
from client_sdk.core.errors import RegistryError
from client_sdk.mechanisms import names
from client_sdk.registry import Registry
from client_sdk.registry.keys import METRIC, Key
from client_sdk.registry.registry import known_keys
from client_sdk.registry.types import kinds
from collector.analytics.suppression import shortage, suppress_imprecise
from collector.analytics.verb import Slice, VerbQuery, load
from collector.cli.registry import plan_metrics as plan_command
from collector.core.catalog import Catalog
from collector.query import plan, read, run
from tests.docs.pages import ROOT, blocks, only, text_of
from tests.support.crowds.uploads import COMMON
from tests.support.device.every_type import FORMS
from tests.support.device.registries import BOOLEAN, file_with
from tests.support.store.memory_storage import MemoryStorage

COMPARISONS = "docs/ask/comparisons.md"
REGISTRY = text_of("docs/ask/registry.md")
PLAN = text_of("docs/ask/plan.md")
SECTIONS = dict(
    re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text_of(COMPARISONS), re.DOTALL | re.MULTILINE)
)
ASKED = [
    (verb, question)
    for verb, text in SECTIONS.items()
    for question in re.findall(r"```json\n(.*?)```", text, re.DOTALL)
]
NOW = 1_798_000_000.0  # a day at the end of 2026
REPORTS, DEVICES = 10_000, 3_000
STANDARD_ERROR = 140  # devices, of the third count
BOUND = 7  # standard errors; passed by chance with less than 1e-11


def keys_of(heading: str) -> set[str]:
    """Return the keys in the first column of the table below *heading*."""
    section = REGISTRY.split(f"## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_every_row_of_the_table_of_mechanisms_is_what_the_command_prints() -> None:
    """None is left over and none differs; one may be missing, since a mechanism is two files."""
    section = text_of("docs/ask/mechanisms.md").split("## All of them\n")[-1].split("\n## ")[0]
    shown = [line for line in section.splitlines() if line[:1] == "|"]
    printed = table().splitlines()

    assert len(shown) > 20
    assert [line for line in shown if line not in printed] == []


@pytest.mark.parametrize("name", names())
def test_a_mechanism_is_described_by_its_docstring(name: str) -> None:
    what, source = describe(name)

    assert what
    assert source
    assert not re.search(r"\(below\)|derived below", source)  # a cell is read outside of its file


@pytest.mark.parametrize("heading", list(known_keys()))
def test_every_key_of_a_registry_is_in_the_docs_and_no_other(heading: str) -> None:
    assert keys_of(heading) == known_keys()[heading]


@pytest.mark.parametrize("key", [key for key in METRIC if key.table and key.compiled])
def test_the_docs_say_which_keys_are_in_the_digest(key: Key) -> None:
    section = REGISTRY.split("## Keys of a metric\n")[1].split("\n## ")[0]
    (last,) = re.findall(rf"^\| `{key.name}` \|.*\| ([a-z ]+) \|$", section, re.MULTILINE)

    assert (last in ("yes", "as resolved")) is key.in_digest


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
    (common,) = re.findall(r"Required of every metric are ([^.]*)\.", REGISTRY)
    kind = keys["type"].strip('"')
    (own,) = re.findall(rf"^\| (?:\w+, )*{kind}(?:, \w+)* \|(.*)\|$", REGISTRY, re.MULTILINE)

    assert is_whole(keys)
    required = {key for key in keys if not is_whole({k: keys[k] for k in keys if k != key})}
    assert required == set(re.findall(r"`(\w+)`", common + own))


def test_every_type_is_in_the_docs() -> None:
    shipped = [name for name, kind in kinds().items() if kind.__module__.startswith("client_sdk.")]

    assert [name for name in shipped if f"`{name}`" not in REGISTRY] == []


def test_the_registry_of_the_docs_has_no_problem() -> None:
    text = only("docs/ask/registry.md", "toml")

    assert [metric.name for metric in Registry.from_text(text)] == ["theme"]


def test_the_metrics_of_the_page_on_actives_have_no_problem() -> None:
    """Its one whole metric, and its two parts with the same keys around them."""
    page = "docs/ask/actives.md"
    whole = only(page, "toml")
    own = {"type", "every", "epsilon", "show"}
    rest = "\n".join(line for line in whole.splitlines()[1:] if line.split(" ")[0] not in own)
    parts = [text for _, text in blocks(page, "text")]
    texts = [f'[metrics.m{i}]\n{text}\nepsilon = "1"\n{rest}\n' for i, text in enumerate(parts)]

    registry = Registry.from_text('schema = 1\napp = "docs"\n' + "\n".join([whole, *texts]))

    assert [(metric.type, metric.every) for metric in registry] == [
        ("boolean", "28d"),
        ("retention", "once"),
        ("funnel", "28d"),
    ]


@pytest.mark.parametrize(("verb", "question"), ASKED, ids=[verb for verb, _ in ASKED])
def test_a_comparison_of_the_page_is_answered(verb: str, question: str) -> None:
    """It is of the verb of its section, and can be asked of the example's metrics."""
    catalog = Catalog([Registry.from_file(ROOT / "examples" / "metrics.toml")])
    query = read(question.encode())

    assert query.verb == verb
    assert run(plan(query, catalog, NOW), MemoryStorage()).meta.verb == verb


def test_the_page_of_comparisons_has_every_option_of_its_verbs() -> None:
    """And a question for each verb."""
    for verb in ("trend", "compare", "lift", "ratio", "adoption", "actives", "segments"):
        options = load(verb).options.__struct_fields__

        assert "```json" in SECTIONS[verb]
        assert [name for name in options if name not in text_of(COMPARISONS)] == []


def test_every_option_of_the_command_is_on_the_page() -> None:
    """Law: what the command takes is in the table of options."""
    options = [name for one in plan_command.params for name in one.opts if name.startswith("--")]

    assert len(options) == 12
    assert [name for name in options if f"| `{name}" not in PLAN] == []


def test_the_reasons_on_the_page_are_what_answers_would_say() -> None:
    """Law: the examples are of a yes/no metric at ε = 1 that needs ±2 points."""
    metric = Registry.from_text(file_with(BOOLEAN, need="0.02")).metric("m")
    half = Slice(metric, {}, 2_000, np.array([1_000, 1_000]), (0,))

    (row,) = suppress_imprecise(load("estimate").answer([half], VerbQuery(0.05)).rows, metric)

    assert f"`{row.reason}`" in PLAN
    assert f"`{shortage(metric, 120)}`" in PLAN


def test_the_example_goes_from_values_to_counts_with_intervals() -> None:
    """Twelve lines, without a server: counts add up, and the third is near the truth."""
    snippet = only("docs/ask/mechanisms.md", "python")

    done = subprocess.run(
        [sys.executable, "-c", snippet], capture_output=True, text=True, check=True, cwd=ROOT
    )

    rows = [line.split() for line in done.stdout.splitlines()]
    counts = [int(count) for _, count, _, _ in rows]
    assert [item for item, *_ in rows] == ["0", "1", "2", "3"]
    assert abs(sum(counts) - REPORTS) <= len(counts)  # each is rounded
    assert abs(counts[2] - DEVICES) < BOUND * STANDARD_ERROR
    assert all(float(low) < int(count) / REPORTS < float(high) for _, count, low, high in rows)
