"""The lint names what is legal and unlikely to be meant."""

from __future__ import annotations

from datetime import date

import pytest

from client_sdk import mechanisms
from client_sdk.core.errors import RegistryError
from client_sdk.registry import Registry
from collector.planning.registry_report import expiring, problems, warnings
from tests.support.crowds.uploads import registry
from tests.support.device.registries import CATEGORY, HEAD, NUMBER, file_with, table

TODAY = date(2026, 3, 4)


def lines(loaded: Registry, about: str = "") -> list[str]:
    return [line for line in warnings(loaded, TODAY) if about in line]


def test_an_epsilon_above_the_default_cap_is_named_with_its_metric() -> None:
    [line] = lines(registry(epsilon="5.0"), "page")

    assert "ε 5 is above the default cap of 4 a report" in line


@pytest.mark.parametrize(("mechanism", "named"), [("auto", 1), ("square_wave", 0)])
def test_a_smoothness_that_no_answer_needs_is_named(mechanism: str, named: int) -> None:
    """A mean assumes nothing of the kind."""
    fields = {**NUMBER, "mechanism": f'"{mechanism}"', "shape": '"smooth"'}
    found = list(warnings(Registry.from_text(file_with(fields)), TODAY))

    assert len([line for line in found if "m: shape" in line and "quantiles" in line]) == named


@pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1", "4", "8"])
@pytest.mark.parametrize("mechanism", mechanisms.names())
def test_only_unbounded_noise_must_be_declared(mechanism: str, epsilon: str) -> None:
    """Law: whatever epsilon, a mechanism is refused where few fakes decide, unless it is said."""
    fields = {**NUMBER, "mechanism": f'"{mechanism}"', "epsilon": f'"{epsilon}"'}
    try:
        loaded = Registry.from_text(file_with(fields))
    except RegistryError:
        return  # does not serve numbers
    said = Registry.from_text(file_with({**fields, "robust": "false"}))

    is_unbounded = mechanism in ("discrete_laplace", "discrete_gaussian")
    assert [line for line in problems(loaded) if "robust = false" in line] == list(problems(loaded))
    assert len(list(problems(loaded))) == is_unbounded
    assert not list(problems(said))
    assert said.metric("m").digest == loaded.metric("m").digest


@pytest.mark.parametrize(("expires", "named"), [("2026-03-03", True), ("2026-03-04", False)])
def test_an_expired_metric_is_named(expires: str, *, named: bool) -> None:
    found = lines(registry(expires=expires), "expired")

    assert any(f"page: expired on {expires}" in line for line in found) == named


@pytest.mark.parametrize(
    ("expires", "days", "left"),
    [
        ("2026-04-03", 30, "30 days"),
        ("2026-04-04", 30, None),
        ("2026-03-05", 30, "1 day"),
        ("2026-03-04", 0, "0 days"),
        ("2026-03-05", 0, None),
    ],
)
def test_a_metric_that_expires_soon_is_named(expires: str, days: int, left: str | None) -> None:
    """Law: within so many days of today, and by default within 30."""
    loaded = registry(expires=expires)
    found = [line for line in expiring(loaded, TODAY, days) if line.startswith("page:")]

    assert found == [] if left is None else [f"page: expires in {left}, on {expires}"]
    assert [line for line in warnings(loaded, TODAY, days) if "page: expires" in line] == found


def test_metrics_that_together_spend_more_than_a_week_allows_are_named() -> None:
    hourly = registry(epsilon="1.0")  # one metric of it reports every hour

    week, year = [line for line in warnings(hourly, TODAY) if "all metrics together" in line]

    assert "in any seven days, above the default cap of 8: devices refuse" in week
    assert "in any 365 days, above the default cap of 1000 for life" in year


def test_weekly_metrics_count_twice_as_seven_days_touch_two_weeks() -> None:
    """Law: five of ε 1 can cost 10 in seven days, on a Sunday and a Monday; four cost 8."""
    asked = [table(f"m{i}", CATEGORY, every='"7d"') for i in range(5)]

    five, four = (
        Registry.from_text(HEAD + "".join(asked)),
        Registry.from_text(HEAD + "".join(asked[:4])),
    )

    [line] = [line for line in warnings(five, TODAY) if "together" in line]
    assert "all metrics together can cost ε 10 in any seven days, above the default" in line
    assert not [line for line in warnings(four, TODAY) if "together" in line]


@pytest.mark.parametrize(("every", "named"), [('"once"', False), ('"7d"', True)])
def test_a_delta_that_ends_within_a_year_is_named(every: str, *, named: bool) -> None:
    """Law: ten reports of δ 1e-6 are all that the default cap allows for life."""
    text = file_with({**NUMBER, "mechanism": '"discrete_gaussian"', "every": every})

    found = [line for line in warnings(Registry.from_text(text), TODAY) if "δ" in line]

    assert [("δ 6e-05 in any 365 days, above the default cap of 0.00001" in x) for x in found] == (
        [True] if named else []
    )


def test_a_metric_that_its_devices_cannot_answer_is_named() -> None:
    found = lines(registry(epsilon="0.01"), "page")

    assert any("give only ±" in line and "; ±5 points takes " in line for line in found)
