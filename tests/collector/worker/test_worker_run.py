"""The life of a worker: its pace, its rests, and a store that goes away."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from client_sdk.core.epoch import day_of
from collector.core.errors import RefusedByStoreError, StorageUnavailableError
from collector.core.steady_clock import SteadyClock
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import SEEN_DAYS, RedisStorage
from collector.worker.worker import Pace, Worker
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.worker_desk import (
    CELL,
    EVERY,
    ITEM_2,
    MECHANISMS,
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
    thread.join(timeout=30)

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
        server.call("SADD", keys.seen(0, day), b"id")
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
