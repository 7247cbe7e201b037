"""The worker: what it claims is folded once, set aside, or claimed again."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence

import pytest

from client_sdk.mechanisms.grr import GRR
from collector.entry import Accepted, encode
from collector.errors import StorageUnavailableError, TallyOverflowError
from collector.storage import Cell, Claimed, Increments
from collector.storage.redis import RedisStorage
from collector.tally import merge
from collector.worker import MAX_DELIVERIES, Pace, Worker
from tests.support.memory_storage import MemoryStorage

METRIC, NEWER = b"\x01" * 6, b"\x02" * 6
CELL = Cell(METRIC, 3, "")
MECHANISMS = {METRIC: GRR("1", 5)}
DAY = 20_000
NO_WAIT = Pace(min_idle_ms=0, idle_s=0, first_retry_s=0, last_retry_s=0)
ITEM_2 = encode([Accepted(CELL, bytes([2]))])
OUT_OF_RANGE = encode([Accepted(CELL, bytes([99]))])
OF_NEWER_REGISTRY = encode([Accepted(CELL, bytes([2])), Accepted(Cell(NEWER, 3, ""), b"\0")])


def put(store: RedisStorage | MemoryStorage, *entries: bytes) -> None:
    for entry in entries:
        store.append(secrets.token_bytes(16), DAY, entry)


def counts(store: RedisStorage) -> list[int]:
    """Return n and the tally of CELL."""
    n, tally = merge(store.tallies(METRIC, [3]).get((3, ""), []), 5)
    return [n, *tally.tolist()]


class DyingBeforeFold:
    """A store whose worker is killed between claim and fold."""

    def __init__(self, inner: RedisStorage) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    def fold(self, shard: int, ids: Sequence[str], increments: Increments) -> tuple[str, ...]:
        raise SystemExit


class Interfering(MemoryStorage):
    """A store in which a colleague folds entries before us."""

    def __init__(self, taken: int) -> None:
        super().__init__()
        self.taken = taken
        self.asked: list[list[str]] = []

    def fold(self, shard: int, ids: Sequence[str], increments: Increments) -> tuple[str, ...]:
        self.asked.append(list(ids))
        for name in list(self.entries)[: self.taken]:
            del self.entries[name]
        self.taken = 0
        return super().fold(shard, ids, increments)


class Overflowing(MemoryStorage):
    """A store in which one counter is full; counts deliveries as a real one does."""

    def __init__(self, full: Cell) -> None:
        super().__init__()
        self.full = full
        self.deliveries = 0

    def claim(self, shard: int, consumer: str, count: int, min_idle_ms: int) -> list[Claimed]:
        self.deliveries += 1
        claimed = super().claim(shard, consumer, count, min_idle_ms)
        return [Claimed(one.id, one.entry, self.deliveries) for one in claimed]

    def fold(self, shard: int, ids: Sequence[str], increments: Increments) -> tuple[str, ...]:
        if self.full in increments:
            raise TallyOverflowError("store: a counter would leave its range")
        return super().fold(shard, ids, increments)


def test_a_step_folds_everything_that_waits(store: RedisStorage) -> None:
    put(store, *[ITEM_2] * 7, encode([Accepted(CELL, bytes([0, 1]))]))

    folded = Worker(store, MECHANISMS).step()

    assert folded == 8
    assert counts(store) == [9, 1, 1, 7, 0, 0]
    assert store.backlog() == 0


def test_a_step_on_an_empty_store_folds_nothing(store: RedisStorage) -> None:
    assert Worker(store, MECHANISMS).step() == 0


def test_a_worker_that_dies_between_claim_and_fold_loses_nothing(store: RedisStorage) -> None:
    put(store, *[ITEM_2] * 5)
    with pytest.raises(SystemExit):
        Worker(DyingBeforeFold(store), MECHANISMS).step()  # type: ignore[arg-type]  # by getattr
    backlog = store.backlog()

    for _ in range(2):
        Worker(store, MECHANISMS, pace=NO_WAIT).step()

    assert backlog == 5
    assert counts(store) == [5, 0, 0, 5, 0, 0]


def test_two_workers_that_steal_from_each_other_fold_once(store: RedisStorage) -> None:
    put(store, *[ITEM_2] * 50)
    workers = [Worker(store, MECHANISMS, pace=NO_WAIT) for _ in range(2)]

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

    folded = Worker(store, MECHANISMS).step()

    assert folded == 3
    assert [len(ids) for ids in store.asked] == [5, 3]
    assert store.counters[CELL] == {0: 3, 3: 3}


def test_a_batch_that_a_colleague_folded_whole_is_forgotten() -> None:
    store = Interfering(taken=5)
    put(store, *[ITEM_2] * 5)

    assert Worker(store, MECHANISMS).step() == 0
    assert len(store.asked) == 1


def test_a_corrupt_entry_is_set_aside_at_once_and_the_others_fold(store: RedisStorage) -> None:
    put(store, ITEM_2, b"not an entry", b"", ITEM_2[:-1] + b"\xff", ITEM_2)

    Worker(store, MECHANISMS).step()

    assert counts(store)[0] == 2
    assert (store.backlog(), store.quarantined()) == (0, 3)


def test_an_entry_that_cannot_be_folded_blocks_nobody_and_is_set_aside_in_the_end(
    store: RedisStorage,
) -> None:
    put(store, ITEM_2, OUT_OF_RANGE, ITEM_2)
    worker = Worker(store, MECHANISMS, pace=NO_WAIT)

    worker.step()
    after_one = counts(store)[0], store.backlog(), store.quarantined()
    for _ in range(MAX_DELIVERIES - 2):
        worker.step()
    before_last = store.quarantined()
    worker.step()

    assert after_one == (2, 1, 0)
    assert before_last == 0
    assert (counts(store)[0], store.backlog(), store.quarantined()) == (2, 0, 1)


def test_a_full_counter_stops_its_own_entries_only() -> None:
    other = Cell(METRIC, 4, "")
    store = Overflowing(full=CELL)
    put(store, ITEM_2, encode([Accepted(other, bytes([1]))]))
    worker = Worker(store, MECHANISMS)

    for _ in range(MAX_DELIVERIES):
        worker.step()

    assert store.counters == {other: {0: 1, 2: 1}}
    assert list(store.aside.values()) == ["TallyOverflowError"]


def test_entries_of_a_newer_registry_stay_for_a_newer_worker(
    store: RedisStorage, caplog: pytest.LogCaptureFixture
) -> None:
    put(store, ITEM_2, OF_NEWER_REGISTRY)
    old = Worker(store, MECHANISMS, pace=NO_WAIT)
    for _ in range(2 * MAX_DELIVERIES):
        old.step()
    left = counts(store)[0], store.backlog(), store.quarantined()

    new = Worker(store, {**MECHANISMS, NEWER: GRR("1", 2)}, pace=NO_WAIT)
    for _ in range(2):
        new.step()

    assert left == (1, 1, 0)
    assert (counts(store)[0], store.backlog()) == (2, 0)
    assert caplog.text.count("is in no registry of this worker") == 1


def test_run_folds_until_it_is_stopped_and_leaves_no_name_behind(store: RedisStorage) -> None:
    put(store, *[ITEM_2] * 3)
    stop = threading.Event()
    beats: list[None] = []

    def beat() -> None:
        beats.append(None)
        if len(beats) == 5:
            stop.set()

    Worker(store, MECHANISMS, pace=NO_WAIT, beat=beat).run(stop)

    assert len(beats) == 5
    assert counts(store)[0] == 3


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

    Worker(store, MECHANISMS, pace=NO_WAIT, beat=beat).run(stop)

    assert len(rounds) == 5
    assert store.counters[CELL] == {0: 1, 3: 1}


def test_run_ends_although_the_store_is_away() -> None:
    store = MemoryStorage()
    store.failure = StorageUnavailableError("store: away")
    stop = threading.Event()

    Worker(store, MECHANISMS, pace=NO_WAIT, beat=stop.set).run(stop)

    assert stop.is_set()


def test_a_rest_ends_when_the_worker_is_stopped() -> None:
    stop = threading.Event()
    worker = Worker(MemoryStorage(), MECHANISMS, pace=Pace(idle_s=3_600))
    thread = threading.Thread(target=worker.run, args=(stop,))
    thread.start()
    stop.set()
    thread.join(timeout=30)

    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("count", "entries", "size", "expected"),
    [
        (16, 0, 0, 16),  # nothing was there
        (16, 16, 1_600, 32),  # small ones: twice as many
        (200, 200, 20_000, 256),  # up to the limit
        (256, 256, 256 * 1_000_000, 16),  # large ones: as many as aimed at
        (16, 2, 2 * 20_000_000, 1),  # very large ones: one at a time
        (1, 1, 0, 2),
    ],
)
def test_pace_follows_the_size_of_entries(
    count: int, entries: int, size: int, expected: int
) -> None:
    assert Pace(batch_bytes=16_000_000).next_count(count, entries, size) == expected


def test_workers_have_names_of_their_own(store: RedisStorage) -> None:
    put(store, *[ITEM_2] * 4)
    claimed = [Worker(store, MECHANISMS) for _ in range(2)]

    assert sum(worker.step() for worker in claimed) == 4
