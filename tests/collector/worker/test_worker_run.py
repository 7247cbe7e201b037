"""The life of a worker: its pace and rests, and clocks and stores that go away."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from client_sdk.core.epoch import DAY as SECONDS
from client_sdk.core.epoch import day_of
from collector.core.cells import MARGIN, Cell
from collector.core.entry import AcceptedColumn, encode
from collector.core.errors import ClockError, RefusedByStoreError, StorageUnavailableError
from collector.core.steady_clock import LASTING_S, SteadyClock
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import SEEN_DAYS, RedisStorage
from collector.worker.worker import MAX_DELIVERIES, Pace, Worker
from tests.support.device.clock import FakeClock
from tests.support.patience import PATIENCE
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.stored import quarantined
from tests.support.store.worker_desk import (
    CELL,
    DAY,
    EVERY,
    ITEM_2,
    MECHANISMS,
    METRIC,
    NO_WAIT,
    counts,
    put,
)


def test_run_folds_until_it_is_stopped_and_leaves_no_name_behind(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    put(store, *[ITEM_2] * 3)
    stop = threading.Event()
    beats: list[None] = []

    def beat() -> None:
        beats.append(None)
        if len(beats) == 5:
            stop.set()

    Worker(store, MECHANISMS, EVERY, pace=NO_WAIT, beat=beat).run(stop)

    streams = [keys.stream(shard) for shard in range(store.shards)]
    assert len(beats) == 5
    assert counts(store)[0] == 3
    assert [server.call("XINFO", "CONSUMERS", name, "workers") for name in streams] == [[], []]


def test_run_survives_a_store_that_is_away_and_folds_when_it_is_back() -> None:
    store = MemoryStorage()
    put(store, ITEM_2)
    store.failure = StorageUnavailableError("store: away")
    stop = threading.Event()
    rounds: list[None] = []

    def beat() -> None:
        rounds.append(None)
        if len(rounds) == 4:
            store.failure = None
        if not store.entries:
            stop.set()

    Worker(store, MECHANISMS, EVERY, pace=NO_WAIT, beat=beat).run(stop)

    assert len(rounds) == 5
    assert store.tallied[CELL] == {0: 1, 3: 1}


def test_run_ends_although_the_store_is_away() -> None:
    store = MemoryStorage()
    store.failure = StorageUnavailableError("store: away")
    stop = threading.Event()

    Worker(store, MECHANISMS, EVERY, pace=NO_WAIT, beat=stop.set).run(stop)

    assert stop.is_set()


def test_a_rest_ends_when_the_worker_is_stopped() -> None:
    stop = threading.Event()
    worker = Worker(MemoryStorage(), MECHANISMS, EVERY, pace=Pace(idle_s=3_600))
    thread = threading.Thread(target=worker.run, args=(stop,))
    thread.start()
    stop.set()
    thread.join(timeout=PATIENCE)

    assert not thread.is_alive()


def test_run_forgets_the_names_of_killed_workers(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """Those that hold nothing; else the list of workers would grow for ever."""
    for shard in range(store.shards):
        store.append(shard.to_bytes(8, "big") + bytes(8), 30_000, b"entry", 1)
        [claimed] = store.claim(shard, "killed", 1, 3_600_000)
        store.fold(shard, [claimed.id], {CELL: [(0, 1)]})
    stop = threading.Event()

    Worker(store, MECHANISMS, EVERY, pace=replace(NO_WAIT, forgotten_ms=0), beat=stop.set).run(stop)

    streams = [keys.stream(shard) for shard in range(store.shards)]
    assert [server.call("XINFO", "CONSUMERS", name, "workers") for name in streams] == [[], []]


class MayNotForget(MemoryStorage):
    """A store whose user has the rights of the release before."""

    def forget_ids(self, shard: int, now: float) -> int:
        raise RefusedByStoreError("NOPERM")


def real_clock() -> SteadyClock:
    return SteadyClock(time.time, time.monotonic)


def test_run_deletes_the_ids_of_days_from_which_no_upload_is_taken(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    today = day_of(store.now(0))
    for day in (today - SEEN_DAYS, today - SEEN_DAYS + 1):
        server.call("HSET", keys.seen(0, day), "first", 16, "levels", 1)
    stop = threading.Event()

    Worker(store, MECHANISMS, EVERY, pace=NO_WAIT, clock=real_clock(), beat=stop.set).run(stop)

    kept = [server.call("EXISTS", keys.seen(0, today - SEEN_DAYS + later)) for later in (0, 1)]
    assert kept == [0, 1]


def test_run_folds_although_it_may_not_delete_ids(caplog: pytest.LogCaptureFixture) -> None:
    """As after an upgrade whose new rights were not loaded: memory fills, and no report waits."""
    store = MayNotForget()
    store.clock = int(time.time())
    put(store, ITEM_2)
    stop = threading.Event()

    Worker(store, MECHANISMS, EVERY, pace=NO_WAIT, clock=real_clock(), beat=stop.set).run(stop)

    assert store.backlog() == 0
    assert caplog.text.count("upload ids are not forgotten") == 1


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
