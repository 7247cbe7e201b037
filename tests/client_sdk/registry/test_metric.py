"""A metric: which values it takes, and the digest that changes if and only if its meaning does."""

from __future__ import annotations

import sys
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.core.errors import InvalidValueError
from client_sdk.registry import Registry
from client_sdk.registry.types.items import BOOLEAN_LABELS, BooleanDomain, ItemDomain, SetDomain
from client_sdk.registry.types.numbers import NumberDomain
from client_sdk.testing import MemoryClient
from tests.support.device.registries import BOOLEAN, HEAD, NUMBER, table
from tests.support.enumeration.populations import metric_of

GRID = NumberDomain(Fraction(-5), Fraction(5), Fraction(1, 4), "degrees")
PLANS = ItemDomain(("free", "pro", "1"))
SWITCH = BooleanDomain(BOOLEAN_LABELS)
PETS = SetDomain(("cat", "dog", "1"))


def test_a_boolean_takes_true_and_false_only() -> None:
    assert [SWITCH.encode(value, "m") for value in (False, True)] == [0, 1]
    wrong: list[object] = [0, 1, 1.0, "true", None, [], Fraction(1)]
    for value in wrong:
        with pytest.raises(InvalidValueError, match=r"^m: takes True or False$"):
            SWITCH.encode(value, "m")


def test_a_category_takes_its_labels_only() -> None:
    assert [PLANS.encode(label, "m") for label in ("free", "pro", "1")] == [0, 1, 2]
    wrong: list[object] = ["Free", "", 1, True, None, b"free", ["free"], float("nan")]
    for value in wrong:
        with pytest.raises(InvalidValueError, match=r"^m: takes one of its 3 registered values$"):
            PLANS.encode(value, "m")


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_a_set_takes_any_collection_of_its_labels(kind: type[list[str]]) -> None:
    held = [PETS.encode(kind(labels), "m") for labels in ([], ["1"], ["1", "cat", "1"])]

    assert held == [frozenset(), frozenset({2}), frozenset({0, 2})]


@pytest.mark.parametrize(
    ("value", "position"),
    [
        (0, 20), (-5, 0), (5.0, 40), (0.125, Fraction(41, 2)), (Decimal("0.1"), Fraction(102, 5)),
        (Fraction(1, 3), Fraction(64, 3)), (-0.0, 20), (5e-324, 20 + 4 * Fraction(5e-324)),
        (2**63, 40), (-(10**400), 0), (1e308, 40), (sys.float_info.max, 40), (-6, 0),
        (Decimal("1e300"), 40),
    ],
)  # fmt: skip
def test_a_number_is_clamped_and_placed_exactly(value: float, position: Fraction) -> None:
    encoded = GRID.encode(value, "m")

    assert encoded == position
    assert type(encoded) is Fraction


@given(st.floats() | st.integers() | st.decimals() | st.fractions() | st.text() | st.none())
def test_whatever_is_accepted_lies_on_the_range(value: object) -> None:
    try:
        position = GRID.encode(value, "m")
    except InvalidValueError as error:
        assert str(error).startswith("m: takes a ")  # noqa: PT017  # both outcomes are the law
        return

    assert 0 <= position <= GRID.size - 1


def test_the_meaning_is_canonical() -> None:
    assert metric_of(NUMBER).meaning == (
        '{"domain":{"max":"21/2","min":"0","step":"1/2","unit":"minutes"},"epsilon":"1",'
        '"every":"7d","longitudinal":"fresh","mechanism":{"name":"discrete_laplace"},'
        '"name":"m","type":"number"}'
    )


def test_the_name_is_part_of_the_meaning() -> None:
    first, second = Registry.from_text(HEAD + table("a", BOOLEAN) + table("b", BOOLEAN))

    assert first.digest != second.digest


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
