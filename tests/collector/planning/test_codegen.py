"""The module of typed handles says what the registry says, in a layout that stays.

That wrong values do not type-check is held by mypy itself, over ``tests/typing``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from click.testing import CliRunner

from client_sdk.core.errors import RegistryError
from client_sdk.registry import Registry
from collector.cli import main
from collector.planning.codegen import LAID_OUT_NAME, literal, module_of
from tests.support.device.registries import (
    BOOLEAN,
    CATEGORY,
    FUNNEL,
    HEAD,
    LOCATION,
    NUMBER,
    PAIR,
    RETENTION,
    SET,
    STRING,
    file_with,
    table,
)

ROOT = Path(__file__).parents[3]
MADE = {
    "tests/typing/notes.toml": "tests/typing/notes_metrics.py",
    "examples/metrics.toml": "examples/editor_metrics.py",
}
ODD_LABELS = [
    "plain",
    "it's",
    'say "hi"',
    "back\\slash",
    "ε or ∞",
    "x" * 100,
    "\"'\"'",
    "{}",
    "\\'",
]
ODD_PARTS = {"a" * 64: ["it's", 'say "hi"'], "type": ["x" * 100, "ε"]}
LONG = "a" * LAID_OUT_NAME
KEY_VALUE = {**NUMBER, "type": '"key_value"', "values": '["a", "b"]', "mechanism": '"auto"'}
del KEY_VALUE["step"]
HOSTILE = json.dumps('"""; import os; {app} # noqa ' + "\\" * 3)


class Recorded:
    """A client that keeps what it is asked to record."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.values: list[tuple[str, object]] = []

    def record(self, name: str, value: object) -> None:
        self.values.append((name, value))


def registry_of(**tables: str) -> Registry:
    return Registry.from_text(HEAD + "".join(tables.values()))


def registry_named(*names: str) -> Registry:
    return Registry.from_text(HEAD + "".join(table(name, BOOLEAN) for name in names))


def odd_registry() -> Registry:
    """Every kind of value, with texts and names that are hard to write down."""
    return registry_of(
        a=table(LONG, SET),
        e=table("e" * LAID_OUT_NAME, KEY_VALUE),
        b=table("b", CATEGORY, values=json.dumps(ODD_LABELS), title='"A \\"quote\\""'),
        c=table("ui.side.width", NUMBER, title=json.dumps("long words " * 30), question=HOSTILE),
        d=table("ui.side.shown", BOOLEAN, every='"once"', title=HOSTILE),
        f=table("f" * LAID_OUT_NAME, FUNNEL),
        g=table("g" * LAID_OUT_NAME, LOCATION),
        h=table("h" * LAID_OUT_NAME, PAIR, parts=json.dumps(ODD_PARTS).replace(": ", " = ")),
        i=table("i" * LAID_OUT_NAME, RETENTION),
        j=table("j" * LAID_OUT_NAME, STRING),
    )


def built(registry: Registry) -> dict[str, Any]:
    """Return the names of the module made for *registry*."""
    names: dict[str, Any] = {"__name__": "made"}
    exec(module_of(registry), names)  # noqa: S102 - this is the code under test
    return names


@pytest.mark.parametrize("width", [88, 100, 120])
def test_a_module_is_laid_out_as_ruff_leaves_it(width: int) -> None:
    """Holds at every common line length, for odd labels, long names and texts."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff"]
    text = module_of(odd_registry())

    done = subprocess.run(
        [*command, f"--line-length={width}", "-"], input=text, capture_output=True, text=True
    )

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(("registry", "made"), MADE.items())
def test_the_modules_of_the_repository_are_made_from_their_registries(
    registry: str, made: str
) -> None:
    """Holds the typing tests and the examples to what codegen makes today."""
    text = (ROOT / made).read_text("utf-8")

    assert text == module_of(Registry.from_file(ROOT / registry))


def test_the_types_hold_the_labels_as_registered() -> None:
    """A label is the same text in the module, whatever quotes and backslashes it has."""
    assert get_args(built(odd_registry())["BValue"]) == tuple(ODD_LABELS)


def test_the_type_of_a_pair_holds_its_parts_as_registered() -> None:
    """Names and labels are the same texts, whatever quotes a label has."""
    made = built(registry_of(h=table("h", PAIR, parts=json.dumps(ODD_PARTS).replace(": ", " = "))))

    types = get_type_hints(made["HValue"], made)

    assert {name: list(get_args(labels)) for name, labels in types.items()} == ODD_PARTS


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            LOCATION,
            "Longitude from -10 to 30 and latitude from 45.5 to 47.5, in this order; what lies"
            " beyond counts as the nearest cell.",
        ),
        (FUNNEL, "The furthest step that was reached; None if none was."),
        (RETENTION, "The periods with activity."),
        (STRING, "Of a longer text the first 8 bytes of UTF-8 count."),
    ],
)
def test_a_handle_says_what_its_type_leaves_open(fields: dict[str, str], said: str) -> None:
    """A tuple of two numbers does not tell which is the longitude."""
    shown = " ".join(built(registry_of(a=table("a", fields)))["Metrics"].a.__doc__.split())

    assert said in shown


@pytest.mark.parametrize("text", ODD_LABELS)
def test_a_literal_evaluates_to_its_text(text: str) -> None:
    """The quotes of a literal cannot be ended from within."""
    assert eval(literal(text)) == text  # noqa: S307 - this is the code under test


def test_a_handle_is_explained_by_title_question_epsilon_and_range() -> None:
    """What an editor shows beside a handle is what the registry asks."""
    registry = registry_of(a=table("width", NUMBER, every='"1d"'))

    shown = " ".join(built(registry)["Metrics"].width.__doc__.split())

    metric = registry.metric("width")
    assert shown == (
        f"{metric.title} {metric.question} From 0 to 10.5 minutes; what lies beyond counts as the"
        " end. Reported at most once every 1d, at ε 1 a report, until 2099-12-31."
    )


def test_no_text_of_a_registry_ends_its_docstring() -> None:
    """Quotes and backslashes in titles and questions stay text."""
    metrics = built(odd_registry())

    hostile = json.loads(HOSTILE).replace('"', "'")
    for handle in (metrics["UiSideMetrics"].shown, metrics["UiSideMetrics"].width):
        assert " ".join(handle.__doc__.split()).count(hostile) == 1


def test_dotted_names_nest_and_are_recorded_whole() -> None:
    """``m.ui.side.shown`` records the metric ``ui.side.shown``."""
    registry = odd_registry()
    client = Recorded(registry)
    m = built(registry)["Metrics"](client)

    m.ui.side.shown.record(True)
    m.b.record("plain")
    getattr(m, LONG).record({"a"})

    assert client.values == [("ui.side.shown", True), ("b", "plain"), (LONG, {"a"})]


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        (["class"], "metrics.class: 'class' cannot be a public name in Python"),
        (["ui.import"], "metrics.ui.import: 'import' cannot"),
        (["2fast"], "metrics.2fast: '2fast' cannot"),
        (["ui..theme"], "metrics.ui..theme: '' cannot"),
        (["_client"], "metrics._client: '_client' cannot"),
        (["ui", "ui.theme"], "metrics.ui.theme: begins with ui, which is a metric too"),
        (["ui.theme", "ui"], "metrics.ui.theme: begins with ui, which is a metric too"),
        (["ui.theme", "ui_theme"], "ui_theme and ui.theme differ in dots and underscores only"),
        (["a_b.c", "a.b.d"], "a.b and a_b differ in dots and underscores only"),
    ],
)
def test_names_that_python_cannot_tell_apart_are_refused(names: list[str], fault: str) -> None:
    """All are legal in a registry; a module of handles would be wrong or shadow its own parts."""
    with pytest.raises(RegistryError, match=re.escape(fault)):
        module_of(registry_named(*names))


@pytest.mark.parametrize("name", ["class", "_sex", "2nd", "a.b"])
def test_a_part_that_is_no_name_in_python_is_refused(name: str) -> None:
    """The values of a pair are a class with an attribute a part."""
    registry = registry_of(a=table("a", PAIR, parts=f'{{ "{name}" = ["x", "y"], b = ["x", "y"] }}'))

    with pytest.raises(RegistryError, match=re.escape(f"metrics.a.parts: '{name}' cannot be a")):
        module_of(registry)


def test_handles_refuse_a_client_of_another_definition_and_name_the_metric() -> None:
    """Handles made from an older registry are found at construction, not by lost reports."""
    made_from = registry_named("kept", "changed", "removed")
    present = registry_of(
        kept=table("kept", BOOLEAN),
        changed=table("changed", BOOLEAN, epsilon='"0.5"'),
        added=table("added", BOOLEAN),
    )

    with pytest.raises(RegistryError) as caught:
        built(made_from)["Metrics"](Recorded(present))

    assert [line.split(":")[0] for line in caught.value.problems] == [
        "metrics.changed",
        "metrics.removed",
    ]


def test_handles_take_a_client_with_further_metrics_and_reworded_questions() -> None:
    """Only what changes the meaning of a report is compared."""
    present = registry_of(
        kept=table("kept", BOOLEAN, question='"Shall we?"'), added=table("added", BOOLEAN)
    )

    built(registry_named("kept"))["Metrics"](Recorded(present))


def test_the_command_prints_the_module_or_writes_it(tmp_path: Path) -> None:
    """Standard output and ``--output`` hold the same text."""
    path, made = tmp_path / "metrics.toml", tmp_path / "made.py"
    path.write_text(file_with(SET), encoding="utf-8")
    command = ["registry", "codegen", str(path)]

    printed = CliRunner().invoke(main, command)
    written = CliRunner().invoke(main, [*command, "--output", str(made)])

    assert (printed.exit_code, written.exit_code, written.output) == (0, 0, "")
    assert printed.output == made.read_text("utf-8") == module_of(Registry.from_file(path))


def test_the_command_says_in_one_line_what_name_is_refused(tmp_path: Path) -> None:
    """A refusal is no traceback, and writes no file."""
    path, made = tmp_path / "metrics.toml", tmp_path / "made.py"
    path.write_text(HEAD + table("class", BOOLEAN), encoding="utf-8")

    done = CliRunner().invoke(main, ["registry", "codegen", str(path), "--output", str(made)])

    assert done.exit_code == 1
    assert done.stderr == "Error: metrics.class: 'class' cannot be a public name in Python\n"
    assert not made.exists()
