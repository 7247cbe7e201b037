"""Trusted time: no faster than is stated, whatever wall clocks and reboots do."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations, product
from math import ceil

import pytest

from client_sdk.core.epoch import DAY
from client_sdk.core.errors import BudgetExhaustedError
from client_sdk.privacy.caps import Caps
from client_sdk.privacy.time_off import FORGED_WEEKS, most_dates
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
    """Return the trusted days passed at each step: "run 2", "set 5 reboot 1", all in days."""
    store, machine = Store(None), Machine(named=named)
    first, passed = day_on(store, machine), []
    for step in steps:
        words = step.split()
        for action, days in zip(words[::2], words[1::2], strict=True):
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
        (["reboot 9", "run 2"], [0, 2]),  # off without credit, no time passes
        (["set 10 reboot 0", "run 1"], [0, 1]),
        (["run 1", "reboot 3", "run 1"], [1, 4, 5]),  # a day earns three and a quarter, of three
        (["run 9", "reboot 9", "run 1"], [9, 12, 13]),  # three at most, so none for holidays
        (["run 0.25", "reboot 0.75", "run 0.25", "reboot 0.75"], [0, 1, 1, 2]),
        (["run 9", "set 9", "run 1"], [9, 9, 10]),  # credit is for reboots alone
        (["run 9", "set 9", "reboot 0", "reboot 0"], [9, 9, 9, 9]),  # the clock has to pass, too
        (["run 9", "set 9 reboot 0", "set 9 reboot 0"], [9, 12, 12]),  # a lie: what was earned
        (["run 9", "set -9 reboot 0", "run 3"], [9, 9, 12]),
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


def honest_days(hours_on: int, days_on: int, weeks: int) -> tuple[int, int]:
    """Return the days and trusted days that pass for a machine that is off at night."""
    store, machine = Store(None), Machine()
    start = day_on(store, machine)
    for day in range(7 * weeks):
        if day % 7 < days_on:
            for _ in range(hours_on):
                machine.true += 3_600
                day_on(store, machine)
            machine.reboot(off=(24 - hours_on) * 3_600)
        else:
            machine.reboot(off=DAY)
    return 7 * weeks, day_on(store, machine) - start


@pytest.mark.parametrize(
    ("hours_on", "days_on", "least"),
    [(24, 7, 1), (16, 7, 1), (8, 7, 1), (10, 5, 1), (8, 5, 1), (4, 5, 0.5), (1, 1, 0.02)],
)
def test_a_machine_that_is_off_at_night_has_its_weeks_back(
    hours_on: int, days_on: int, least: float
) -> None:
    """From eight hours of work on, but for what passes before the first credit is earned."""
    days, passed = honest_days(hours_on, days_on, weeks=20)

    assert least * days - 3 <= passed <= days


@pytest.mark.parametrize("damage", ["", "garbage", "1 2 3 4 5 boot 00000000"])
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


@dataclass
class Spender:
    """Charges a whole week's cap whenever the ledger has room, and remembers when."""

    store: Store
    machine: Machine
    day: Callable[[Store, Machine], int] = day_on
    caps: Caps = field(default_factory=lambda: Caps(week="1"))
    spent: list[float] = field(default_factory=list)  # true seconds
    days: list[tuple[float, int]] = field(default_factory=list)  # true seconds, trusted day

    def step(self) -> None:
        day = self.day(self.store, self.machine)
        self.days.append((self.machine.true, day))
        charge = Charge(b"digest", len(self.spent), self.caps.week)
        with suppress(BudgetExhaustedError), self.store.transaction() as tx:
            Ledger(self.caps).charge(tx, charge, day)
            self.spent.append(self.machine.true)

    @property
    def most(self) -> int:
        """The most caps of a week that seven true days have cost."""
        return max(bisect(self.spent, t + 7 * DAY) - i for i, t in enumerate(self.spent))


def random_history(seed: int, steps: int, day: Callable[[Store, Machine], int] = day_on) -> Spender:
    """Return what is spent over random jumps of the clock, sleeps, readings and reboots."""
    chance = random.Random(seed)
    spender = Spender(Store(None), Machine(named=chance.random() < 0.5), day)
    for _ in range(steps):
        machine = spender.machine
        match chance.randrange(6):
            case 0:
                machine.wall_error = chance.uniform(-TEN_YEARS, TEN_YEARS)
            case 1:
                machine.reboot(off=chance.expovariate(1 / DAY))
            case 2:
                machine.wall_error += chance.uniform(0, 4 * DAY)
                machine.reboot(off=chance.choice((0, 60, 3_600)))
            case 3:
                machine.true += chance.expovariate(1 / DAY)
                continue  # nothing is read
            case _:
                machine.true += chance.expovariate(1 / (DAY / 4))
        spender.step()
    return spender


def wall_day(store: Store, machine: Machine) -> int:
    """The control: the date of the wall clock, which anyone can set."""
    return int(machine.wall // DAY)


def laws_hold(spender: Spender) -> bool:
    """Whether no span of true time touched more trusted dates than the rule allows."""
    days = spender.days[:: max(1, len(spender.days) // 30)]
    return all(
        later[1] >= earlier[1]
        and later[1] - earlier[1] < most_dates(ceil((later[0] - earlier[0]) / DAY))
        for earlier, later in combinations(days, 2)
    )


@pytest.mark.parametrize(
    "histories", [100, pytest.param(10_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_over_random_histories_seven_days_cost_no_more_than_is_stated(histories: int) -> None:
    spenders = [random_history(seed, 60) for seed in range(histories)]

    assert all(laws_hold(spender) for spender in spenders)
    assert 2 <= max(spender.most for spender in spenders) <= FORGED_WEEKS
    assert not laws_hold(random_history(1, 60, wall_day))
    assert random_history(1, 60, wall_day).most > FORGED_WEEKS


def attack(save_up: int, begin: float, every: float, hidden: int) -> int:
    """Return what seven days cost at most of one who sets the clock and reboots over and over.

    Args: save_up: hours of running before it.  begin: day's part at which it begins, on trusted
          dates.  every: hours between two reboots.  hidden: days that run before it, of which the
          wall clock shows a minute when a charge is made.
    """
    spender = Spender(Store(None), Machine(booted_at=0.0, true=begin * DAY))
    day_on(spender.store, spender.machine)
    spender.machine.true += save_up * 3_600
    day_on(spender.store, spender.machine)
    spender.machine.true += hidden * DAY
    for spender.machine.wall_error in (60.0 - hidden * DAY, 0.0):
        spender.step()
    for _ in range(int(10 * 24 / every)):
        spender.machine.true += every * 3_600
        spender.step()
        spender.machine.wall_error += 30 * DAY
        spender.machine.reboot(off=0)
        spender.machine.true += 1  # a boot takes longer
        spender.step()
    return spender.most


@pytest.mark.parametrize(
    ("hours", "paces"),
    [((0, 12, 23), (4,)), pytest.param(range(24), (0.25, 1, 4), marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_an_adversary_reaches_what_is_stated_and_no_more(
    hours: Sequence[int], paces: Sequence[float]
) -> None:
    """Over a grid of attacks: saving up credit, or days that no reading shows, slow and fast."""
    costs = [
        attack(*plan) for plan in product((0, 24), [hour / 24 for hour in hours], paces, (0, 9))
    ]

    assert max(costs) == FORGED_WEEKS == 5


def test_without_reboots_no_setting_of_the_clock_lets_more_time_pass_than_has_passed() -> None:
    for seed in range(100):
        chance, store, machine = random.Random(seed), Store(None), Machine()
        start = day_on(store, machine)
        for _ in range(50):
            machine.wall_error = chance.uniform(-TEN_YEARS, TEN_YEARS)
            machine.true += chance.expovariate(1 / DAY)

            assert day_on(store, machine) - start <= machine.true / DAY + 1


def test_of_an_honest_clock_as_many_trusted_dates_pass_as_dates_at_most() -> None:
    """However trusted time has fallen behind, and though the clock is corrected by seconds."""
    for seed in range(100):
        chance, store, machine = random.Random(seed), Store(None), Machine()
        read = []
        for _ in range(50):
            machine.true += chance.expovariate(1 / (DAY / 4))
            if chance.random() < 0.5:
                machine.reboot(off=chance.expovariate(1 / DAY))
                machine.true += chance.uniform(0, 3_600)
            machine.wall_error = chance.uniform(-2, 2)
            read.append((int(machine.wall // DAY), day_on(store, machine)))

        assert all(
            late[1] - early[1] <= late[0] - early[0]
            for early, late in combinations(read, 2)
            if late[0] >= early[0]
        )


def test_a_correction_of_a_second_costs_no_second_week() -> None:
    """Forward, a day's charge, and back: the next charge is on the eighth date."""
    spender = Spender(Store(None), Machine())
    machine = spender.machine
    day_on(spender.store, machine)
    machine.true, machine.wall_error = 700, 1.0
    day_on(spender.store, machine)
    machine.true = 2 * DAY
    spender.step()
    machine.true += 1_000
    day_on(spender.store, machine)
    machine.true, machine.wall_error = machine.true + 0.5, -0.5
    day_on(spender.store, machine)
    dates = [int(machine.wall // DAY)]
    for hour in range(1, 14 * 24):
        machine.true, spent = 2 * DAY + 1_200 + hour * 3_600, len(spender.spent)
        spender.step()
        dates += [int(machine.wall // DAY)] * (len(spender.spent) - spent)

    assert dates[1] - dates[0] == 7


def test_a_boot_that_cannot_be_named_is_none() -> None:
    """A process that may not read the name of the boot, beside one that may, gains no time."""
    spender = Spender(Store(None), Machine(booted_at=-400.0 * DAY))
    for _ in range(40):
        spender.machine.true += 60
        spender.machine.wall_error += 8 * DAY
        spender.machine.named = not spender.machine.named
        spender.step()

    assert spender.most == 1
