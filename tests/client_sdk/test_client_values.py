"""Wrong names and values are counted by reason, and never raised."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from tests.support.device.clock import FakeClock
from tests.support.device.device import changed, make_client

CHARGES_AND_REPORTS = "SELECT (SELECT count(*) FROM charges), (SELECT count(*) FROM reports)"
FAILING_OUTBOX = (
    "CREATE TRIGGER full BEFORE INSERT ON reports BEGIN SELECT RAISE(ABORT, 'disk full'); END"
)


class Hostile:
    """A value that fails at every touch."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("touched")

    def __hash__(self) -> int:
        raise RuntimeError("touched")

    def __repr__(self) -> str:
        raise RuntimeError("touched")


class HostileNumber(float):
    """A number that fails when it is read."""

    def as_integer_ratio(self) -> tuple[int, int]:
        raise RuntimeError("read")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("dark_mode", 1, "invalid_value"),
        ("dark_mode", None, "invalid_value"),
        ("dark_mode", Hostile(), "invalid_value"),
        ("theme", "unregistered", "invalid_value"),
        ("theme", ["plain"], "invalid_value"),
        ("files", math.nan, "invalid_value"),
        ("files", -math.inf, "invalid_value"),
        ("files", Decimal("sNaN"), "invalid_value"),
        ("files", "7", "invalid_value"),
        ("files", True, "invalid_value"),
        ("files", HostileNumber(1), "internal"),
        ("no_such_metric", True, "unknown_metric"),
        (None, True, "unknown_metric"),
        ([], True, "unknown_metric"),
        (Hostile(), True, "unknown_metric"),
    ],
)
def test_a_wrong_name_or_value_is_counted_and_never_raised(
    name: Any, value: object, reason: str
) -> None:
    with make_client() as client:
        client.record(name, value)

    assert changed(client) == {reason: 1}


def test_numbers_of_any_size_are_clamped_to_their_range() -> None:
    with make_client(clock=(clock := FakeClock())) as client:
        for value in (-(10**400), 1e308, Decimal("1e-300")):
            client.record("files", value)
            clock.advance(days=1)

    assert client.stats()["recorded"] == 3
