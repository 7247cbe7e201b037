"""The worker: each step folds once, sets aside or claims again; its pace, its rests, its end."""

from __future__ import annotations

import struct
import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from client_sdk.core.epoch import DAY as SECONDS
from client_sdk.core.epoch import day_of
from client_sdk.mechanisms.items.grr import GRR
from collector.core.cells import MARGIN, Cell
from collector.core.entry import AcceptedColumn, encode
from collector.core.errors import ClockError, RefusedByStoreError, StorageUnavailableError
from collector.core.steady_clock import LASTING_S, SteadyClock
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import SEEN_DAYS, RedisStorage
from collector.worker.worker import KILLS, MAX_DELIVERIES, Pace, Worker
from tests.support.device.clock import FakeClock
from tests.support.patience import PATIENCE
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.stored import quarantined, tallies
from tests.support.store.worker_desk import (
    CELL,
    DAY,
    EVERY,
    ITEM_2,
    MECHANISMS,
    METRIC,
    NEWER,
    NO_WAIT,
    OF_NEWER_REGISTRY,
    OUT_OF_RANGE,
    AtMidnight,
    DyingBeforeFold,
    Interfering,
    Overflowing,
    Refusing,
    counts,
    put,
)


def test_a_step_folds_everything_that_waits(store: RedisStorage) -> None:
    put(store, *[ITEM_2] * 7, encode([AcceptedColumn(CELL, bytes([0, 1]))]))

    folded = Worker(store, MECHANISMS, EVERY).step()

    assert folded == 8
    assert counts(store) == [9, 1, 1, 7, 0, 0]
    assert store.backlog() == 0


def test_a_step_on_an_empty_store_folds_nothing(store: RedisStorage) -> None:
    assert Worker(store, MECHANISMS, EVERY).step() == 0


def test_a_worker_that_dies_between_claim_and_fold_loses_nothing(store: RedisStorage) -> None:
    put(store, *[ITEM_2] * 5)
    with pytest.raises(SystemExit):
        Worker(DyingBeforeFold(store), MECHANISMS, EVERY).step()  # type: ignore[arg-type]  # by getattr
    backlog = store.backlog()

    for _ in range(2):
        Worker(store, MECHANISMS, EVERY, pace=NO_WAIT).step()

    assert backlog == 5
    assert counts(store) == [5, 0, 0, 5, 0, 0]


def test_two_workers_that_steal_from_each_other_fold_once(store: RedisStorage) -> None:
    put(store, *[ITEM_2] * 50)
    workers = [Worker(store, MECHANISMS, EVERY, pace=NO_WAIT) for _ in range(2)]

    threads = [threading.Thread(target=fold_until_empty, args=(w, store)) for w in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert counts(store) == [50, 0, 0, 50, 0, 0]


def fold_until_empty(worker: Worker, store: RedisStorage) -> None:
    while store.backlog():
        worker.step()


def test_entries_folded_by_a_colleague_are_dropped_and_the_rest_tallied_again() -> None:
    store = Interfering(taken=2)
    put(store, *[ITEM_2] * 5)

    folded = Worker(store, MECHANISMS, EVERY).step()

    assert folded == 3
    assert [len(ids) for ids in store.asked] == [5, 3]
    assert store.tallied[CELL] == {0: 3, 3: 3}


def test_a_batch_that_a_colleague_folded_whole_is_forgotten() -> None:
    store = Interfering(taken=5)
    put(store, *[ITEM_2] * 5)

    assert Worker(store, MECHANISMS, EVERY).step() == 0
    assert len(store.asked) == 1


def test_a_corrupt_entry_is_set_aside_at_once_and_the_others_fold(store: RedisStorage) -> None:
    put(store, ITEM_2, b"not an entry", b"", ITEM_2[:-1] + b"\xff", ITEM_2)

    Worker(store, MECHANISMS, EVERY).step()

    assert counts(store)[0] == 2
    assert (store.backlog(), quarantined(store)) == (0, 3)


def test_an_entry_that_cannot_be_folded_blocks_nobody_and_is_set_aside_in_the_end(
    store: RedisStorage,
) -> None:
    put(store, ITEM_2, OUT_OF_RANGE, ITEM_2)
    worker = Worker(store, MECHANISMS, EVERY, pace=NO_WAIT)

    worker.step()
    after_one = counts(store)[0], store.backlog(), quarantined(store)
    for _ in range(MAX_DELIVERIES - 2):
        worker.step()
    before_last = quarantined(store)
    worker.step()

    assert after_one == (2, 1, 0)
    assert before_last == 0
    assert (counts(store)[0], store.backlog(), quarantined(store)) == (2, 0, 1)


def test_a_full_counter_stops_its_own_entries_only() -> None:
    other = Cell(METRIC, 4, "")
    store = Overflowing(full=CELL)
    put(store, ITEM_2, encode([AcceptedColumn(other, bytes([1]))]))
    worker = Worker(store, MECHANISMS, EVERY, pace=NO_WAIT)

    for _ in range(MAX_DELIVERIES):
        worker.step()

    assert store.tallied == {other: {0: 1, 2: 1}}
    assert list(store.aside.values()) == ["TallyOverflowError"]


def test_a_right_that_a_worker_lacks_sets_no_entry_aside() -> None:
    """Law: what an operator has forgotten is no fault of the entries, so none is blamed."""
    store = Refusing("NOPERM")
    put(store, ITEM_2, ITEM_2)
    worker = Worker(store, MECHANISMS, EVERY, pace=NO_WAIT)

    for _ in range(MAX_DELIVERIES):
        with pytest.raises(RefusedByStoreError, match="NOPERM"):
            worker.step()

    assert store.aside == {}
    assert [one.deliveries for one in store.claim(0, "another", 9, 0)] == [1, 1]


def test_a_tally_that_cannot_be_added_to_sets_its_entries_aside() -> None:
    """The control of the test above: another refusal may be of the entry."""
    store = Refusing("WRONGTYPE")
    put(store, ITEM_2)
    worker = Worker(store, MECHANISMS, EVERY, pace=NO_WAIT)

    for _ in range(MAX_DELIVERIES):
        worker.step()

    assert list(store.aside.values()) == ["RefusedByStoreError"]


def test_entries_of_a_newer_registry_stay_for_a_newer_worker(
    store: RedisStorage, caplog: pytest.LogCaptureFixture
) -> None:
    put(store, ITEM_2, OF_NEWER_REGISTRY)
    old = Worker(store, MECHANISMS, EVERY, pace=NO_WAIT)
    for _ in range(2 * MAX_DELIVERIES):
        old.step()
    left = counts(store)[0], store.backlog(), quarantined(store)

    new = Worker(store, {**MECHANISMS, NEWER: GRR("1", 2)}, EVERY, pace=NO_WAIT)
    for _ in range(2):
        new.step()

    assert left == (1, 1, 0)
    assert (counts(store)[0], store.backlog()) == (2, 0)
    assert caplog.text.count("is in no registry of this worker") == 1


def test_what_a_worker_does_not_know_keeps_nobody_from_anything(store: RedisStorage) -> None:
    """It leaves to others what it handed back, which they have at once, and takes what is new."""
    put(store, *[OF_NEWER_REGISTRY] * 20)
    old = Worker(store, MECHANISMS, EVERY, pace=Pace(most_entries=4))
    new = Worker(store, {**MECHANISMS, NEWER: GRR("1", 2)}, EVERY)
    for _ in range(20):
        old.step()
    put(store, *[ITEM_2] * 8)

    folded = [sum(worker.step() for _ in range(3)) for worker in (old, new)]

    assert folded == [8, 20]


def test_workers_have_names_of_their_own(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    for _ in range(2):
        put(store, OF_NEWER_REGISTRY)
        Worker(store, MECHANISMS, EVERY).step()

    streams = [keys.stream(shard) for shard in range(store.shards)]
    consumers = [one for s in streams for one in server.call("XINFO", "CONSUMERS", s, "workers")]
    assert len({one[1] for one in consumers}) == 2


def test_a_shard_that_the_store_refuses_does_not_keep_the_others_waiting(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    put(store, *[ITEM_2] * 20)
    server.call("DEL", keys.stream(0))
    server.call("SET", keys.stream(0), "not a stream")

    worker = Worker(store, MECHANISMS, EVERY)

    folded = worker.step()  # and the next one follows at once: there may be more

    assert folded == counts(store)[0] > 0
    with pytest.raises(StorageUnavailableError):
        worker.step()
    server.call("DEL", keys.stream(0))
    assert store.backlog() == 0


def test_an_entry_whose_counters_are_refused_is_set_aside_after_its_last_try(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    for shard in range(store.shards):
        server.call("LPUSH", keys.tally(shard, CELL), "not counters")
    put(store, ITEM_2)
    worker = Worker(store, MECHANISMS, EVERY, pace=NO_WAIT)

    for _ in range(MAX_DELIVERIES + 1):
        worker.step()

    assert (store.backlog(), quarantined(store)) == (0, 1)


class Killing(GRR):
    """A mechanism whose code ends the process on one payload, as a fault in native code would."""

    def tally(self, payloads: bytes, np: Any) -> Any:
        if POISON in payloads:
            raise SystemExit
        return super().tally(payloads, np)


POISON = b"\x04"


def test_an_entry_that_kills_its_workers_is_set_aside_and_its_neighbours_are_folded(
    store: RedisStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """However often the workers die, only the culprit is set aside: unread, after its last try."""
    put(store, *[ITEM_2] * 9, encode([AcceptedColumn(CELL, POISON)]), *[ITEM_2] * 9)
    mechanisms = {METRIC: Killing("1", 5)}
    deaths = 0
    for _ in range(100):
        if not store.backlog():
            break
        try:
            Worker(store, mechanisms, EVERY, pace=NO_WAIT).step()
        except SystemExit:
            deaths += 1

    assert deaths == MAX_DELIVERIES
    assert counts(store) == [18, 0, 0, 18, 0, 0]
    assert (store.backlog(), quarantined(store)) == (0, 1)
    assert f"is set aside: {KILLS}" in caplog.text


def test_an_entry_delivered_too_often_is_not_even_decoded(store: RedisStorage) -> None:
    """A sound one would have been folded: so it was not looked at."""
    put(store, ITEM_2)
    for _ in range(MAX_DELIVERIES):
        for shard in range(store.shards):
            store.claim(shard, "dying", 9, 0)

    Worker(store, MECHANISMS, EVERY, pace=NO_WAIT).step()

    assert counts(store) == [0] * 6
    assert (store.backlog(), quarantined(store)) == (0, 1)


def test_a_fold_near_the_end_of_a_counter_has_no_partial_effect_and_alarms(
    store: RedisStorage, server: Connection, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten reports onto 2^63 - 3: no cell and no count changes, and the entry is kept aside."""
    near_the_end = struct.pack(">4q", *[(1 << 63) - 3] * 4)
    for shard in range(store.shards):
        server.call("SET", keys.tally(shard, CELL), near_the_end)
    put(store, encode([AcceptedColumn(CELL, bytes([2]) * 10), AcceptedColumn(OTHER, bytes([1]))]))
    worker = Worker(store, MECHANISMS, EVERY, pace=NO_WAIT)

    for _ in range(MAX_DELIVERIES):
        worker.step()

    left = [server.call("GET", keys.tally(shard, CELL)) for shard in range(store.shards)]
    assert left == [near_the_end] * store.shards
    assert tallies(store, METRIC, [OTHER.epoch]) == {}
    assert sum(one.folded.uploads for one in store.counters()) == 0
    assert (store.backlog(), quarantined(store)) == (0, 1)
    assert "is set aside: TallyOverflowError" in caplog.text


OTHER = Cell(METRIC, 4, "")


def test_a_fold_is_of_the_class_of_the_day_on_which_it_happens() -> None:
    """The day of the store: reports of one entry may be of several classes."""
    store = MemoryStorage()
    store.clock = (DAY + 3) * SECONDS
    columns = [
        AcceptedColumn(Cell(METRIC, DAY + offset, ""), bytes([1])) for offset in (0, 1, 2, 3)
    ]
    put(store, encode(columns))

    Worker(store, MECHANISMS, {METRIC: "1d"}).step()

    found = {cell.epoch - DAY: cell.lateness for cell in store.tallied}
    assert found == {0: 1, 1: 1, 2: 0, 3: 0}
    assert store.counters()[0].late_reports == 2


def test_a_fold_that_midnight_overtakes_is_classified_anew() -> None:
    """Else it would change a version that is already published."""
    store = AtMidnight()
    store.clock = (DAY + 2) * SECONDS - 1
    put(store, encode([AcceptedColumn(Cell(METRIC, DAY, ""), bytes([1]))]))

    folded = Worker(store, MECHANISMS, {METRIC: "1d"}).step()

    assert folded == 1
    assert list(store.tallied) == [Cell(METRIC, DAY, "", 1)]


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
