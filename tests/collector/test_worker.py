"""A step of the worker: what it claims is folded once, set aside, or claimed again."""

from __future__ import annotations

import threading

import pytest

from client_sdk.mechanisms.grr import GRR
from collector.entry import Accepted, encode
from collector.errors import StorageUnavailableError
from collector.storage import Cell
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.worker import MAX_DELIVERIES, Worker
from tests.support.worker_desk import (
    CELL,
    ITEM_2,
    MECHANISMS,
    METRIC,
    NEWER,
    NO_WAIT,
    OF_NEWER_REGISTRY,
    OUT_OF_RANGE,
    DyingBeforeFold,
    Interfering,
    Overflowing,
    counts,
    put,
)


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


def test_workers_have_names_of_their_own(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    for _ in range(2):
        put(store, OF_NEWER_REGISTRY)  # stays with the worker that claimed it
        Worker(store, MECHANISMS).step()

    streams = [keys.stream(shard) for shard in range(store.shards)]
    consumers = [one for s in streams for one in server.call("XINFO", "CONSUMERS", s, "workers")]
    holders = {one[1] for one in consumers if one[3]}  # name and number of pending entries
    assert len(holders) == 2


def test_a_shard_that_the_store_refuses_does_not_keep_the_others_waiting(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    put(store, *[ITEM_2] * 20)
    server.call("DEL", keys.stream(0))
    server.call("SET", keys.stream(0), "not a stream")

    with pytest.raises(StorageUnavailableError):
        Worker(store, MECHANISMS).step()

    server.call("DEL", keys.stream(0))
    assert store.backlog() == 0
    assert counts(store)[0] > 0


def test_an_entry_whose_counters_are_refused_is_set_aside_after_its_last_try(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    for shard in range(store.shards):
        server.call("LPUSH", keys.tally(shard, CELL), "not counters")
    put(store, ITEM_2)
    worker = Worker(store, MECHANISMS, pace=NO_WAIT)

    for _ in range(MAX_DELIVERIES + 1):
        worker.step()

    assert (store.backlog(), store.quarantined()) == (0, 1)
