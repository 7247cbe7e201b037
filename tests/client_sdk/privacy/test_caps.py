"""Caps: whole numbers of the smallest unit, never through a float, fixed in the application."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Final

import pytest

from client_sdk import Client
from client_sdk.core.errors import InvalidParameterError
from client_sdk.gateway import Gateway
from client_sdk.privacy.caps import Caps

ROOT: Final = Path(__file__).parents[3]

NANO = 10**9
ANY: Final = ("https://t.example.org", "key", ROOT / "examples" / "metrics.toml")


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


@pytest.mark.parametrize("caps", ["8", {"week": "8"}, 8, None, Caps])
def test_caps_of_another_type_are_refused_by_the_constructor(caps: Any) -> None:
    """They would be met only when the first value is recorded, and then stop every one."""
    for make in (
        lambda: Client(*ANY, consent="granted", data_dir=None, caps=caps),
        lambda: Gateway(*ANY, consent="granted", data_dir=None, caps=caps),
    ):
        with pytest.raises(InvalidParameterError, match=r"^caps=.*: must be a Caps"):
            make()


def test_caps_read_as_the_call_that_makes_them() -> None:
    """In epsilon: this is what the help of a client shows."""
    caps = Caps("0.1", "7.25", "2.000000001", "999999", "0.000001")

    assert repr(caps) == (
        "Caps(report='0.1', metric_week='7.25', week='2.000000001',"
        " lifetime='999999', delta='0.000001')"
    )
    assert eval(repr(caps)) == caps  # noqa: S307  # our own text
    assert "week='8'" in str(inspect.signature(Client))
