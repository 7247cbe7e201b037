"""The uploads of each hour, and the last moment at which none waited, over all processes."""

from __future__ import annotations

from client_sdk.core.epoch import DAY, HOUR
from collector.operations.telemetry.activity import REFUSED, WEB, Activity
from collector.operations.telemetry.flow import Hour, flow_of
from collector.storage.hashes import MemoryHashes
from collector.storage.records import ActivityStore
from tests.support.device.clock import FakeClock

MIDNIGHT = 20_000 * DAY
FIRST = MIDNIGHT // HOUR - 24  # of the hours that are shown on that day


def counted(store: ActivityStore, clock: FakeClock) -> dict[int, tuple[int, int]]:
    """Return the hours with uploads, from the first one that is shown."""
    hours = flow_of(store, clock()).hours
    return {
        each.hour - FIRST: (each.accepted, each.refused)
        for each in hours
        if each.accepted or each.refused
    }


def test_each_upload_is_in_its_own_hour_whichever_process_counts_and_whenever_it_writes() -> None:
    """Also what came before midnight and was written after it."""
    store, clock = ActivityStore(MemoryHashes()), FakeClock(MIDNIGHT - 1.0)
    first, second = (Activity(WEB, store, clock) for _ in range(2))
    first.share()
    first.accept_upload()
    second.accept_upload()
    second.refuse_upload("too-fast")
    clock.advance(seconds=2)
    first.accept_upload()
    for _ in range(2):
        first.share()
        second.share()
    clock.advance(seconds=HOUR)
    second.refuse_upload("too-fast")
    second.share()

    assert counted(store, clock) == {23: (2, 1), 24: (1, 0), 25: (0, 1)}
    assert first.totals().of(REFUSED) == {"too-fast": 2}


def test_the_hours_of_yesterday_and_today_follow_one_another_to_the_running_one() -> None:
    store, clock = ActivityStore(MemoryHashes()), FakeClock(MIDNIGHT + 5.5 * HOUR)

    hours = flow_of(store, clock()).hours

    assert hours == [Hour(FIRST + i, 0, 0) for i in range(24 + 6)]


def test_a_day_keeps_no_hour_of_the_days_before_it() -> None:
    """Law: what a process holds and writes is bounded, however long it runs."""
    store, clock = ActivityStore(MemoryHashes()), FakeClock(MIDNIGHT)
    activity = Activity(WEB, store, clock)
    for _ in range(5 * 24):
        activity.accept_upload()
        activity.share()
        clock.advance(seconds=HOUR)

    written = [len(record.counts) for day in range(5) for record in store.records(20_000 + day)]
    assert written == [24] * 5


def test_the_last_moment_without_a_waiting_upload_is_that_of_the_last_process_to_see_it() -> None:
    """Also yesterday's, as long as uploads have waited since."""
    store, clock = ActivityStore(MemoryHashes()), FakeClock(MIDNIGHT - 20.0)
    first, second = (Activity(WEB, store, clock) for _ in range(2))
    none = flow_of(store, clock()).empty_at
    first.see_empty(clock() - 5.5)
    second.see_empty(clock() - 9.0)
    first.share()
    second.share()
    clock.advance(seconds=60)

    assert none is None
    assert flow_of(store, clock()).empty_at == MIDNIGHT - 26
