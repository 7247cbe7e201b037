"""The border to the server: a connection that sends commands, its replies as our values, its errors
as ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from hiredis import pack_command
from redis import Redis, exceptions
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.exceptions import ResponseError
from redis.retry import Retry

from ..core.errors import (
    ClassEndedError,
    CollectorError,
    ConfigError,
    ForgottenUploadError,
    NotLoggedError,
    NotPreparedError,
    NotReplicatedError,
    RefusedByStoreError,
    ReplacedStoreError,
    StorageFullError,
    StorageUnavailableError,
    TallyOverflowError,
)
from .keys import Keys
from .values import Count, Counters

T = TypeVar("T")
D = TypeVar("D")

ENTRY: Final = b"e"  # the field of a stream entry that holds its bytes
REPORTS: Final = b"n"  # the one that holds the number of its reports
REASON: Final = b"reason"  # the one that says why it is set aside
_NAMES: Final[Mapping[type[Exception], str]] = {  # redis-py takes the code off these answers
    exceptions.OutOfMemoryError: "OOM",
    exceptions.NoPermissionError: "NOPERM",
    exceptions.ReadOnlyError: "READONLY",
    exceptions.MovedError: "MOVED",
    exceptions.AskError: "ASK",
    exceptions.TryAgainError: "TRYAGAIN",
    exceptions.ClusterDownError: "CLUSTERDOWN",
    exceptions.MasterDownError: "CLUSTERDOWN",
}
_TEXTS: Final[Mapping[str, tuple[type[CollectorError], str]]] = {
    "OOM": (StorageFullError, "is out of memory"),
    "MISCONF": (StorageFullError, "cannot write its log to disk"),
    "NOGROUP": (NotPreparedError, "lacks its consumer groups; run hearsay init"),
    "HEARSAYOVERFLOW": (TallyOverflowError, "a counter would leave its range"),
    "HEARSAYFORGOTTEN": (ForgottenUploadError, "the upload is forgotten already; a clock is wrong"),
    "HEARSAYCLASS": (ClassEndedError, "a class of lateness has ended"),
    **dict.fromkeys(
        ("MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN"),
        (StorageUnavailableError, "the cluster is moving slots, or a part of it is down"),
    ),
}
_CONNECT_TIMEOUT: Final = 2  # seconds
ANSWER_TIMEOUT: Final = 5  # seconds; a synced write on a busy disk takes well under one
_REPLICA_TIMEOUT: Final = 1_000  # milliseconds until a replica must have confirmed
_LOG_TIMEOUT: Final = 4.0  # seconds; a server itself waits for no sync longer than two
_LOG_PAUSE: Final = 0.003  # seconds between two questions whether a sync has ended
# Lines of INFO: no sync is at work (where many write, that is seen by chance only); and one thread
# writes both log and answers.
_SYNCED: Final = b"\naof_pending_bio_fsync:0\r", b"\nio_threads_active:0\r"
# A command whose answer was lost is sent once more.  That is safe only because all our writes are
# idempotent: an upload id, or a stream entry that is still there, decides inside the script.
RETRIES: Final = 1
_INFO: Final[Command] = ("INFO", "persistence", "server")
_PAUSE: Final = ExponentialBackoff(cap=0.5, base=0.05)  # seconds


@contextmanager
def translated() -> Iterator[None]:
    """Raise what redis-py raises as an error of ours."""
    try:
        yield
    except CollectorError:
        raise
    except (exceptions.RedisError, OSError) as error:
        raise _ours(error) from error


def _ours(error: Exception) -> CollectorError:
    """Return *error*, of redis-py or the system, as an error of ours."""
    if isinstance(error, CollectorError):
        return error
    if not isinstance(error, ResponseError):
        return StorageUnavailableError(f"store: {error}")
    if "unction not found" in str(error):
        return NotPreparedError("store: lacks the function library; run hearsay init")
    if str(error).startswith("HEARSAYREPLACED"):
        return ReplacedStoreError()
    code = _NAMES.get(type(error), str(error).split(" ", 1)[0])
    if is_elsewhere(error):
        code = "TRYAGAIN"
    if code in _TEXTS:
        kind, text = _TEXTS[code]
        return kind(f"store: {text}")
    return RefusedByStoreError(code if code.isupper() else "ERR")


def is_elsewhere(error: object) -> bool:
    """Return whether *error* is that a function looked at a key of a slot that is on its way.

    A server names no code where the caller did not name that key.
    """
    return isinstance(error, ResponseError) and "non local key" in str(error)


def allowed(ask: Callable[[], T], otherwise: D) -> T | D:
    """Return what *ask* does; *otherwise* if our user may not ask it, or the store is not ready."""
    try:
        return ask()
    except (RefusedByStoreError, NotPreparedError):
        return otherwise


def field(fields: Sequence[bytes], name: bytes) -> bytes:
    """Return a field of a stream entry; a foreign entry has none of ours."""
    return dict(zip(fields[::2], fields[1::2], strict=False)).get(name, b"")


def parse_counters(reply: Sequence[Any]) -> Counters:
    """Return the counts of a shard."""
    stream, aside, flat = reply
    values = {name.decode(): int(value) for name, value in zip(flat[::2], flat[1::2], strict=True)}

    def count(state: str) -> Count:
        return Count(values.get(f"{state}.uploads", 0), values.get(f"{state}.reports", 0))

    return Counters(
        accepted=count("accepted"),
        folded=count("folded"),
        quarantined=count("quarantined"),
        dropped=count("dropped"),
        late_reports=values.get("late.reports", 0),
        stream=int(stream),
        aside=int(aside),
        pruned_reports=values.get("pruned.reports", 0),
        lost_reports=values.get("lost.reports", 0),
    )


def parse_info(reply: bytes) -> dict[str, str]:
    """Return the fields of INFO as text."""
    lines = (line.partition(":") for line in reply.decode().splitlines())
    return {name: value for name, colon, value in lines if colon and not name.startswith("#")}


Part: TypeAlias = str | bytes | int
Command: TypeAlias = tuple[Part, ...]


# redis-py's own takes four times as long.  The stub allows only commands of one part.
_packed: Final[Callable[[Command], bytes]] = pack_command  # type: ignore[assignment]


def client_of(url: str, answer_s: float = ANSWER_TIMEOUT) -> Redis:
    """Return the sockets to *url*, opened when they are first used.

    Args:   answer_s: seconds in which an answer must come.
    Raises: ConfigError: *url* is no address of a server.
    """
    try:
        return Redis.from_url(
            url,
            protocol=2,
            socket_connect_timeout=min(_CONNECT_TIMEOUT, answer_s),
            socket_timeout=answer_s,
            retry=Retry(NoBackoff(), 0),  # of connecting; commands are repeated here
        )
    except ValueError:  # not even as a cause: the address may hold a password
        rule = "must begin with redis://, rediss://, unix:// or redis-cluster://"
        raise ConfigError("REDIS_URL", "***", rule) from None


class Proof(NamedTuple):
    """What must be known of what was written before it counts as written.

    ``logged`` means that the operating system has it, so that it outlives the server's process.
    With ``appendfsync everysec`` that is not so while the sync before is still at work: then the
    server answers first and writes to its log up to two seconds later (``flushAppendOnlyFile`` of
    Redis).  A server of one thread that says that no sync is at work writes all it holds before it
    says so.  Where a sync is, or where threads of their own send answers (``io-threads`` of Redis 8
    and Valkey 8, which wait for the log under ``always`` alone), its log must grow by what waited.
    """

    replicas: int = 0  # that must have confirmed it
    logged: bool = False


NO_PROOF: Final = Proof()


class Connection:
    """Commands to one server, one at a time or many in one round trip."""

    def __init__(self, client: Redis) -> None:
        """Use the connections of *client*, which must speak RESP 2."""
        self._client = client
        self._retry = Retry(_PAUSE, RETRIES)

    @classmethod
    def open(cls, url: str) -> Connection:
        """Return a connection to *url*, made when it is first used.

        Raises: ConfigError: *url* is no address of a server.
        """
        return cls(client_of(url))

    def nodes(self) -> Sequence[Connection]:
        """Return a connection to each server that holds keys."""
        return [self]

    def call(self, *command: Part) -> Any:
        """Send one command and return its reply."""
        return self.call_many([command])[0]

    def call_many(self, commands: Sequence[Command], proof: Proof = NO_PROOF) -> list[Any]:
        """Send *commands* in one round trip; raise the first error if any failed.

        Raises: NotReplicatedError, NotLoggedError: *proof* did not come in time.
        """
        if not commands:
            return []
        with translated():
            replies = self.replies(commands, proof)
            for reply in replies:
                if isinstance(reply, Exception):
                    raise reply
        return replies

    def try_many(self, commands: Sequence[Command], proof: Proof = NO_PROOF) -> list[Any]:
        """Send *commands* in one round trip; an error of ours is the reply to each that failed."""
        try:
            replies = self.replies(commands, proof)
        except (exceptions.RedisError, OSError) as error:
            replies = [error] * len(commands)
        return [_ours(reply) if isinstance(reply, Exception) else reply for reply in replies]

    def holder_of(self, key: str) -> str:
        """Return a name of the server that holds *key*, as far as is known; never waits."""
        return ""

    def replies(self, commands: Sequence[Command], proof: Proof = NO_PROOF) -> list[Any]:
        """Send *commands* in one round trip; an error of one is its reply, not yet translated."""
        proofs: list[Command] = []
        if proof.replicas:
            proofs.append(("WAIT", proof.replicas, _REPLICA_TIMEOUT))
        if proof.logged:
            proofs.append(_INFO)
        sent = [*commands, *proofs]
        replies = self._retry.call_with_retry(lambda: self._exchange(sent), lambda _: None)
        answers, replies = replies[len(commands) :], replies[: len(commands)]
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        if proof.replicas:
            self._require_replicas(answers[0], proof.replicas)
        if proof.logged:
            self._require_logged(answers[-1])
        return replies

    def _require_replicas(self, confirmed: int, replicas: int) -> None:
        if confirmed < replicas:
            rule = f"must be confirmed by {replicas} within {_REPLICA_TIMEOUT} ms"
            raise NotReplicatedError(f"store: replicas={confirmed}: {rule}")

    def _require_logged(self, info: bytes) -> None:
        """Wait until the server has written its log as far as it went when *info* came."""
        last, wanted = time.monotonic() + _LOG_TIMEOUT, sum(_log_sizes(info))
        while not _is_logged(info, wanted):
            if time.monotonic() > last:
                rule = "its disk has not taken the append-only file for so long; see the disk"
                raise NotLoggedError(f"store: seconds={_LOG_TIMEOUT:g}: {rule}")
            time.sleep(_LOG_PAUSE)
            info = self.replies([_INFO])[0]
            if isinstance(info, Exception):
                raise info

    def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Send *commands* and read as many replies: a pipeline of redis-py takes twice the time."""
        pool = self._client.connection_pool
        connection: Any = pool.get_connection()
        try:
            connection.send_packed_command([b"".join(map(_packed, commands))])
            return [_read(connection) for _ in commands]
        except BaseException:
            connection.disconnect()  # or the next caller would read what is left
            raise
        finally:
            pool.release(connection)

    def close(self) -> None:
        """Close the sockets."""
        self._client.close()


class StoreView:
    """What a party uses of one deployment's store."""

    def __init__(self, connection: Connection, keys: Keys) -> None:
        """Use *connection* for the *keys* of one deployment."""
        self._connection, self._keys = connection, keys
        self._call, self._call_many = connection.call, connection.call_many

    @property
    def shards(self) -> int:
        """Number of shards."""
        return self._keys.shards

    def exclusions(self) -> dict[str, bytes]:
        """Read the whole hash."""
        flat = self._call("HGETALL", self._keys.exclusions)
        pairs = zip(flat[::2], flat[1::2], strict=True)
        return {name.decode(errors="replace"): record for name, record in pairs}


def _log_sizes(info: bytes) -> tuple[int, int]:
    """Return how many bytes of the log are written, and wait to be; -1 each without one."""
    fields = parse_info(info)
    return int(fields.get("aof_current_size", -1)), int(fields.get("aof_buffer_length", -1))


def _is_logged(info: bytes, wanted: int) -> bool:
    """Return whether a server of this *info* has written its log up to *wanted* bytes."""
    written, waiting = _log_sizes(info)
    return waiting == 0 or 0 <= wanted <= written or all(line in info for line in _SYNCED)


def _read(connection: Any) -> Any:
    """Return the next reply, also if it is an error: those after it are still to be read."""
    try:
        return connection.read_response()
    except ResponseError as error:
        return error
