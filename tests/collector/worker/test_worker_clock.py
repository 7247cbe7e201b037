"""While clocks do not agree a worker folds nothing: entries wait, and no class is ever wrong."""

from __future__ import annotations

import threading

import pytest

from client_sdk.core.epoch import DAY as SECONDS
from collector.core.cells import MARGIN, Cell
from collector.core.entry import AcceptedColumn, encode
from collector.core.errors import ClockError
from collector.core.steady_clock import LASTING_S, SteadyClock
from collector.storage.redis import RedisStorage
from collector.worker.worker import MAX_DELIVERIES, Worker
from tests.support.device.clock import FakeClock
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.stored import quarantined
from tests.support.store.worker_desk import (
    DAY,
    EVERY,
    ITEM_2,
    MECHANISMS,
    METRIC,
    NO_WAIT,
    counts,
    put,
)

NOON = DAY * SECONDS + SECONDS // 2
OF_DAY = encode([AcceptedColumn(Cell(METRIC, DAY, ""), bytes([1]))])


class Machine:
    """A worker's machine: its clock may be set, its monotonic clock may not."""

    def __init__(self, now: float) -> None:
        self.wall, self.ran = FakeClock(now), FakeClock(1_000)
        self.clock = SteadyClock(self.wall, self.ran)

    def wait(self, seconds: float) -> None:
        self.wall.advance(seconds=seconds)
        self.ran.advance(seconds=seconds)


def classes(store: MemoryStorage) -> set[int]:
    return {cell.lateness for cell in store.tallied}


@pytest.mark.parametrize("days", [-40, -1, 1, 2.5, 20, 40])
def test_a_jump_of_the_stores_clock_files_nothing_under_a_wrong_class(days: float) -> None:
    store, machine = MemoryStorage(), Machine(NOON)
    worker = Worker(store, {**MECHANISMS}, {METRIC: "1d"}, pace=NO_WAIT, clock=machine.clock)
    put(store, OF_DAY)
    store.clock = NOON + int(days * SECONDS)

    for _ in range(2 * MAX_DELIVERIES):
        with pytest.raises(ClockError, match=r"store\.clock="):
            worker.step()
    waiting = store.backlog(), quarantined(store)
    store.clock = NOON
    worker.step()

    assert waiting == (1, 0)
    assert classes(store) == {0}


@pytest.mark.parametrize("days", [-40, 40])
def test_a_jump_of_both_clocks_of_one_machine_files_nothing_under_a_wrong_class(
    days: float,
) -> None:
    """They agree with each other, but not with the seconds that have passed."""
    store, machine = MemoryStorage(), Machine(NOON)
    worker = Worker(store, MECHANISMS, {METRIC: "1d"}, pace=NO_WAIT, clock=machine.clock)
    store.clock = NOON
    worker.step()
    put(store, OF_DAY)

    machine.wall.advance(days=days)
    store.clock = int(machine.wall())
    for _ in range(5):
        machine.wait(LASTING_S / 6)
        with pytest.raises(ClockError, match="clock="):
            worker.step()
    machine.wall.advance(days=-days)
    store.clock = int(machine.wall())
    worker.step()

    assert classes(store) == {0}


def test_a_clock_that_was_set_for_good_is_believed_after_a_while() -> None:
    """A machine that started with a wrong clock must not stand still for ever."""
    store, machine = MemoryStorage(), Machine(NOON - 40 * SECONDS)
    worker = Worker(store, MECHANISMS, {METRIC: "1d"}, pace=NO_WAIT, clock=machine.clock)
    store.clock = NOON
    put(store, OF_DAY)
    with pytest.raises(ClockError):
        worker.step()

    machine.wall.advance(days=40)
    with pytest.raises(ClockError):
        worker.step()
    machine.wait(LASTING_S)
    folded = worker.step()

    assert folded == 1


@pytest.mark.parametrize(("seconds", "folds"), [(MARGIN - 60, True), (MARGIN + 60, False)])
def test_an_hour_of_difference_is_allowed_for(seconds: int, folds: bool) -> None:
    """As versions are published so long after their last day."""
    store, machine = MemoryStorage(), Machine(NOON)
    worker = Worker(store, MECHANISMS, {METRIC: "1d"}, pace=NO_WAIT, clock=machine.clock)
    store.clock = NOON + seconds
    put(store, OF_DAY)

    if folds:
        assert worker.step() == 1
    else:
        with pytest.raises(ClockError):
            worker.step()


def test_a_clock_that_jumps_between_claim_and_fold_leaves_the_entries_to_others(
    store: RedisStorage,
) -> None:
    """At once, and as untried: nothing was wrong with them."""
    put(store, *[ITEM_2] * 3)
    wall = FakeClock(store.now(0))

    class Jumping(SteadyClock):
        def require_near(self, *others: float) -> None:
            super().require_near(*others)
            wall.advance(days=3)  # once the first look, before the claim, is over

    jumping = Jumping(wall, FakeClock(0))
    for _ in range(2 * MAX_DELIVERIES):
        wall.now = float(store.now(0))
        with pytest.raises(ClockError):
            Worker(store, MECHANISMS, EVERY, pace=NO_WAIT, clock=jumping).step()

    folded = sum(Worker(store, MECHANISMS, EVERY).step() for _ in range(2))

    assert (folded, counts(store)[0], quarantined(store)) == (3, 3, 0)


def test_run_waits_for_the_clocks_and_says_how_often() -> None:
    store, machine = MemoryStorage(), Machine(NOON)
    put(store, OF_DAY)
    store.clock = NOON + 2 * SECONDS
    stop, waits = threading.Event(), list[None]()

    def tell() -> None:
        waits.append(None)
        if len(waits) == 3:
            store.clock = NOON

    def beat() -> None:
        if not store.entries:
            stop.set()

    Worker(
        store,
        MECHANISMS,
        {METRIC: "1d"},
        pace=NO_WAIT,
        clock=machine.clock,
        tell_clock=tell,
        beat=beat,
    ).run(stop)

    assert len(waits) == 3
    assert classes(store) == {0}
