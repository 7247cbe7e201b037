"""Counts of processes on every kind of server."""

from __future__ import annotations

from collector.storage.activity import ActivityRecord, RedisActivity
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage

DAY = 30_000  # in 2052, so that no server forgets it
FIRST = ActivityRecord("web", "0a", {"refused.too-fast": 2, "duplicates.": 1}, 1_700_000_000)
SECOND = ActivityRecord("worker", "0b", {}, 1_700_000_001)


def test_what_processes_tell_is_read_as_it_was_told(
    server: Connection, keys: Keys, store: RedisStorage
) -> None:
    """Told again, it replaces what was there; another day has nothing of it."""
    activity = RedisActivity(server, keys.prefix)
    for record in (ActivityRecord("web", "0a", {"duplicates.": 9}, 1), FIRST, SECOND):
        activity.put(DAY, record)

    found = {record.process: record for record in activity.records(DAY)}

    assert found == {"0a": FIRST, "0b": SECOND}
    assert activity.records(DAY + 1) == []


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
