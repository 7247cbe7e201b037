"""Processes count apart and tell together: every process knows the sums of the day."""

from __future__ import annotations

import threading
from dataclasses import replace

from client_sdk.core.epoch import DAY, day_of
from collector.core.errors import StorageFullError
from collector.intake.validation import PAYLOAD_SIZE, UNKNOWN_METRIC, Rejection
from collector.operations.telemetry.activity import (
    ALIVE_S,
    DUPLICATES,
    FOLD_BOUNDS,
    FOLD_US,
    FOLDS,
    REFUSED,
    REJECTED,
    WEB,
    WORKER,
    Activity,
    SharingThread,
    alive_among,
    granted_by,
)
from collector.storage.hashes import MemoryHashes
from collector.storage.records import ActivityRecord, ActivityStore
from tests.support.device.clock import FakeClock

REJECTED_TWICE = (Rejection(0, PAYLOAD_SIZE, 3), Rejection(1, UNKNOWN_METRIC, 1))


class Full(ActivityStore):
    """A store that takes no writes while ``is_full``."""

    is_full = False

    def put(self, day: int, record: ActivityRecord) -> None:
        if self.is_full:
            raise StorageFullError("store: is out of memory")
        super().put(day, record)


def test_the_totals_are_the_sums_over_all_processes_whichever_is_asked() -> None:
    """Whoever answers a scrape tells the same, once all have shared."""
    store, clock = ActivityStore(MemoryHashes()), FakeClock()
    first, second = (Activity(WEB, store, clock) for _ in range(2))

    first.judged(REJECTED_TWICE, first=True)
    second.judged(REJECTED_TWICE, first=True)
    second.add(REFUSED, "too-fast")
    for one in (first, second):
        one.share()

    assert first.totals() == second.totals()
    assert first.totals().of(REJECTED) == {PAYLOAD_SIZE: 6, UNKNOWN_METRIC: 2}
    assert first.totals().of(REFUSED) == {"too-fast": 1}


def test_sharing_again_counts_nothing_twice() -> None:
    """A write whose answer was lost is repeated."""
    activity = Activity(WEB, ActivityStore(MemoryHashes()), FakeClock())
    activity.add(REFUSED, "overloaded", 5)

    for _ in range(3):
        activity.share()

    assert activity.totals().of(REFUSED) == {"overloaded": 5}


def test_a_duplicate_is_counted_once_and_its_rejections_are_not() -> None:
    """They were counted when the upload was seen first."""
    activity = Activity(WEB, ActivityStore(MemoryHashes()), FakeClock())

    activity.judged(REJECTED_TWICE, first=False)

    assert activity.totals().of(DUPLICATES) == {"": 1}
    assert activity.totals().of(REJECTED) == {}


def test_a_new_day_begins_at_zero_with_what_was_not_yet_shared() -> None:
    """Each count is told on exactly one day."""
    store, clock = ActivityStore(MemoryHashes()), FakeClock()
    activity = Activity(WEB, store, clock)
    activity.add(REFUSED, "shared", 2)
    activity.share()
    yesterday = day_of(clock())
    activity.add(REFUSED, "kept")
    clock.advance(days=1)

    today = activity.totals()

    assert today.of(REFUSED) == {"kept": 1}
    assert [told.counts for told in store.records(yesterday)] == [{f"{REFUSED}.shared": 2}]


def test_a_store_that_is_full_loses_no_count() -> None:
    """What could not be told is told the next time."""
    store = Full(MemoryHashes())
    activity = Activity(WEB, store, FakeClock())
    store.is_full = True
    activity.add(REFUSED, "store-full", 4)
    activity.share()
    store.is_full = False

    assert activity.totals().of(REFUSED) == {"store-full": 4}


def test_a_process_is_alive_until_it_has_been_silent_for_a_minute() -> None:
    """Also over midnight, when its sign of life is in the hash of the day before."""
    store = ActivityStore(MemoryHashes())
    clock = FakeClock(20_000 * DAY - ALIVE_S / 2)
    Activity(WORKER, store, clock).share()
    asked = Activity(WEB, store, clock)

    clock.advance(seconds=ALIVE_S)
    soon = asked.totals().alive
    clock.advance(seconds=1)
    late = asked.totals().alive

    assert soon == {WEB: 1, WORKER: 1}
    assert late == {WEB: 1, WORKER: 0}


def test_a_fold_falls_into_the_bucket_of_its_time() -> None:
    """A bound belongs to the bucket below it, as Prometheus has it."""
    activity = Activity(WORKER, ActivityStore(MemoryHashes()), FakeClock())

    for seconds in (0.001, FOLD_BOUNDS[0], FOLD_BOUNDS[0] + 0.001, 60.0):
        activity.folded(seconds)

    assert activity.totals().of(FOLDS) == {"0": 2, "1": 1, str(len(FOLD_BOUNDS)): 1}
    assert activity.totals().of(FOLD_US) == {"": 60_012_000}


def test_threads_that_count_at_once_lose_nothing() -> None:
    """The counts are exact, as the store's are."""
    activity = Activity(WEB, ActivityStore(MemoryHashes()), FakeClock())

    def count() -> None:
        for _ in range(2_000):
            activity.add(REFUSED, "any")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert activity.totals().of(REFUSED) == {"any": 8_000}


def test_a_process_that_stops_in_good_order_takes_no_count_with_it() -> None:
    """What it counted since its last sharing is told at the end."""
    store, clock = ActivityStore(MemoryHashes()), FakeClock()
    activity = Activity(WEB, store, clock)
    sharing = SharingThread(activity)
    sharing.start()
    activity.add(REFUSED, "too-fast", 3)

    sharing.stop()

    [told] = store.records(day_of(clock()))
    assert told.counts == {f"{REFUSED}.too-fast": 3}


def test_nothing_of_a_process_names_its_machine() -> None:
    """Two processes of one machine have nothing in common but their role."""
    store, clock = ActivityStore(MemoryHashes()), FakeClock()
    for _ in range(2):
        Activity(WEB, store, clock).share()

    first, second = store.records(day_of(clock()))

    assert replace(first, process=second.process) == second
    assert first.process != second.process


def test_a_process_that_stops_in_good_order_is_not_alive_any_more() -> None:
    """Nor by what it told yesterday, a minute ago."""
    store, clock = ActivityStore(MemoryHashes()), FakeClock()
    clock.now = (day_of(clock()) + 1) * DAY - 20.0
    stays, leaves = (Activity(WORKER, store, clock) for _ in range(2))
    for activity in (stays, leaves):
        activity.share()
    before = alive_among(store, clock())
    clock.now += 30.0

    SharingThread(leaves).stop()

    assert (before[WORKER], alive_among(store, clock())[WORKER]) == (2, 1)


def test_what_the_settings_of_those_that_serve_open_is_told_while_they_live() -> None:
    store, clock = ActivityStore(MemoryHashes()), FakeClock()
    web = Activity(WEB, store, clock)
    web.grant("report", 2)
    web.grant("operate", 0)

    web.share()
    told = granted_by(store, clock())
    web.leave()

    assert told == {"report": 2, "operate": 0}
    assert granted_by(store, clock()) == {}
