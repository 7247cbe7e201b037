"""The table of a registry's budget: its numbers are held against ledgers in the device's tests."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Final

import pytest

from client_sdk.privacy.budget import costs_together
from client_sdk.privacy.caps import Caps
from client_sdk.registry import Registry
from collector.demo.fleet import DEMO_REGISTRY
from collector.planning.registry_report import budget_lines, warnings
from tests.support.device.registries import CATEGORY, NUMBER, file_with

ROOT: Final = Path(__file__).parents[3]
EXAMPLES: Final = sorted(ROOT.glob("examples/*.toml"))
SHIPPED: Final = [
    *(path for path in EXAMPLES if "[metrics." in path.read_text(encoding="utf-8")),
    Path(str(DEMO_REGISTRY)),
]


def test_the_table_adds_up_and_names_the_caps() -> None:
    """Law: one line a metric, the sums below, rounded up and never down."""
    text = file_with(CATEGORY, epsilon='"0.333333333"', every='"7d"')

    lines = list(budget_lines(Registry.from_text(text)))

    assert lines[2].split() == ["m", "fresh", "7d", "0.334", "0.667", "17.667", "no", "bound"]
    assert lines[3].split() == ["all", "together", "0.667", "17.667", "no", "bound"]
    assert lines[-2].startswith("the SDK's default caps are 8 in any seven days and 1000 for life")
    assert "clock of a device and restarts it over and over" in lines[-1]
    assert "any seven days can cost at most ε 40: 5 times that cap" in lines[-1]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_what_is_shipped_stays_within_the_default_caps(path: Path) -> None:
    """Law: a device with the SDK's own caps reports all of it, in its dearest week too."""
    registry, caps = Registry.from_file(str(path)), Caps()

    assert costs_together(registry, registry.panel_week).week <= caps.week
    assert not [line for line in warnings(registry, date(2026, 1, 1)) if "cap of" in line]


def test_a_delta_is_told() -> None:
    """Law: what is not purely private says so."""
    text = file_with({**NUMBER, "mechanism": '"discrete_gaussian"'})

    assert any(
        "also costs δ 1e-06 a report" in line for line in budget_lines(Registry.from_text(text))
    )
