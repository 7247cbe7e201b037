"""Credentials, their usage, counts of processes and suspicions, on every kind of server."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from operator import itemgetter

import pytest

from collector.storage.connection import Connection
from collector.storage.hashes import Hashes, MemoryHashes, RedisHashes
from collector.storage.keys import Keys
from collector.storage.records import (
    BYTES_BEGUN,
    QUESTIONS_ASKED,
    REPORTS_SENT,
    UPLOADS_SENT,
    ActivityRecord,
    ActivityStore,
    CredentialStore,
    SuspicionStore,
    Usage,
    Verdict,
    WatchCursor,
    WatchLedger,
    WatchMessage,
    WatchRecord,
    WatchSeries,
    WatchStore,
)
from collector.storage.redis import RedisStorage
from tests.support.known import known
from tests.support.store.servers import EVERY_STORE, MEMORY

DAY = 30_000  # in 2052, so that no server forgets it
FIRST, SECOND = b"d" * 32, b"e" * 32


@pytest.fixture
def credentials(hashes: Hashes) -> CredentialStore:
    return CredentialStore(hashes)


@EVERY_STORE
def test_a_record_is_kept_in_place_of_what_was_before(credentials: CredentialStore) -> None:
    assert credentials.records() == {}

    for digest, record in ((FIRST, "old"), (SECOND, "other"), (FIRST, "new")):
        credentials.put(digest, record)

    assert credentials.records() == {FIRST: b"new", SECOND: b"other"}


@EVERY_STORE
def test_a_record_is_replaced_only_if_it_is_the_one_that_was_read(
    credentials: CredentialStore,
) -> None:
    credentials.put(FIRST, "first")

    replaced = [credentials.replace(FIRST, b"first", word) for word in ("second", "third")]

    assert replaced == [True, False]
    assert not credentials.replace(SECOND, b"", "new")
    assert credentials.records() == {FIRST: b"second"}


@EVERY_STORE
@pytest.mark.parametrize(
    "usage", [REPORTS_SENT, UPLOADS_SENT, BYTES_BEGUN, QUESTIONS_ASKED], ids=itemgetter(0)
)
def test_the_use_of_a_day_is_the_sum_over_processes_each_counted_once(
    credentials: CredentialStore, usage: Usage
) -> None:
    """Law: a process says sums, so what it says twice counts once; it sees those of all others."""
    say = partial(credentials.share, usage)

    assert say(DAY, "one", {FIRST: 3}) == {FIRST: 3}
    assert say(DAY, "two", {FIRST: 4, SECOND: 1}) == {FIRST: 7, SECOND: 1}
    assert say(DAY, "one", {FIRST: 5}) == {FIRST: 9, SECOND: 1}
    assert say(DAY, "one", {FIRST: 5}) == {FIRST: 9, SECOND: 1}
    assert say(DAY, "three", {}) == {FIRST: 9, SECOND: 1}
    assert say(DAY + 1, "one", {}) == {}


@EVERY_STORE
def test_usage_and_uploads_are_counted_apart(credentials: CredentialStore) -> None:
    credentials.share(REPORTS_SENT, DAY, "one", {FIRST: 3})
    credentials.share(UPLOADS_SENT, DAY, "one", {FIRST: 1})

    assert credentials.share(REPORTS_SENT, DAY, "one", {}) == {FIRST: 3}
    assert credentials.share(UPLOADS_SENT, DAY, "one", {}) == {FIRST: 1}


OF_WEB = ActivityRecord("web", "0a", {"refused.too-fast": 2, "duplicates.": 1}, 1_700_000_000)
OF_WORKER = ActivityRecord("worker", "0b", {}, 1_700_000_001)


@pytest.fixture
def hashes(server_kind: str, keys: Keys, request: pytest.FixtureRequest) -> Hashes:
    """Empty hashes of each store; in memory they have a clock that stands."""
    if server_kind == MEMORY:
        return MemoryHashes(lambda: DAY)
    request.getfixturevalue("store")  # which is prepared, and deleted at the end
    return RedisHashes(request.getfixturevalue("server"), keys.prefix)


@pytest.fixture
def activity(hashes: Hashes) -> ActivityStore:
    return ActivityStore(hashes)


@pytest.fixture
def suspicions(hashes: Hashes) -> SuspicionStore:
    return SuspicionStore(hashes)


@pytest.fixture
def watches(hashes: Hashes) -> WatchStore:
    return WatchStore(hashes)


@EVERY_STORE
def test_what_processes_say_is_read_as_it_was_said(activity: ActivityStore) -> None:
    """Said again, it replaces what was there; another day has nothing of it."""
    for record in (ActivityRecord("web", "0a", {"duplicates.": 9}, 1), OF_WEB, OF_WORKER):
        activity.put(DAY, record)

    found = {record.process: record for record in activity.records(DAY)}

    assert found == {"0a": OF_WEB, "0b": OF_WORKER}
    assert activity.records(DAY + 1) == []


@EVERY_STORE
def test_a_count_that_a_process_leaves_out_stays_as_it_was(activity: ActivityStore) -> None:
    """Law: sums of a day never go down, and one name may serve in two roles."""
    activity.put(DAY, OF_WEB)
    activity.put(DAY, replace(OF_WEB, counts={"duplicates.": 2}, seen=OF_WEB.seen + 10))
    activity.put(DAY, replace(OF_WORKER, process=OF_WEB.process))

    web, worker = sorted(activity.records(DAY), key=lambda record: record.role)

    assert web.counts == {"refused.too-fast": 2, "duplicates.": 2}
    assert (web.seen, worker.counts) == (OF_WEB.seen + 10, {})


EARLIER = WatchRecord(1_700_000_000, 19_675, 7, {"2023-11-13": ["'a' changed"]})
LATER = WatchRecord(1_700_090_000, 19_676, 7, {})


@EVERY_STORE
def test_what_was_found_is_kept_in_place_of_what_was_before(suspicions: SuspicionStore) -> None:
    assert suspicions.records() == {}

    for metric, record in ((b"a" * 6, EARLIER), (b"b" * 6, EARLIER), (b"b" * 6, LATER)):
        suspicions.put(metric, record)

    assert suspicions.records() == {b"a" * 6: EARLIER, b"b" * 6: LATER}


def test_the_counts_of_a_day_are_forgotten(
    server: Connection, keys: Keys, store: RedisStorage
) -> None:
    """A crash loop leaves a few fields a start, for two days; the use of a key, too."""
    ActivityStore(RedisHashes(server, keys.prefix)).put(DAY, OF_WEB)
    CredentialStore(RedisHashes(server, keys.prefix)).share(REPORTS_SENT, DAY, "a", {FIRST: 5})

    assert server.call("TTL", f"{keys.prefix}:activity:{DAY}") > 0
    assert server.call("EXPIRETIME", f"{keys.prefix}:usage:{DAY}") == (DAY + 2) * 86_400


def test_fields_that_are_not_ours_are_passed_over(
    server: Connection, keys: Keys, store: RedisStorage
) -> None:
    """What somebody wrote by hand ends neither a scrape nor a request."""
    credentials = CredentialStore(RedisHashes(server, keys.prefix))
    activity = ActivityStore(RedisHashes(server, keys.prefix))
    suspicions = SuspicionStore(RedisHashes(server, keys.prefix))
    credentials.put(FIRST, "record")
    activity.put(DAY, OF_WEB)
    suspicions.put(b"a" * 6, EARLIER)
    for name, fields in (
        ("credentials", ("no digest", "x")),
        (f"activity:{DAY}", (b"\xff", "x", "web:0c:seen", "-1")),
        ("suspicions", (b"\xff", "x", "0a", "{}", "zz", "[]")),
    ):
        server.call("HSET", f"{keys.prefix}:{name}", *fields)

    assert credentials.records() == {FIRST: b"record"}
    assert activity.records(DAY) == [OF_WEB]
    assert suspicions.records() == {b"a" * 6: EARLIER}


@EVERY_STORE
def test_a_ledger_is_replaced_only_by_who_has_read_the_one_before(watches: WatchStore) -> None:
    assert watches.ledger() == (b"", WatchLedger())

    first = known(watches.replace(b"", WatchLedger(holder="a")))
    late = watches.replace(b"", WatchLedger(holder="b"))
    second = watches.replace(first, WatchLedger(holder="c"))
    stale = watches.replace(first, WatchLedger(holder="d"))

    assert (late, stale) == (None, None)
    assert watches.ledger() == (second, WatchLedger(holder="c"))


@EVERY_STORE
def test_a_replacement_that_is_repeated_has_happened_once_and_says_so(watches: WatchStore) -> None:
    """Law: a command whose answer was lost is sent again."""
    first = known(watches.replace(b"", WatchLedger(holder="a")))

    assert watches.replace(b"", WatchLedger(holder="a")) == first
    second = watches.replace(first, WatchLedger(holder="b"))
    assert watches.replace(first, WatchLedger(holder="b")) == second


@EVERY_STORE
def test_all_that_a_ledger_holds_comes_back(watches: WatchStore) -> None:
    verdict = Verdict(
        "2026-03-01", "2026-03-02", "firing", "m: \u00e9", 7, 0.5, 0.4, 0.6, "share", 9
    )
    message = WatchMessage("id", "w", "m", 7, "note", verdict, {"team": (2, 99)})
    cursor = WatchCursor("d", "2026-03-02", "firing", "2026-03-01", "firing")
    ledger = WatchLedger("a", 9, 8, 0.05, {"w": cursor}, (message,), 3, 1)

    watches.replace(b"", ledger)

    assert watches.ledger()[1] == ledger


@EVERY_STORE
def test_series_are_kept_by_name_beside_the_ledger_and_forgotten(watches: WatchStore) -> None:
    series = [WatchSeries(name, "m", "title", "d", 0.1) for name in ("a", "b")]
    watches.replace(b"", WatchLedger(holder="x"))

    for each in series:
        watches.put(each)
    assert watches.series() == {each.name: each for each in series}
    watches.forget(["a", "gone"])
    watches.forget([])

    assert set(watches.series()) == {"b"}
    assert watches.ledger()[1].holder == "x"


@EVERY_STORE
def test_the_time_of_watches_is_that_of_the_store(watches: WatchStore, server_kind: str) -> None:
    expected = DAY if server_kind == MEMORY else time.time()

    assert watches.now() == pytest.approx(expected, abs=60)
