"""A step of the worker: what it claims is folded once, set aside, or claimed again."""

from __future__ import annotations

import struct
import threading
from typing import Any

import pytest

from client_sdk.core.epoch import DAY as SECONDS
from client_sdk.mechanisms.items.grr import GRR
from collector.core.cells import Cell
from collector.core.entry import AcceptedColumn, encode
from collector.core.errors import RefusedByStoreError, StorageUnavailableError
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.worker.worker import KILLS, MAX_DELIVERIES, Pace, Worker
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
