"""The lint names what is legal and unlikely to be meant."""

from __future__ import annotations

from datetime import date

import pytest

from client_sdk.registry import Registry
from collector.lint import warnings
from tests.support.uploads import registry

TODAY = date(2026, 3, 4)


def lines(loaded: Registry, about: str = "") -> list[str]:
    return [line for line in warnings(loaded, TODAY) if f": {about}" in line]


def test_an_epsilon_above_the_default_cap_is_named_with_its_metric() -> None:
    [line] = lines(registry(epsilon="5.0"), "page")

    assert "ε 5 is above the default cap of 4 a report" in line


@pytest.mark.parametrize(("expires", "named"), [("2026-03-03", True), ("2026-03-04", False)])
def test_an_expired_metric_is_named(expires: str, *, named: bool) -> None:
    found = lines(registry(expires=expires), "page")

    assert any(f"expired on {expires}" in line for line in found) == named


def test_metrics_that_together_spend_more_than_a_week_allows_are_named() -> None:
    hourly = registry(epsilon="1.0")  # one metric of it reports every hour

    [line] = [line for line in warnings(hourly, TODAY) if "all metrics together" in line]

    assert "above the default cap of 8" in line


def test_a_metric_that_its_devices_cannot_answer_is_named() -> None:
    found = lines(registry(epsilon="0.01"), "page")

    assert any("give only ±" in line and "; ±5 points takes " in line for line in found)
