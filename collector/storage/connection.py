"""A connection to the server that sends commands and raises our errors.  Replies stay raw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from redis import Redis
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.exceptions import ResponseError
from redis.retry import Retry

from ..core.errors import ConfigError, NotReplicatedError
from .replies import translated

Part: TypeAlias = str | bytes | int
Command: TypeAlias = tuple[Part, ...]

CONNECT_TIMEOUT: Final = 2  # seconds
ANSWER_TIMEOUT: Final = 5  # seconds; a synced write on a busy disk takes well under one
REPLICA_TIMEOUT: Final = 1_000  # milliseconds until a replica must have confirmed
# A command whose answer was lost is sent once more.  That is safe only because all our writes are
# idempotent: an upload id, or a stream entry that is still there, decides inside the script.
RETRIES: Final = 1
_PAUSE: Final = ExponentialBackoff(cap=0.5, base=0.05)  # seconds


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
        try:
            client = Redis.from_url(
                url,
                protocol=2,
                socket_connect_timeout=CONNECT_TIMEOUT,
                socket_timeout=ANSWER_TIMEOUT,
                retry=Retry(NoBackoff(), 0),  # of connecting; commands are repeated here
            )
        except ValueError:  # not even as a cause: the address may hold a password
            rule = "must begin with redis://, rediss://, unix:// or redis-cluster://"
            raise ConfigError("REDIS_URL", "***", rule) from None
        return cls(client)

    def nodes(self) -> Sequence[Connection]:
        """Return a connection to each server that holds keys."""
        return [self]

    def call(self, *command: Part) -> Any:
        """Send one command and return its reply."""
        return self.call_many([command])[0]

    def call_many(self, commands: Sequence[Command], replicas: int = 0) -> list[Any]:
        """Send *commands* in one round trip; raise the first error if any failed.

        Raises: NotReplicatedError: fewer than *replicas* have confirmed what was written.
        """
        if not commands:
            return []
        with translated():
            replies = self.replies(commands, replicas)
            for reply in replies:
                if isinstance(reply, Exception):
                    raise reply
        return replies

    def replies(self, commands: Sequence[Command], replicas: int = 0) -> list[Any]:
        """Send *commands* in one round trip; an error of one is its reply, not yet translated."""
        waits = [("WAIT", replicas, REPLICA_TIMEOUT)] if replicas else []
        sent = [*commands, *waits]
        replies = self._retry.call_with_retry(lambda: self._exchange(sent), lambda _: None)
        if waits:
            confirmed = replies.pop()
            if isinstance(confirmed, Exception):
                raise confirmed
            if confirmed < replicas:
                rule = f"must be confirmed by {replicas} within {REPLICA_TIMEOUT} ms"
                raise NotReplicatedError(f"store: replicas={confirmed}: {rule}")
        return replies

    def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Send *commands* and read as many replies: a pipeline of redis-py takes twice the time."""
        pool = self._client.connection_pool
        connection: Any = pool.get_connection()
        try:
            connection.send_packed_command(connection.pack_commands(commands))
            return [_read(connection) for _ in commands]
        except BaseException:
            connection.disconnect()  # or the next caller would read what is left
            raise
        finally:
            pool.release(connection)

    def close(self) -> None:
        """Close the sockets."""
        self._client.close()


def _read(connection: Any) -> Any:
    """Return the next reply, also if it is an error: those after it are still to be read."""
    try:
        return connection.read_response()
    except ResponseError as error:
        return error
