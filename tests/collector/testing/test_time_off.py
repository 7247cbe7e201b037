"""Machines that are off, and clocks that are set: weeks of real clients and a real collector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from client_sdk.core.epoch import DAY, HOUR
from client_sdk.privacy.budget import FORGED_WEEKS
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.panel import with_samples
from client_sdk.registry import Registry
from client_sdk.storage.ledger import totals_of
from client_sdk.testing import FrozenClock
from collector.planning.machines import Hours, arrival
from collector.testing import Fleet, FleetDevice
from tests.support.device.device import metric_text

HEAD: Final = 'schema = 1\napp = "demo"\n'
NANO: Final = 10**9
# Nine tenths of the default cap, 8, in any seven dates: 3 * 7 * 0.3 + 2 * 0.45.
PLANNED: Final = HEAD + "".join(
    (
        *(metric_text(f"daily_{i}", epsilon="0.3") for i in range(3)),
        metric_text("weekly", every="7d", epsilon="0.45"),
    )
)
PANEL: Final = f'{HEAD}[panel]\nweek = "7.2"\n' + "".join(
    (
        *(metric_text(f"daily_{i}", epsilon="0.3") for i in range(6)),
        *(metric_text(f"weekly_{i}", every="7d") for i in range(6)),
    )
)
TEXTS: Final = {"the cap": PLANNED, "a panel": PANEL}
YEAR: Final = 365 * DAY


def _set(clock: FrozenClock, seconds: float) -> None:
    """Set the clock by so much; nothing passes."""
    clock.now += seconds


def _set_and_restart(clock: FrozenClock, seconds: float) -> None:
    _set(clock, seconds)
    clock.turn_off()


# What is done to a clock at each hour, and the most caps of a week that seven days may cost then.
ATTACKS: Final[dict[str, tuple[Callable[[FrozenClock, int], None], int]]] = {
    "55 years back": (lambda clock, hour: _set(clock, -55 * YEAR * (hour == 30)), 2),
    "400 days back": (lambda clock, hour: _set(clock, -400 * DAY * (hour == 30)), 2),
    "400 days ahead": (lambda clock, hour: _set(clock, 400 * DAY * (hour == 30)), 2),
    "70 years ahead": (lambda clock, hour: _set(clock, 70 * YEAR * (hour == 30)), 2),
    "back and forth": (lambda clock, hour: _set(clock, 40 * DAY * (1 - hour % 2 * 2)), 2),
    "ahead each hour": (lambda clock, hour: _set(clock, 8 * DAY), 2),
    "frozen": (lambda clock, hour: _set(clock, -HOUR * (hour > 0)), 1),
    "ahead at one restart": (
        lambda clock, hour: _set_and_restart(clock, 30 * DAY * (hour == 99)),
        2,
    ),
    "ahead at each restart": (lambda clock, hour: _set_and_restart(clock, 30 * DAY), FORGED_WEEKS),
}
FEW, MANY = 3, pytest.param(100, marks=pytest.mark.slow)


@pytest.fixture(params=TEXTS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    file = tmp_path / "metrics.toml"
    file.write_text(TEXTS[request.param], encoding="utf-8")
    return str(file)


def arrived(path: str, hours: Hours, devices: int) -> float:
    """Return which share of their chances devices have reported in eight weeks."""
    names = list(Registry.from_file(path).metrics)

    def behave(device: FleetDevice) -> None:
        for name in device.chance.sample(names, len(names)):  # nobody always comes last
            device.record(name, True)

    with Fleet(path, devices=devices, hours_on=hours.a_day, days_on=hours.days) as fleet:
        fleet.run(behave, weeks=4)
        before = fleet.counts()
        after = fleet.run(behave, weeks=8) - before
    return after["recorded"] / (after["recorded"] + after["budget"])


@pytest.mark.parametrize("devices", [FEW, MANY])
@pytest.mark.parametrize("hours", [Hours(8, 5), Hours(10, 5), Hours(8, 7)], ids=str)
def test_of_a_registry_planned_to_nine_tenths_what_is_planned_arrives(
    path: str, hours: Hours, devices: int
) -> None:
    """From computers that are off at night and at weekends, as the planner says."""
    assert arrival(with_samples(Registry.from_file(path)), hours) == {}
    assert arrived(path, hours, devices) >= 0.95


def test_of_machines_that_run_too_little_arrives_what_the_planner_says(tmp_path: Path) -> None:
    """The control: two hours on weekdays are a quarter of a week's budget."""
    file = tmp_path / "metrics.toml"
    file.write_text(PLANNED, encoding="utf-8")
    hours = Hours(2, 5)

    planned = arrival(Registry.from_file(str(file)), hours)
    share = arrived(str(file), hours, 8)

    weights = {name: 1 if name == "weekly" else 5 for name in ("daily_0", "daily_1", "daily_2")}
    weights["weekly"] = 1
    expected = sum(w * planned.get(name, 1) for name, w in weights.items()) / sum(weights.values())
    assert share < 0.6
    assert share == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("attack", ATTACKS)
def test_whatever_is_done_to_a_clock_seven_days_cost_no_more_than_is_stated(
    tmp_path: Path, attack: str
) -> None:
    """Of a client that records each hour, with restarts only where the attack has them."""
    file = tmp_path / "metrics.toml"
    file.write_text(HEAD + metric_text("daily", epsilon="1"), encoding="utf-8")
    change, most = ATTACKS[attack]
    spent: list[float] = []

    def behave(device: FleetDevice) -> None:
        device.record("daily", True)  # the clocks are read before they are changed, too
        change(device.clock, len(spent))
        device.record("daily", True)
        with device.client._engine.store.transaction() as tx:
            spent.append(totals_of(tx, 0).lifetime / NANO)

    with Fleet(str(file), devices=1, caps=Caps(week="1")) as fleet:
        fleet.run(behave, weeks=4, hourly=True)

    weeks = [late - early for early, late in zip([0.0, *spent], spent[7 * 24 - 1 :], strict=False)]
    assert max(weeks) <= most
    assert max(weeks) >= min(most, 2) / 2
    if most == FORGED_WEEKS:
        assert max(weeks) >= 4  # the control: restarts do let more be charged
