"""Counts of processes on every kind of server."""

from __future__ import annotations

from dataclasses import replace

import pytest

from collector.operations.telemetry.snapshot import MemoryActivity
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.records import ActivityRecord, ActivityStore, RedisActivity
from collector.storage.redis import RedisStorage
from tests.support.store.servers import EVERY_STORE, MEMORY

DAY = 30_000  # in 2052, so that no server forgets it
FIRST = ActivityRecord("web", "0a", {"refused.too-fast": 2, "duplicates.": 1}, 1_700_000_000)
SECOND = ActivityRecord("worker", "0b", {}, 1_700_000_001)


@pytest.fixture
def activity(server_kind: str, keys: Keys, request: pytest.FixtureRequest) -> ActivityStore:
    """A store of counts in which no process has said anything."""
    if server_kind == MEMORY:
        return MemoryActivity()
    request.getfixturevalue("store")  # which is prepared, and deleted at the end
    return RedisActivity(request.getfixturevalue("server"), keys.prefix)


@EVERY_STORE
def test_what_processes_say_is_read_as_it_was_said(activity: ActivityStore) -> None:
    """Said again, it replaces what was there; another day has nothing of it."""
    for record in (ActivityRecord("web", "0a", {"duplicates.": 9}, 1), FIRST, SECOND):
        activity.put(DAY, record)

    found = {record.process: record for record in activity.records(DAY)}

    assert found == {"0a": FIRST, "0b": SECOND}
    assert activity.records(DAY + 1) == []


@EVERY_STORE
def test_a_count_that_a_process_leaves_out_stays_as_it_was(activity: ActivityStore) -> None:
    """Law: sums of a day never go down, and one name may serve in two roles."""
    activity.put(DAY, FIRST)
    activity.put(DAY, replace(FIRST, counts={"duplicates.": 2}, seen=FIRST.seen + 10))
    activity.put(DAY, replace(SECOND, process=FIRST.process))

    web, worker = sorted(activity.records(DAY), key=lambda record: record.role)

    assert web.counts == {"refused.too-fast": 2, "duplicates.": 2}
    assert (web.seen, worker.counts) == (FIRST.seen + 10, {})


def test_the_counts_of_a_day_are_forgotten(
    server: Connection, keys: Keys, store: RedisStorage
) -> None:
    """A crash loop leaves a few fields a start, for two days."""
    RedisActivity(server, keys.prefix).put(DAY, FIRST)

    assert server.call("TTL", f"{keys.prefix}:activity:{DAY}") > 0


def test_fields_that_are_not_ours_are_passed_over(
    server: Connection, keys: Keys, store: RedisStorage
) -> None:
    """A field that somebody wrote by hand does not end a scrape."""
    activity = RedisActivity(server, keys.prefix)
    activity.put(DAY, FIRST)
    server.call("HSET", f"{keys.prefix}:activity:{DAY}", b"\xff", "x", "web:0c:seen", "-1")

    assert activity.records(DAY) == [FIRST]
