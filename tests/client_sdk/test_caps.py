"""Caps: whole numbers of the smallest unit, never through a float, fixed in the application."""

from __future__ import annotations

import pytest

from client_sdk.caps import Caps
from client_sdk.errors import InvalidParameterError

NANO = 10**9


def test_caps_are_whole_nano_epsilon_and_whole_pico_delta() -> None:
    """A decimal becomes the integer that it means, exactly."""
    caps = Caps("0.1", "7.25", "2.000000001", "999999", "0.000001")

    assert (caps.report, caps.metric_week) == (NANO // 10, 29 * NANO // 4)
    assert (caps.week, caps.lifetime) == (2 * NANO + 1, 999_999 * NANO)
    assert caps.delta == 10**6


@pytest.mark.parametrize(
    "cap",
    ["0", "0.0", "-1", "1e9", "nan", "inf", "", " 1", "1.", "1.0000000001", "1000000", 4, 4.0],
)
def test_caps_that_are_not_a_positive_decimal_are_refused(cap: str) -> None:
    """Nothing but a positive decimal in quotes is an epsilon."""
    with pytest.raises(InvalidParameterError, match=r"caps\.week=.*positive"):
        Caps(week=cap)


@pytest.mark.parametrize("delta", ["-0.1", "1e-6", "0.0000000000001", 0, 1e-6, "nan"])
def test_a_delta_that_is_not_a_decimal_of_twelve_places_is_refused(delta: str) -> None:
    """Nothing but a decimal in quotes is a delta; 0 is one."""
    with pytest.raises(InvalidParameterError, match=r"caps\.delta="):
        Caps(delta=delta)

    assert Caps(delta="0").delta == 0


def test_caps_cannot_be_changed_after_they_were_made() -> None:
    """No code that is handed the caps can raise them."""
    with pytest.raises(AttributeError):
        Caps().week = 10**18  # type: ignore[misc]  # on purpose
