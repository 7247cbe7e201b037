"""Foreign errors become ours at one border, keys are of one slot, and no text repeats either."""

from __future__ import annotations

import hashlib
import re
import secrets
import socket
import socketserver
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import fakeredis
import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from collector.core.cells import Cell
from collector.core.config import STANDARD, VOLATILE
from collector.core.errors import (
    CollectorError,
    ConfigError,
    NotLoggedError,
    NotPreparedError,
    NotReplicatedError,
    RefusedByStoreError,
    StorageFullError,
    StorageUnavailableError,
)
from collector.demo.embedded import EmbeddedStore
from collector.storage.cluster import ClusterConnection
from collector.storage.connection import RETRIES, Command, Connection, Proof, client_of
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from tests.support.device.loopback import LoopbackServer, running
from tests.support.patience import PATIENCE, wait_for
from tests.support.store.servers import (
    RecordingConnection,
    fake_connection,
    needs_real,
    own_keys,
    profile_of,
    real_server,
)

ECHO: Final = "echo"  # the answer that repeats the last word of the command
LATE: Final = b"late"  # the last word that is repeated after a time only
TIMEOUT_S: Final = 1.0  # of the client, whatever comes late


class ScriptedServer(LoopbackServer):
    """Speaks just enough RESP to be asked.  Keeps the commands it was sent."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer  # the text of an error, or None to hang up
        self.gave_up, self.answered_late = threading.Event(), threading.Event()
        self.replies: dict[bytes, str] = {}  # of commands by name, as they go over the wire
        self.commands: list[list[bytes]] = []
        super().__init__(_Handler)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"


class _Handler(socketserver.StreamRequestHandler):
    server: ScriptedServer

    def handle(self) -> None:
        while command := self._read():
            if command[0] == b"CLIENT":  # the client introduces itself
                self.wfile.write(b"+OK\r\n")
                continue
            self.server.commands.append(command)
            if (reply := self.server.replies.get(command[0])) is not None:
                self.wfile.write(reply.encode())
                continue
            if self.server.answer is None:
                return
            if self.server.answer == ECHO:
                self._echo(command[-1])
                continue
            self.wfile.write(f"-{self.server.answer}\r\n".encode())

    def _echo(self, text: bytes) -> None:
        if text == LATE:
            self.server.gave_up.wait(PATIENCE)
        with suppress(OSError):  # who asked has hung up
            self.wfile.write(b"+" + text + b"\r\n")
        if text == LATE:
            self.server.answered_late.set()

    def _read(self) -> list[bytes]:
        count = self.rfile.readline()
        return [self._read_part() for _ in range(int(count[1:]))] if count else []

    def _read_part(self) -> bytes:
        size = int(self.rfile.readline()[1:])
        return self.rfile.read(size + 2)[:-2]


@contextmanager
def scripted_server(answer: str | None) -> Iterator[ScriptedServer]:
    """Run a ScriptedServer until the block ends."""
    with running(ScriptedServer(answer)) as server:
        yield server


CANARY = b"canary-payload"
CELL = Cell(b"\x01\x02\x03\x04\x05\x06", 0, "")


@pytest.fixture
def nobody() -> Iterator[str]:
    """The address of a port that is taken but where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"redis://:secret@127.0.0.1:{taken.getsockname()[1]}/0"


def test_a_server_that_is_away_is_told_as_such_without_the_secret(nobody: str) -> None:
    store = RedisStorage(Connection.open(nobody), own_keys(), VOLATILE)

    with pytest.raises(StorageUnavailableError) as caught:
        store.append(b"a" * 16, 30_000, CANARY, 1)

    assert "secret" not in str(caught.value)
    assert "canary" not in str(caught.value)


def test_a_command_without_an_answer_is_repeated_a_bounded_number_of_times() -> None:
    with scripted_server(answer=None) as server:
        store = RedisStorage(Connection.open(server.url), own_keys(), VOLATILE)
        with pytest.raises(StorageUnavailableError):
            store.append(b"a" * 16, 30_000, b"entry", 1)

    assert len(server.commands) == 1 + RETRIES
    assert server.commands[0] == server.commands[-1]


def test_a_late_answer_is_never_taken_for_that_of_the_next_command() -> None:
    """Else an upload would be acknowledged that nobody has stored."""
    with scripted_server(ECHO) as server:
        never = Retry(NoBackoff(), 0)
        client = Redis.from_url(server.url, protocol=2, socket_timeout=TIMEOUT_S, retry=never)
        connection = Connection(client)
        with pytest.raises(StorageUnavailableError):
            connection.call_many([("GET", "soon"), ("GET", LATE), ("GET", "after")])
        server.gave_up.set()
        assert server.answered_late.wait(PATIENCE)

        assert connection.call_many([("GET", "a"), ("GET", "b")]) == [b"a", b"b"]
        connection.close()


@pytest.mark.parametrize("url", ["http://host", "host:6379", "redis://host:port-of-secret/0"])
def test_an_address_that_is_none_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ConfigError, match=r"REDIS_URL=\*\*\*") as caught:
        Connection.open(url)

    assert "host" not in str(caught.value)


def test_a_store_that_was_not_prepared_says_what_to_run(keys: Keys) -> None:
    store = RedisStorage(fake_connection(), keys, VOLATILE)

    with pytest.raises(NotPreparedError, match="hearsay init"):
        store.append(b"a" * 16, 30_000, b"entry", 1)
    with pytest.raises(NotPreparedError, match="hearsay init"):
        store.claim(0, "one", 1, 0)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'.", StorageFullError),
        ("MISCONF Redis is configured to save, but it cannot", StorageFullError),
        ("READONLY You can't write against a read only replica.", RefusedByStoreError),
        ("NOPERM this user has no permissions", RefusedByStoreError),
        ("WRONGTYPE Operation against a key", RefusedByStoreError),
        ("LOADING Redis is loading the dataset in memory", StorageUnavailableError),
        ("ERR unknown command 'x', with args beginning with: 'canary'", RefusedByStoreError),
    ],
)
def test_each_answer_of_the_server_has_its_error(answer: str, kind: type[CollectorError]) -> None:
    with scripted_server(answer) as server:
        connection = Connection.open(server.url)
        with pytest.raises(kind) as caught:
            connection.call("SET", "key", CANARY)
        connection.close()

    assert "canary" not in str(caught.value)


def test_an_error_in_a_batch_is_raised_without_the_payload(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    server.call("SET", keys.seen(0, 30_000), "not a set")

    with pytest.raises(StorageUnavailableError) as caught:
        store.append_many(
            [
                SealedUpload(bytes(16), 30_000, CANARY, 1),
                SealedUpload(bytes(7) + b"\1" * 9, 30_000, CANARY, 1),
            ]
        )

    assert "canary" not in str(caught.value)
    assert store.backlog() == 1


def test_a_client_of_its_own_gives_raw_replies() -> None:
    client = fakeredis.FakeRedis(protocol=2)

    assert Connection(client).call("SET", "key", "value") == b"OK"


@pytest.fixture
def own_server() -> Iterator[EmbeddedStore]:
    """A server whose settings a test may change."""
    with real_server() as embedded:
        yield embedded


@needs_real
@pytest.mark.real
def test_full_memory_stops_the_intake_and_never_the_worker(own_server: EmbeddedStore) -> None:
    connection = Connection.open(own_server.url)
    store = RedisStorage(connection, Keys("full", 1), STANDARD)
    store.prepare()
    store.append(bytes(16), 30_000, b"entry", 1)
    store.append(b"\1" * 16, 30_000, b"poison", 1)
    connection.call("CONFIG", "SET", "maxmemory", "1")

    with pytest.raises(StorageFullError):
        store.append(b"\2" * 16, 30_000, b"entry", 1)
    entry, poison = store.claim(0, "one", 10, 0)
    folded = store.fold(0, [entry.id], {CELL: [(0, 1)]})
    moved = store.quarantine(0, poison.id, "why")
    store.retire("one")

    assert (folded, moved) == ((), True)
    assert store.backlog() == 0
    connection.call("CONFIG", "SET", "maxmemory", "0")
    assert store.append(b"\2" * 16, 30_000, b"entry", 1)
    connection.close()


METRIC = b"\x01\x02\x03\x04\x05\x06"


def tag_of(key: object) -> str:
    """Return what Redis Cluster hashes of *key*: the text between the first braces."""
    found = re.search(r"\{([^}]+)\}", str(key))
    assert found, key
    return found[1]


def test_keys_of_one_step_share_a_tag_and_carry_the_prefix(
    server: Connection, keys: Keys, server_kind: str
) -> None:
    recording = RecordingConnection(server)
    store = RedisStorage(recording, keys, profile_of(server_kind))
    store.prepare()
    cells = [Cell(METRIC, e, s) for e in (1, 2) for s in ("", "odd={9}")]
    for _ in range(12):
        store.append(secrets.token_bytes(16), 30_000, b"entry", 1)
    for shard in range(store.shards):
        first, *others = store.claim(shard, "one", 20, 3_600_000)
        store.quarantine(shard, first.id, "why")
        store.fold(shard, [one.id for one in others], {cell: [(0, 1)] for cell in cells})
        store.now(shard)
        store.forget_ids(shard, store.now(shard))
    store.refusing()
    store.retire("one")
    store.sweep(0)
    store.destroy()

    steps = [c for c in recording.commands if c[0] == "FCALL" and c[2]]
    declared = {command[1]: command[3 : 3 + int(command[2])] for command in steps}
    assert set(declared) == {
        f"hearsay_{step}"
        for step in (
            *("append_many", "claim", "fold", "quarantine"),
            *(
                "retire",
                "sweep",
                "now",
                "confirm_day",
                "forget_ids",
                "ready",
                "establish",
                "begin_shard",
            ),
        )
    }
    for command in steps:
        names = command[3 : 3 + int(command[2])]
        if names == (keys.generation,):  # of no shard, and alone
            continue
        assert len({tag_of(name) for name in names}) == 1
        assert all(str(name).startswith(f"{keys.prefix}:{{") for name in names)


def test_keys_of_a_fold_tell_cells_apart() -> None:
    keys = Keys("hearsay", 4)
    cells = [Cell(m, e, s) for m in (METRIC, METRIC[::-1]) for e in (1, 11) for s in ("", "1", "a")]

    assert len({keys.tally(2, cell) for cell in cells}) == len(cells)


def test_shards_of_random_ids_are_even() -> None:
    keys = Keys("hearsay", 4)
    counts = [0] * 4
    for i in range(4_000):
        counts[keys.shard_of(hashlib.sha256(b"%d" % i).digest()[:16])] += 1

    assert min(counts) > 900


@pytest.mark.parametrize("prefix", ["", "a{b", "a}b", "a*", "a b", "a[1]", "ä", "x" * 65])
def test_keys_refuse_a_prefix_that_could_move_a_tag_or_match_others(prefix: str) -> None:
    with pytest.raises(ConfigError, match="prefix="):
        Keys(prefix, 4)


def test_keys_refuse_no_shards() -> None:
    with pytest.raises(ConfigError, match="shards=0"):
        Keys("hearsay", 0)


@pytest.mark.parametrize("segment", ["", "a=b", "odd={9}:x=* y\n", "land=Österreich", ":", "0:"])
def test_the_key_of_a_tally_tells_its_shard_and_cell(segment: str) -> None:
    """So that a scan of the keys knows what it has found; other keys are none of its business."""
    keys = Keys("hearsay", 4)
    cell = Cell(METRIC, -7, segment, 3)

    assert keys.place_of(keys.tally(2, cell)) == (2, cell)
    assert keys.index_of(keys.cells(2, METRIC, -7)) == (2, METRIC, -7)
    assert keys.place_of(keys.cells(2, METRIC, -7)) is None
    assert keys.index_of(keys.tally(2, cell)) is None
    assert keys.place_of(keys.stream(0)) is None


def test_a_write_without_its_replica_is_refused_where_a_slot_is_moving_too() -> None:
    """It is there, so another try would find it: only the caller may judge that."""
    with scripted_server("ERR") as home, scripted_server("ERR") as target:
        host = "$9\r\n127.0.0.1\r\n"
        home.replies = {
            b"CLUSTER": f"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n{host}:{home.port}\r\n",
            b"SET": f"-ASK 1 127.0.0.1:{target.port}\r\n",
            b"WAIT": ":1\r\n",
        }
        target.replies = {b"ASKING": "+OK\r\n", b"SET": "+OK\r\n", b"WAIT": ":0\r\n"}
        cluster = ClusterConnection.open(f"redis-cluster://127.0.0.1:{home.port}")
        with pytest.raises(NotReplicatedError):
            cluster.call_many([("SET", "key", "value")], Proof(replicas=1))
        cluster.close()

    assert [command[0] for command in target.commands].count(b"SET") == 1


def slots(*servers: ScriptedServer) -> str:
    """Return the answer to CLUSTER SLOTS in which each of *servers* has as many as the others."""
    size = 16_384 // len(servers)
    ranges = (
        f"*3\r\n:{place * size}\r\n:{(place + 1) * size - 1}\r\n"
        f"*2\r\n$9\r\n127.0.0.1\r\n:{server.port}\r\n"
        for place, server in enumerate(servers)
    )
    return f"*{len(servers)}\r\n{''.join(ranges)}"


@pytest.mark.parametrize("taken_over", [False, True], ids=["comes back", "another takes over"])
def test_a_server_that_fails_is_asked_no_more_until_it_or_another_holds_its_slots(
    taken_over: bool,
) -> None:
    """Who asks for what it held is refused at once; the others are asked as before."""
    low, high = "bar", "foo"  # slots 5,061 and 12,182
    with scripted_server(answer=None) as away, scripted_server("ERR") as other:
        other.replies = {b"CLUSTER": slots(away, other), b"GET": "+other\r\n"}
        cluster = ClusterConnection.open(f"redis-cluster://127.0.0.1:{other.port}")
        for _ in range(5):
            with pytest.raises(StorageUnavailableError):
                cluster.call("GET", low)
        asked = [command[0] for command in away.commands].count(b"GET")
        meanwhile = cluster.call("GET", high)
        if taken_over:
            other.replies[b"CLUSTER"] = slots(other)
        else:
            away.replies = {b"PING": "+PONG\r\n", b"GET": "+back\r\n"}
        after = wait_for(lambda: cluster.call("GET", low), despite=(StorageUnavailableError,))
        cluster.close()

    assert asked == 1 + RETRIES
    assert (meanwhile, after) == (b"other", b"other" if taken_over else b"back")


class Telling(Connection):
    """A connection whose server says one *info* after another of its log, the last for ever."""

    def __init__(self, *infos: str) -> None:
        super().__init__(client_of("redis://127.0.0.1:9/0"))
        self.infos, self.asked = infos, 0

    def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        info = self.infos[min(self.asked, len(self.infos) - 1)].replace(" ", "\r\n")
        self.asked += 1
        return [*[b"OK"] * (len(commands) - 1), f"# Persistence\r\n{info}\r\n".encode()]


def of_log(pending: int, size: int, waiting: int, threads: int = 0) -> str:
    names = "aof_current_size", "aof_buffer_length", "aof_pending_bio_fsync", "io_threads_active"
    values = zip(names, (size, waiting, pending, threads), strict=True)
    return " ".join(f"{name}:{value}" for name, value in values)


@pytest.mark.parametrize(
    ("infos", "asked"),
    [
        ([of_log(0, 100, 50)], 1),
        ([of_log(1, 100, 50), of_log(0, 100, 60)], 2),
        # others write and sync without end; an upload waits for its own bytes alone
        ([of_log(1, 100, 50), of_log(1, 149, 90), of_log(1, 150, 90)], 3),
        ([of_log(1, 100, 0)], 1),
        # a thread that sends answers does not wait for the one that writes the log
        ([of_log(0, 100, 50, threads=1), of_log(0, 150, 90, threads=1)], 2),
        ([of_log(0, 100, 50, threads=1), of_log(0, 20, 0, threads=1)], 2),
    ],
)
def test_a_write_counts_once_the_log_has_it(infos: list[str], asked: int) -> None:
    server = Telling(*infos)

    assert server.call_many([("SET", "key", "value")], Proof(logged=True)) == [b"OK"]
    assert server.asked == asked


@pytest.mark.parametrize("info", [of_log(1, 100, 50), "aof_enabled:0"], ids=["full", "no log"])
def test_a_write_that_the_log_never_takes_is_refused(
    info: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law: a disk that takes nothing, and a log that was switched off, acknowledge nothing."""
    monkeypatch.setattr("collector.storage.connection._LOG_TIMEOUT", 0.05)

    with pytest.raises(NotLoggedError, match="append-only file"):
        Telling(info).call_many([("SET", "key", "value")], Proof(logged=True))
