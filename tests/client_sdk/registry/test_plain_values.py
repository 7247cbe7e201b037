"""Values of types that stand for text, truth and numbers are taken as what they stand for."""

from __future__ import annotations

from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from client_sdk.registry import Registry
from client_sdk.testing import MemoryClient

TEXT = """
schema = 1
app = "editor"
{metrics}
"""
COMMON = """
title = "t"
question = "q?"
epsilon = "0.1"
every = "1d"
longitudinal = "fresh"
expected_devices = 10000
min_reports = 100
owner = "o"
expires = 2099-12-31
"""
TYPES = {
    "theme": 'type = "category"\nvalues = ["dark", "light"]',
    "tools": 'type = "set"\nvalues = ["git", "zip"]',
    "crashed": 'type = "boolean"',
    "startup": 'type = "number"\nmin = 0\nmax = 100\nstep = 1\nunit = "ms"',
    "saves": 'type = "count"\nmin = 0\nmax = 100\nstep = 1\nunit = "saves"\naggregate = "sum"',
    "word": 'type = "string"\nlength = 6',
    "minutes": 'type = "key_value"\nvalues = ["git", "zip"]\nmin = 0\nmax = 9\nunit = "min"',
}


class Theme(StrEnum):
    DARK = "dark"


class OldTheme(str, Enum):  # noqa: UP042  # as many programs still write it
    DARK = "dark"


class Level(IntEnum):
    TWO = 2


class Liar(str):
    """A text that says something else than it is."""

    def __str__(self) -> str:
        return "light"


@pytest.fixture
def client() -> MemoryClient:
    metrics = "\n".join(f"[metrics.{name}]\n{body}\n{COMMON}" for name, body in TYPES.items())
    return MemoryClient(Registry.from_text(TEXT.format(metrics=metrics)))


@pytest.mark.parametrize(
    ("metric", "value", "meant"),
    [
        ("theme", Theme.DARK, "dark"),
        ("theme", OldTheme.DARK, "dark"),
        ("theme", np.str_("dark"), "dark"),
        ("theme", Liar("dark"), "dark"),
        ("tools", [Theme.DARK, np.str_("git")], None),
        ("tools", {np.str_("git")}, "git"),
        ("crashed", np.bool_(True), "true"),
        ("crashed", 1, None),
        ("crashed", np.int64(1), None),
        ("startup", np.int64(7), "7 ms"),
        ("startup", np.float32(7), "7 ms"),
        ("startup", np.float64(7), "7 ms"),
        ("startup", Level.TWO, "2 ms"),
        ("startup", Decimal("7.0"), "7 ms"),
        ("startup", Fraction(7), "7 ms"),
        ("startup", np.bool_(True), None),
        ("startup", np.float32("nan"), None),
        ("startup", np.array([7]), None),
        ("startup", "7", None),
        ("word", np.str_("unzip"), "unzip"),
        ("word", Theme.DARK, "dark"),
        ("minutes", {np.str_("git"): np.int32(3)}, "git: 3 min"),
    ],
)
def test_a_value_is_taken_as_what_it_stands_for(
    client: MemoryClient, metric: str, value: Any, meant: str | None
) -> None:
    """What no metric could mean is refused, and counted as such."""
    client.record(metric, value)

    reports = [report for report in client.history() if report.metric == metric]
    assert [report.truth for report in reports] == ([] if meant is None else [meant])
    assert client.stats()["invalid_value"] == (meant is None)
    assert client.stats()["internal"] == 0


def test_values_of_numpy_are_added_up(client: MemoryClient) -> None:
    """As their numbers are."""
    for value in (np.int64(3), np.uint8(4), 5):
        client.record("saves", value)

    client.clock.advance(days=1)
    client.flush()

    (report,) = client.history()
    assert report.truth == "12 saves"
