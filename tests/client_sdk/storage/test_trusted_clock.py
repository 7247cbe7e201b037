"""Trusted time: never faster than true time, whatever wall clocks and reboots do."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from client_sdk.core.epoch import DAY
from client_sdk.core.errors import BudgetExhaustedError
from client_sdk.privacy.caps import Caps
from client_sdk.storage import trusted_clock
from client_sdk.storage.ledger import Charge, Ledger
from client_sdk.storage.schema import set_property
from client_sdk.storage.store import Store
from client_sdk.storage.trusted_clock import SAVE_EVERY, SystemUptime, Uptime
from tests.support.device.clock import NOON

TEN_YEARS = 3_650 * DAY


@dataclass
class Machine:
    """True time, a wall clock that anybody can set, and boots."""

    true: float = 0.0  # seconds since the first reading
    wall_error: float = 0.0
    boots: int = 0
    booted_at: float = -3_600.0
    named: bool = True  # whether the system names its boots

    @property
    def wall(self) -> float:
        return NOON + self.true + self.wall_error

    def uptime(self) -> Uptime:
        return Uptime(f"boot {self.boots}" if self.named else "", self.true - self.booted_at)

    def reboot(self, off: float) -> None:
        self.true += off
        self.boots, self.booted_at = self.boots + 1, self.true


def day_on(store: Store, machine: Machine) -> int:
    with store.transaction() as tx:
        return trusted_clock.advance(tx, machine.wall, machine.uptime())


def days_of(*steps: str, named: bool = True) -> list[int]:
    """Return the trusted days passed at each step: "run 2", "set 5", "reboot 1", all in days."""
    store, machine = Store(None), Machine(named=named)
    first, passed = day_on(store, machine), []
    for step in steps:
        action, days = step.split()
        match action:
            case "run":
                machine.true += float(days) * DAY
            case "set":
                machine.wall_error += float(days) * DAY
            case "reboot":
                machine.reboot(off=float(days) * DAY)
        passed.append(day_on(store, machine) - first)
    return passed


@pytest.mark.parametrize("named", [True, False], ids=["named boots", "unnamed boots"])
@pytest.mark.parametrize(
    ("steps", "passed"),
    [
        (["run 3", "run 4"], [3, 7]),
        (["set 400", "run 2"], [0, 2]),
        (["set -400", "run 2"], [0, 2]),
        (["set 400", "set -400", "run 1"], [0, 0, 1]),
        (["reboot 9", "run 2"], [0, 2]),  # switched off, no time passes
        (["set 10", "reboot 0", "run 1"], [0, 0, 1]),
        (["set -10", "run 20"], [0, 20]),
        (["run 0.496", "run 0.006", "set -0.01"], [0, 1, 1]),  # a few minutes after midnight
        (["run 0.496", "run 0.006", "reboot 0"], [0, 1, 1]),
    ],
    ids=str,
)
def test_trusted_time_advances_by_the_least_that_the_clocks_allow(
    steps: list[str], passed: list[int], *, named: bool
) -> None:
    """Neither a set clock nor a reboot lets time pass; running does."""
    assert days_of(*steps, named=named) == passed


def test_trusted_time_begins_at_the_wall_clock_of_the_first_charge() -> None:
    store = Store(None)

    assert day_on(store, Machine()) == NOON // DAY


def test_reading_without_charging_writes_nothing() -> None:
    store, machine = Store(None), Machine()
    start = day_on(store, machine)
    machine.true += 5 * DAY

    with store.transaction() as tx:
        before = tx.total_changes
        day = trusted_clock.day(tx, machine.wall, machine.uptime())
        written = tx.total_changes - before

    assert (day, written) == (start + 5, 0)


def test_a_reading_is_written_down_only_when_time_has_passed() -> None:
    """What is refused again and again costs the disk nothing."""
    store, machine = Store(None), Machine()
    day_on(store, machine)
    written = []
    for seconds in (1, SAVE_EVERY - 2, 2, 1):
        machine.true += seconds
        with store.transaction() as tx:
            before = tx.total_changes
            trusted_clock.advance(tx, machine.wall, machine.uptime())
            written.append(tx.total_changes > before)

    assert written == [False, False, True, False]


def test_a_machine_that_is_rebooted_every_day_gets_its_week_back() -> None:
    """Refused charges, too, move trusted time on: ten hours a day are a week in 17 days."""
    store, machine = Store(None), Machine()
    start = day_on(store, machine)

    for _ in range(17):
        for _ in range(10):
            machine.true += 3_600
            day_on(store, machine)
        machine.reboot(off=14 * 3_600)

    assert day_on(store, machine) == start + 7


@pytest.mark.parametrize("damage", ["", "garbage", "1 2 3 boot 00000000"])
def test_a_damaged_reading_goes_on_at_the_last_charge(damage: str) -> None:
    """With no reading to trust, a clock set forward still frees nothing."""
    store, machine = Store(None), Machine()
    start = day_on(store, machine)
    with store.transaction() as tx:
        Ledger(Caps()).charge(tx, Charge(b"digest", 0, 1), start)
        set_property(tx, "clock", damage)
    machine.wall_error = TEN_YEARS

    assert day_on(store, machine) == start


def test_after_a_stop_the_time_until_the_next_reading_counts_for_nothing() -> None:
    store, machine = Store(None), Machine()
    start = day_on(store, machine)
    with store.transaction() as tx:
        trusted_clock.stop(tx)
    machine.true += 30 * DAY

    stopped = day_on(store, machine)
    machine.true += DAY

    assert (stopped, day_on(store, machine)) == (start, start + 1)


def test_the_uptime_of_this_machine_goes_on_and_names_one_boot() -> None:
    uptime = SystemUptime()

    earlier, later = uptime(), uptime()

    assert later.boot == earlier.boot
    assert later.seconds >= earlier.seconds >= 0


def weeks_granted(jumps: int, seed: int) -> tuple[float, float]:
    """Return weeks' worth of budget spent and weeks truly passed, over random jumps and reboots."""
    chance = random.Random(seed)
    store, machine, caps = Store(None), Machine(named=chance.random() < 0.5), Caps(week="1")
    granted = 0
    day_on(store, machine)
    for epoch in range(jumps):
        match chance.randrange(4):
            case 0:
                machine.wall_error = chance.uniform(-TEN_YEARS, TEN_YEARS)
            case 1:
                machine.reboot(off=chance.expovariate(1 / DAY))
            case _:
                machine.true += chance.expovariate(1 / (DAY / 2))
        day = day_on(store, machine)
        try:
            with store.transaction() as tx:
                Ledger(caps).charge(tx, Charge(b"digest", epoch, caps.week), day)
        except BudgetExhaustedError:
            continue
        granted += 1
    return granted, machine.true / (7 * DAY)


def test_over_ten_thousand_jumps_and_reboots_no_week_is_granted_that_did_not_pass() -> None:
    """Budgets granted are at most the true weeks, to the day, and one to begin with."""
    for seed in range(10):
        granted, passed = weeks_granted(1_000, seed)

        assert 10 < granted <= passed + 1 / 7 + 1
