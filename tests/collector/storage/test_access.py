"""Each user of the store can do its work, and nothing else: a real server says NOPERM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from collector.core.config import STANDARD
from collector.core.errors import (
    NotPreparedError,
    RefusedByStoreError,
    StorageUnavailableError,
)
from collector.demo.embedded import EmbeddedStore
from collector.operations.backup import back_up
from collector.storage.access import (
    ARCHIVE,
    COPY,
    INGEST,
    INIT,
    PRUNE,
    QUERY,
    USERS,
    WATCH,
    WORKER,
    name_of,
)
from collector.storage.archive_queue import RedisArchiveQueue
from collector.storage.connection import Connection
from collector.storage.diagnosis import Diagnosis
from collector.storage.documents import ExclusionStore
from collector.storage.hashes import RedisHashes
from collector.storage.inspection import RedisInspection
from collector.storage.preparation import LIBRARY_VERSION
from collector.storage.records import (
    BYTES_BEGUN,
    REPORTS_SENT,
    UPLOADS_SENT,
    ActivityRecord,
    ActivityStore,
    CredentialStore,
    SuspicionStore,
    WatchLedger,
    WatchRecord,
    WatchSeries,
    WatchStore,
)
from collector.storage.redis import RedisStorage
from tests.support.store.servers import needs_real
from tests.support.store.stored import quarantined, tallies
from tests.support.store.users import CELL, DAY, METRIC, PASSWORD, Users

pytestmark = [pytest.mark.real, needs_real]

# What would let a stolen password read other data, run code, change settings or destroy counts.
FORBIDDEN: Final = [
    *("EVAL return(1) 0", "EVALSHA 0000 0", "EVAL_RO return(1) 0", "SCRIPT LOAD return(1)"),
    *("CONFIG SET dir /tmp", "CONFIG REWRITE", "CONFIG RESETSTAT", "KEYS *", "FLUSHALL", "FLUSHDB"),
    *("MODULE LIST", "RESTORE x 0 x", "CLIENT PAUSE 1", "CLIENT NO-EVICT on"),
    *("SHUTDOWN NOSAVE", "SAVE", "BGSAVE", "BGREWRITEAOF", "REPLICAOF NO ONE", "SLAVEOF h 1"),
    *(
        "ACL LIST",
        "ACL GETUSER default",
        "ACL SETUSER x on",
        "ACL SAVE",
        "MONITOR",
        "CLIENT LIST",
        "CLIENT KILL ID 1",
    ),
    *(
        "MIGRATE h 1 x 0 1",
        "SLOWLOG GET",
        "LATENCY LATEST",
        "MEMORY DOCTOR",
        "SWAPDB 0 1",
        "PSYNC ? -1",
        "FAILOVER",
    ),
    *("FUNCTION FLUSH", "FUNCTION DELETE hearsay", "PUBLISH c m", "SUBSCRIBE c", "GET foreign"),
    *("SET foreign x", "DEL foreign", "CLUSTER RESET", "SORT foreign", "COPY foreign other"),
    *("SELECT 1", "SELECT 0"),
]
# Beyond that, what an application user has no need of on the deployment's own keys.
NOT_OF: Final[dict[str, list[str]]] = {
    INIT: [
        *("DEL {tally}", "SET foreign x", "RENAME {stream} {seen}", "XGROUP DESTROY {stream} w"),
        *("FUNCTION LIST", "FUNCTION DUMP", "FCALL hearsay_claim 1 {stream}", "GETDEL {tally}"),
        *("FCALL hearsay_append_counted 3 {seen} {stream} {counters}", "COPY {tally} {seen}"),
    ],
    INGEST: [
        *("CONFIG GET dir", "FUNCTION LOAD x", "DEL {stream}", "XTRIM {stream} MAXLEN 0"),
        *("XRANGE {stream} - +", "XREAD STREAMS {stream} 0", "SMEMBERS {seen}", "GET {tally}"),
        *("XDEL {stream} 1-1", "SET {tally} x", "HSET {credentials} a b", "HDEL {credentials} a"),
        *("SET {shards} 9", "SCAN 0", "RENAME {stream} {seen}", "XGROUP DESTROY {stream} workers"),
        *("FCALL hearsay_fold_counted 1 {stream} 0", "FCALL hearsay_claim 1 {stream}"),
        *("HGETALL {counters2}", "HINCRBY {credentials} a 1", "XRANGE {archive} - +"),
    ],
    WORKER: [
        *("CONFIG GET dir", "FUNCTION LOAD x", "DEL {tally}", "SET {tally} x", "GET {tally}"),
        *("XADD {stream} * e x", "XTRIM {stream} MAXLEN 0", "HGETALL {credentials}", "SCAN 0"),
        *("SMEMBERS {seen}", "SADD {seen} x", "SET {shards} 9", "XGROUP DESTROY {stream} workers"),
        *("FCALL hearsay_append_counted 3 {seen} {stream} {counters}", "HSET {usage} a 1"),
        *("FCALL hearsay_drop 2 {quarantine} {counters} 1-1", "UNLINK {quarantine}"),
    ],
    ARCHIVE: [
        *("CONFIG GET dir", "FUNCTION LOAD x", "SET {tally} x", "DEL {tally}", "DEL {archive}"),
        *("XADD {archive} 1-* e x", "XTRIM {stream} MAXLEN 0", "XRANGE {stream} - +"),
        *("FCALL hearsay_restore 1 {archive}", "HGETALL {credentials}", "MGET {credentials}"),
        *("SMEMBERS {seen}", "GET {shards}", "SET {shards} 9", "HSET {counters} folded.uploads 0"),
        *("XACK {stream} workers 1-1", "SADD {cells} x"),
    ],
    PRUNE: [
        *("CONFIG GET dir", "FUNCTION LOAD x", "SET {tally} x", "DEL {stream}", "DEL {counters}"),
        *("BITFIELD {tally} INCRBY i64 0 1", "UNLINK {stream}", "UNLINK {counters}"),
        *("UNLINK {credentials}", "HGETALL {credentials}", "SADD {cells} x", "XRANGE {stream} - +"),
        *("SMEMBERS {seen}", "SET {shards} 9", "UNLINK {archive}", "FCALL hearsay_version 0"),
        *("FCALL hearsay_lose 1 {counters} 0 0 0 1", "XTRIM {stream} MAXLEN 0"),
    ],
    WATCH: [
        *("CONFIG GET dir", "FUNCTION LOAD x", "SET {tally} x", "DEL {tally}", "SADD {cells} x"),
        *("BITFIELD {tally} INCRBY i64 0 1", "XRANGE {stream} - +", "HGETALL {credentials}"),
        *("HSET {credentials} a b", "HDEL {credentials} a", "HSET {tally} a 1", "SCAN 0"),
        *("FCALL hearsay_replace 1 {credentials} a b c", "FCALL hearsay_version 0"),
        *("DEL {watch}", "EXPIRE {watch} 1", "HSET {counters} folded.uploads 0", "GET {shards}"),
    ],
    QUERY: [
        *("CONFIG GET dir", "FUNCTION LOAD x", "SET {tally} x", "DEL {tally}", "SADD {cells} x"),
        *("BITFIELD {tally} INCRBY i64 0 1", "XRANGE {stream} - +", "HGETALL {credentials}"),
        *("XADD {stream} * e x", "FCALL hearsay_version 0", "SCAN 0", "GET {shards}"),
    ],
}


@pytest.fixture
def users(real_store: EmbeddedStore) -> Iterator[Users]:
    made = Users(real_store.url)
    yield made
    made.close()


def _refusal(connection: Connection, command: str) -> str:
    """Return the code with which the server refuses *command*, or "" if it runs it."""
    try:
        connection.call(*command.split())
    except RefusedByStoreError as error:
        return error.code
    except Exception as error:  # noqa: BLE001  # whatever else it is, it was not refused
        return type(error).__name__
    return ""


def test_there_are_forty_forbidden_commands() -> None:
    assert len(set(FORBIDDEN)) >= 40


@pytest.mark.parametrize("user", USERS)
def test_a_user_is_refused_whatever_its_work_does_not_need(users: Users, user: str) -> None:
    users.storage(INIT).prepare()
    connection = users.connection(user)
    names = users.names()
    commands = [*FORBIDDEN, *(command.format(**names) for command in NOT_OF[user])]

    codes = {command: _refusal(connection, command) for command in commands}

    assert {command: code for command, code in codes.items() if code != "NOPERM"} == {}


def test_who_copies_takes_all_and_does_nothing_else(users: Users, tmp_path: Path) -> None:
    users.storage(INIT).prepare()
    connection, names = users.connection(COPY), users.names()
    commands = [command for command in FORBIDDEN if command != "PSYNC ? -1"]
    commands += [command.format(**names) for command in NOT_OF[QUERY]]
    login = f"unix://{name_of(COPY, users.keys.prefix)}:{PASSWORD}@"

    codes = {command: _refusal(connection, command) for command in commands}
    copy, size = back_up(users.url.replace("unix://", login, 1), tmp_path, 0.0)

    assert {command: code for command, code in codes.items() if code != "NOPERM"} == {}
    assert copy.name == "1970-01-01T00-00-00Z"
    assert sum(path.stat().st_size for path in copy.rglob("*.rdb")) == size > 0


def test_a_password_that_is_wrong_is_not_in_what_is_said(users: Users, tmp_path: Path) -> None:
    login = f"unix://{name_of(COPY, users.keys.prefix)}:another-password@"

    with pytest.raises(StorageUnavailableError, match=r"no copy of store.*WRONGPASS") as refused:
        back_up(users.url.replace("unix://", login, 1), tmp_path, 0.0)

    assert "another-password" not in str(refused.value)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("command", ["DEBUG SLEEP 0", "MODULE LOAD /tmp/x.so"])
def test_what_the_server_refuses_to_all_is_also_no_right_of_a_user(
    users: Users, user: str, command: str
) -> None:
    name = name_of(user, users.keys.prefix)

    answer = users.admin.call("ACL", "DRYRUN", name, *command.split())

    assert b"no permissions" in answer


def test_each_user_does_its_work_and_no_number_is_lost(users: Users) -> None:
    users.storage(INIT).prepare()
    ingest, worker, query = (users.storage(user) for user in (INGEST, WORKER, QUERY))
    ingest.prepare()
    worker.prepare()

    for number in range(20):
        assert ingest.append(bytes([number]) * 16, DAY, b"entry", 1)
        assert not ingest.append(bytes([number]) * 16, DAY, b"entry", 1)
    assert ingest.refusing() == {}
    assert ingest.backlog() == 20
    for shard in range(worker.shards):
        claimed = worker.claim(shard, "one", 100, 0)
        ids = [one.id for one in claimed]
        assert worker.quarantine(shard, ids.pop(), "test")
        assert worker.fold(shard, ids, {CELL: [(0, len(ids)), (1, len(ids))]}) == ()
        worker.spare(shard, "one", ["1-1"])
        worker.now(shard)
        keeping = RedisStorage(users.connection(WORKER), users.keys, STANDARD, archived=True)
        keeping.fold(shard, ["1-1"], {CELL: [(0, 1)]})
    worker.retire("one")
    worker.sweep(0)

    vectors = tallies(query, METRIC, [3])[CELL]
    assert sum(int.from_bytes(vector[:8], "big") for vector in vectors) == 18
    assert ingest.backlog() == 0
    assert quarantined(worker) == 2
    assert ingest.counters() == worker.counters()


def test_people_look_after_the_store_as_its_first_user(users: Users) -> None:
    storage = users.storage(INIT)
    storage.prepare()
    users.storage(INGEST).append(b"a" * 16, DAY, b"entry", 1)
    worker = users.storage(WORKER)
    [(shard, claimed)] = [
        (shard, one) for shard in range(worker.shards) for one in worker.claim(shard, "w", 9, 0)
    ]
    worker.quarantine(shard, claimed.id, "test")
    desk = RedisInspection(users.connection(INIT), users.keys)

    [aside] = desk.set_aside(shard)

    assert desk.requeue(shard, aside.id)
    assert [one.entry for one in desk.pending(shard)] == [b"entry"]
    assert list(desk.tallies()) == []
    assert desk.counters() == storage.counters()
    [(again, claimed)] = [
        (shard, one) for shard in range(worker.shards) for one in worker.claim(shard, "w", 9, 0)
    ]
    worker.fold(again, [claimed.id], {CELL: [(0, 1), (1, 1)]})
    users.admin.call("DEL", users.keys.tally(again, CELL))
    assert desk.lose(again, desk.counters()[again], [CELL], 1)
    desk.mark(METRIC, 4)
    assert desk.prune(again, METRIC, 3, ["0:"]) == 0
    assert [(one.reports, one.cell) for one in desk.sizes()] == []
    assert not desk.drop(shard, "1-99")


@pytest.mark.parametrize("user", [INIT, ARCHIVE])
def test_an_archive_is_written_by_two_users_and_restored_by_the_first_alone(
    users: Users, user: str
) -> None:
    """Law: what runs for ever holds the least: it takes folds out, and reads what it compares."""
    users.storage(INIT).prepare()
    users.storage(INGEST).append(bytes(16), DAY, b"entry", 1)
    worker = RedisStorage(users.connection(WORKER), users.keys, STANDARD, archived=True)
    worker.fold(0, [one.id for one in worker.claim(0, "w", 9, 0)], {CELL: [(0, 1)]})
    connection = users.connection(user)
    queue = RedisArchiveQueue(connection, users.keys)

    assert Diagnosis(users.connection(INGEST), users.keys).unarchived() == 1
    assert Diagnosis(users.connection(QUERY), users.keys).unarchived() is None
    assert queue.bind("archive", fresh=True)
    assert [fold.entries for fold in queue.waiting(0, queue.last(0))] == [(b"entry",)]
    queue.forget(0, queue.last(0))
    assert [one.archived for one in queue.archiving()] == [1, 0]
    assert queue.exclusions() == {}
    assert [one.cell for one in RedisInspection(connection, users.keys).tallies()] == [CELL]
    if user == INIT:
        assert queue.restore(1, CELL, [(0, 2)], "token")
        assert not queue.restore(1, CELL, [(0, 2)], "token")
    else:
        with pytest.raises(RefusedByStoreError, match="NOPERM"):
            queue.restore(1, CELL, [(0, 2)], "token")


def test_old_tallies_are_pruned_by_a_user_that_can_do_nothing_else(users: Users) -> None:
    users.storage(INIT).prepare()
    worker, query = users.storage(WORKER), users.storage(QUERY)
    for number in (1, 2):
        users.storage(INGEST).append(bytes([0] * 15 + [number]), DAY, b"entry", 2)
        worker.fold(0, [one.id for one in worker.claim(0, "w", 9, 0)], {CELL: [(0, 2), (1, 2)]})
        desk = RedisInspection(users.connection(PRUNE), users.keys)
        found = list(desk.sizes())
        if found:
            desk.mark(METRIC, 4)
            assert desk.prune(0, METRIC, 3, ["0:"]) == 1

    assert [one.reports for one in found] == []
    assert tallies(query, METRIC, [3]) == {}
    assert query.pruned([METRIC]) == {METRIC: 4}
    assert RedisInspection(users.connection(ARCHIVE), users.keys).marks() == {METRIC: 4}
    assert worker.counters()[0].pruned_reports == 4


def test_watches_are_kept_by_one_user_and_shown_by_another(users: Users) -> None:
    users.storage(INIT).prepare()
    keeper = WatchStore(RedisHashes(users.connection(WATCH), users.keys.prefix))
    web = WatchStore(RedisHashes(users.connection(INGEST), users.keys.prefix))
    series = WatchSeries("w", "m", "m above 1", "d", 0.1)

    first = keeper.replace(b"", WatchLedger(holder="a"))
    assert first is not None
    assert keeper.replace(first, WatchLedger(holder="b"))
    keeper.put(series)

    assert keeper.now() > 0
    assert web.ledger()[1].holder == "b"
    assert web.series() == {"w": series}
    assert list(users.storage(WATCH).vectors(users.storage(WATCH).index(METRIC, [3]), 2)) == []
    assert users.storage(WATCH).pruned([METRIC]) == {}
    keeper.forget(["w"])
    with pytest.raises(RefusedByStoreError, match="NOPERM"):
        web.put(series)


def test_credentials_are_made_by_one_user_and_read_by_another(users: Users) -> None:
    maker = CredentialStore(RedisHashes(users.connection(INIT), users.keys.prefix))
    reader = CredentialStore(RedisHashes(users.connection(INGEST), users.keys.prefix))
    maker.put(b"d" * 32, '{"kind":"write"}')

    assert reader.records() == {b"d" * 32: b'{"kind":"write"}'}
    assert reader.share(REPORTS_SENT, DAY, "a", {b"d" * 32: 5}) == {b"d" * 32: 5}
    assert maker.share(REPORTS_SENT, DAY, "b", {b"d" * 32: 2}) == {b"d" * 32: 7}
    assert reader.share(UPLOADS_SENT, DAY, "a", {b"d" * 32: 3}) == {b"d" * 32: 3}
    assert reader.share(UPLOADS_SENT, DAY) == {b"d" * 32: 3}
    assert reader.share(BYTES_BEGUN, DAY, "a", {b"d" * 32: 9}) == {b"d" * 32: 9}
    assert users.storage(INGEST).existing([(0, CELL)]) == set()
    with pytest.raises(RefusedByStoreError, match="NOPERM"):
        reader.put(b"d" * 32, '{"kind":"admin"}')


def test_a_worker_records_a_definition_once_and_can_neither_change_nor_read_it(
    users: Users,
) -> None:
    """Law: init reads what was recorded before it; a worker cannot make reports look known."""
    maker = RedisInspection(users.connection(INIT), users.keys)
    worker = RedisInspection(users.connection(WORKER), users.keys)
    worker.define({METRIC: "first"})
    worker.define({METRIC: "second"})

    assert maker.definitions() == {METRIC: b"first"}
    with pytest.raises(RefusedByStoreError, match="NOPERM"):
        worker.definitions()


@pytest.mark.parametrize("user", [INGEST, WORKER])
def test_before_init_a_user_of_the_application_says_what_to_run(users: Users, user: str) -> None:
    with pytest.raises(NotPreparedError, match="run hearsay init"):
        users.storage(user).prepare()


def test_processes_tell_of_themselves_and_web_processes_tell_the_state(users: Users) -> None:
    """A worker only writes its own counts; who answers /metrics reads all, and asks the server."""
    users.storage(INIT).prepare()
    told = ActivityRecord("worker", "0a", {"folds.0": 1}, 1)
    web, worker = users.connection(INGEST), users.connection(WORKER)

    ActivityStore(RedisHashes(worker, users.keys.prefix)).put(DAY, told)
    [server] = Diagnosis(web, users.keys).servers()

    assert ActivityStore(RedisHashes(web, users.keys.prefix)).records(DAY) == [told]
    assert server.memory > 0
    assert server.library == LIBRARY_VERSION
    assert server.ahead is not None
    with pytest.raises(RefusedByStoreError):
        ActivityStore(RedisHashes(worker, users.keys.prefix)).records(DAY)


def test_a_worker_looks_at_tallies_and_who_tells_the_state_reads_what_it_found(
    users: Users,
) -> None:
    users.storage(INIT).prepare()
    worker, found = users.storage(WORKER), WatchRecord(1, 2, 3, {"2026-03-03": ["changed"]})
    users.storage(INGEST).append(bytes(16), DAY, b"entry", 1)
    worker.fold(0, [one.id for one in worker.claim(0, "w", 9, 0)], {CELL: [(0, 1), (1, 1)]})

    index = worker.index(METRIC, [3])
    SuspicionStore(RedisHashes(users.connection(WORKER), users.keys.prefix)).put(METRIC, found)

    assert [cell for cell, _ in worker.vectors(index, 2)] == [CELL]
    assert worker.pruned([METRIC]) == {}
    for user in (INGEST, INIT, WORKER):
        kept = SuspicionStore(RedisHashes(users.connection(user), users.keys.prefix)).records()
        assert kept == {METRIC: found}
    for user in (INGEST, QUERY):
        hashes = RedisHashes(users.connection(user), users.keys.prefix)
        with pytest.raises(RefusedByStoreError):
            SuspicionStore(hashes).put(METRIC, found)


def test_the_init_user_may_ask_all_that_the_doctor_looks_at(users: Users) -> None:
    """No finding of the doctor is missing for want of a right."""
    users.storage(INIT).prepare()
    connection = users.connection(INIT)
    diagnosis = Diagnosis(connection, users.keys)

    [server], shards = diagnosis.servers(), diagnosis.shards()

    assert diagnosis.recorded() == (users.keys.shards, STANDARD)
    assert server.appendfsync is not None
    assert [(shard.counters is None, shard.has_group) for shard in shards] == [
        (False, True) for _ in shards
    ]
    assert ActivityStore(RedisHashes(connection, users.keys.prefix)).records(DAY) == []


def test_exclusions_are_written_by_an_operator_and_read_by_who_answers(users: Users) -> None:
    """Nobody who takes uploads, folds or answers takes anything out of answers."""
    users.storage(INIT).prepare()
    prefix, exclusions = users.keys.prefix, {"a": b"2"}
    operator = ExclusionStore(RedisHashes(users.connection(INIT), prefix))

    assert operator.put("a", b"1")
    assert operator.put("a", b"2", read=b"1")

    assert users.storage(QUERY).exclusions() == users.storage(WATCH).exclusions() == exclusions
    for user in (QUERY, WATCH, INGEST, WORKER):
        with pytest.raises(RefusedByStoreError, match="NOPERM"):
            ExclusionStore(RedisHashes(users.connection(user), prefix)).put("b", b"1")
    assert users.storage(INIT).exclusions() == exclusions
