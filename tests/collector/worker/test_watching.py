"""Closed epochs are looked at without anybody asking, and operators are told what was found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import pytest

from benchmarks.accuracy.poisoning import BEST, fakes_of
from client_sdk.core.epoch import epoch_label, epoch_of
from client_sdk.registry import Registry
from client_sdk.registry.metric import Metric
from collector.core.cells import Cell, key_source, segment_text
from collector.core.errors import StorageUnavailableError
from collector.storage.connection import Connection
from collector.storage.hashes import MemoryHashes, RedisHashes
from collector.storage.keys import Keys
from collector.storage.records import SuspicionStore
from collector.storage.redis import RedisStorage
from collector.storage.values import COUNTER_SIZE, Index
from collector.worker.poisoning_watch import (
    AGAIN_S,
    KNOWN,
    LEAST_KNOWN,
    MOST_READ,
    NEWEST,
    Watch,
)
from tests.support.device.registries import CATEGORY, file_with
from tests.support.enumeration.seeded import SeededRandomness
from tests.support.store.memory_storage import MemoryStorage
from tests.support.store.stored import queue_one

N: Final = 20_000
DAY: Final = 86_400
TODAY: Final = 20_516
NOON: Final = TODAY * DAY + DAY // 2
LAST: Final = "2026-03-03"  # the day before TODAY
ITEMS: Final = 64
TARGET: Final = 60


def metric_of(every: str = "1d") -> Metric:
    values = ", ".join(f'"{item}"' for item in range(ITEMS))
    fields = {**CATEGORY, "values": f"[{values}]", "mechanism": '"oue"', "every": f'"{every}"'}
    return Registry.from_text(file_with(fields)).metric("m")


METRIC: Final = metric_of()
MONTHLY: Final = metric_of("28d")


def fill(storage: Any, share: float, days: int = 8, metric: Metric = METRIC) -> None:
    """Store *days* closed epochs, half of each late; the last has a *share* of fakes."""
    draw, oracle = np.random.default_rng(20261122), metric.mechanism
    channel: Any = oracle
    p, q = float(channel.channel.p), float(channel.channel.q)
    law = 1 / np.arange(1, ITEMS + 1)
    for back in range(days, 0, -1):
        fakes = round(share * N) if back == 1 else 0
        held = draw.multinomial(N - fakes, law / law.sum())
        tally = draw.binomial(held, p) + draw.binomial(N - fakes - held, q)
        if fakes:
            chance = SeededRandomness(b"best")
            tally = tally + fakes_of(oracle, BEST, (TARGET,), fakes, chance)
        for lateness in (0, 1):
            part = [(int(one) + lateness) // 2 for one in (N, *tally)]
            cell = Cell(metric.digest, epoch_of(metric.every, NOON) - back, "", lateness)
            shard, entry = queue_one(storage)
            storage.fold(shard, [entry], {cell: list(enumerate(part))})


def watch(storage: Any, kept: Any, clock: Callable[[], float] = lambda: NOON) -> Watch:
    return Watch(storage, kept, [METRIC], clock)


def test_fakes_of_a_closed_epoch_are_found_and_kept(
    server: Connection, keys: Keys, store: RedisStorage
) -> None:
    """On every kind of server, and of all reports, late ones too."""
    fill(store, 0.05)
    kept = SuspicionStore(RedisHashes(server, keys.prefix))

    watch(store, kept).look()

    watched = kept.records()[METRIC.digest]
    (texts,) = watched.sentences.values()
    assert list(watched.sentences) == [LAST]
    assert watched.looked == NEWEST
    assert any(f"changed suddenly: '{TARGET}' changed by" in text for text in texts)


def test_epochs_of_four_weeks_are_looked_at_as_days_are() -> None:
    storage, kept = MemoryStorage(), SuspicionStore(MemoryHashes())
    fill(storage, 0.05, metric=MONTHLY)

    Watch(storage, kept, [MONTHLY], lambda: NOON).look()

    watched, last = kept.records()[MONTHLY.digest], epoch_of("28d", NOON) - 1
    assert list(watched.sentences) == [epoch_label("28d", last)]
    assert watched.looked == NEWEST


def test_clean_epochs_leave_nothing(store: RedisStorage) -> None:
    fill(store, 0.0)
    kept = SuspicionStore(MemoryHashes())

    watch(store, kept).look()

    assert kept.records()[METRIC.digest].sentences == {}
    assert kept.records()[METRIC.digest].looked == NEWEST


def test_an_epoch_is_looked_at_when_it_has_closed_and_again_as_reports_come_late() -> None:
    """Law: one look an hour and metric, however many workers there are, and one at each close."""
    storage, kept, now = MemoryStorage(), SuspicionStore(MemoryHashes()), [NOON]
    fill(storage, 0.0, 3)
    looks = []
    moments = [0, 60, AGAIN_S + 60, DAY // 2 + 60]
    for moment in moments:
        now[0] = NOON + moment
        for one in (watch(storage, kept, lambda: now[0]), watch(storage, kept, lambda: now[0])):
            one.look()
            looks.append(kept.records()[METRIC.digest].at - NOON)

    assert looks == [0, 0, 0, 0, AGAIN_S + 60, AGAIN_S + 60, DAY // 2 + 60, DAY // 2 + 60]
    assert kept.records()[METRIC.digest].latest == TODAY


def test_what_is_pruned_is_not_looked_at() -> None:
    storage, kept = MemoryStorage(), SuspicionStore(MemoryHashes())
    fill(storage, 0.05)
    storage.marks[METRIC.digest] = TODAY

    watch(storage, kept).look()

    assert kept.records()[METRIC.digest].looked == 0


class RecordedRanges(MemoryStorage):
    """A store of as many shards as given, which keeps the epochs that it was asked for."""

    def __init__(self, shards: int) -> None:
        super().__init__()
        self.shards = shards  # as a real store has them
        self.asked: list[int] = []

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        self.asked = [*epochs]
        return super().index(metric, self.asked, latest)


@pytest.mark.parametrize("shards", [1, 5_000, 6_000, 1_000_000])
def test_a_look_reads_no_more_than_its_bytes_of_all_shards_together(shards: int) -> None:
    storage = RecordedRanges(shards)
    epoch_bytes = (METRIC.mechanism.tally_size + 1) * COUNTER_SIZE * shards

    watch(storage, SuspicionStore(MemoryHashes())).look()

    fitting = [n for n in range(LEAST_KNOWN, KNOWN + 1) if n * epoch_bytes <= MOST_READ]
    assert len(storage.asked) == max(fitting, default=LEAST_KNOWN)


def test_a_store_that_is_away_ends_no_worker() -> None:
    storage, kept, stop = MemoryStorage(), SuspicionStore(MemoryHashes()), threading.Event()
    storage.failure = StorageUnavailableError("store: away")
    looking = watch(storage, kept)
    stop.set()

    with pytest.raises(StorageUnavailableError):
        looking.look()
    looking.run(stop)

    assert kept.records() == {}


class Unreadable(MemoryStorage):
    """A store in which what is kept of one metric makes the checks fail with *error*."""

    def __init__(self, metric: bytes, error: Exception) -> None:
        super().__init__()
        self._metric, self._error = metric, error

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        if metric == self._metric:
            raise self._error
        return super().index(metric, epochs, latest)


@pytest.mark.parametrize(
    "error", [ValueError("odd"), np.linalg.LinAlgError("Singular matrix"), KeyError(7)], ids=type
)
def test_a_metric_whose_check_fails_keeps_no_other_from_being_looked_at(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    odd, stop = Registry.from_text(file_with(CATEGORY)).metric("m"), threading.Event()
    storage, kept = Unreadable(odd.digest, error), SuspicionStore(MemoryHashes())
    fill(storage, 0.05)
    stop.set()

    Watch(storage, kept, [odd, METRIC], lambda: NOON).run(stop)

    assert list(kept.records()) == [METRIC.digest]
    assert list(kept.records()[METRIC.digest].sentences) == [LAST]
    assert [one.getMessage() for one in caplog.records] == [
        f"metric=m: cannot be looked at: {type(error).__name__}: {error}"
    ]


def test_a_key_that_begins_to_differ_is_told_to_operators_and_nothing_is_excluded() -> None:
    """Its fakes are too few for the checks of all reports together."""
    storage, kept = MemoryStorage(), SuspicionStore(MemoryHashes())
    draw = np.random.default_rng(7)
    channel: Any = METRIC.mechanism
    p, q = float(channel.channel.p), float(channel.channel.q)
    for back in range(8, 0, -1):
        for key in ("aaaaaaaaaaaa", "bbbbbbbbbbbb"):
            fakes = 600 if back == 1 and key == "bbbbbbbbbbbb" else 0
            held = draw.multinomial(N - fakes, np.full(ITEMS, 1 / ITEMS))
            tally = draw.binomial(held, p) + draw.binomial(N - fakes - held, q)
            tally += draw.binomial(fakes, q, ITEMS)
            tally[TARGET] += fakes
            cell = Cell(METRIC.digest, TODAY - back, segment_text(METRIC, {}, key_source(key)))
            storage.put({cell: list(enumerate([N, *map(int, tally)]))})
    before = dict(storage.tallied)

    watch(storage, kept).look()

    texts = kept.records()[METRIC.digest].sentences[LAST]
    assert [text for text in texts if text.startswith("key bbbbbbbbbbbb differs from all other")]
    assert not [text for text in texts if text.startswith("key aaaaaaaaaaaa") and "60" not in text]
    assert storage.tallied == before
    assert storage.exclusions() == {}
