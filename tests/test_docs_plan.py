"""docs/ask/plan.md shows what its commands print."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from client_sdk.registry import Registry
from collector.analytics.need import guard, shortage
from collector.analytics.slices import Asked, Slice
from collector.analytics.verb import load
from collector.cli import main
from collector.cli.plan import plan
from tests.support.registries import BOOLEAN, file_with

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "ask" / "plan.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n\$ hearsay (.*?)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_a_command_of_the_page_prints_what_the_page_shows(command: str, shown: str) -> None:
    words = [str(ROOT / word) if word.startswith("examples/") else word for word in command.split()]

    done = CliRunner().invoke(main, words)

    assert done.exit_code == 0, done.output
    assert done.output == shown


def test_every_option_of_the_command_is_on_the_page() -> None:
    """Law: what the command takes is in the table of options."""
    options = [name for one in plan.params for name in one.opts if name.startswith("--")]

    assert len(options) == 10
    assert [name for name in options if f"| `{name}" not in PAGE] == []


def test_the_reasons_on_the_page_are_what_answers_would_say() -> None:
    """Law: the examples are of a yes/no metric at ε = 1 that needs ±2 points."""
    metric = Registry.from_text(file_with(BOOLEAN, need="0.02")).metric("m")
    half = Slice(metric, {}, 2_000, np.array([1_000, 1_000]), (0,))

    (row,) = guard(load("estimate").answer([half], Asked(0.05)).rows, metric)

    assert f"`{row.reason}`" in PAGE
    assert f"`{shortage(metric, 120)}`" in PAGE


def test_the_budget_on_its_page_is_what_the_command_prints() -> None:
    page = (ROOT / "docs" / "guide" / "privacy-budget.md").read_text(encoding="utf-8")
    path = str(ROOT / "examples" / "metrics.toml")

    done = CliRunner().invoke(main, ["registry", "budget", path])

    assert done.output in page
