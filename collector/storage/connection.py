"""A connection to the server that sends commands and raises our errors.  Replies stay raw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from redis import Redis
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from ..errors import ConfigError
from .replies import translated

Part: TypeAlias = str | bytes | int
Command: TypeAlias = tuple[Part, ...]

CONNECT_TIMEOUT: Final = 2  # seconds
ANSWER_TIMEOUT: Final = 5  # seconds; a synced write on a busy disk takes well under one
# A command whose answer was lost is sent once more.  That is safe only because all our writes are
# idempotent: an upload id, or a stream entry that is still there, decides inside the script.
RETRIES: Final = 1
_PAUSE: Final = ExponentialBackoff(cap=0.5, base=0.05)  # seconds


class Connection:
    """Commands to one server, one at a time or many in one round trip."""

    def __init__(self, client: Redis) -> None:
        """Use *client*, which must speak RESP 2; its own parsing of replies is switched off."""
        client.response_callbacks.clear()  # so that all parsing is in one place
        self._client = client
        self._send: Callable[..., Any] = client.execute_command

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
                retry=Retry(_PAUSE, RETRIES),
            )
        except ValueError:  # not even as a cause: the address may hold a password
            rule = "must begin with redis://, rediss:// or unix://"
            raise ConfigError("REDIS_URL", "***", rule) from None
        return cls(client)

    def call(self, *command: Part) -> Any:
        """Send one command and return its reply."""
        with translated():
            return self._send(*command)

    def call_many(self, commands: Sequence[Command]) -> list[Any]:
        """Send *commands* in one round trip; raise the first error if any failed."""
        if not commands:
            return []
        with translated(), self._client.pipeline(transaction=False) as pipeline:
            queue: Callable[..., Any] = pipeline.execute_command
            for command in commands:
                queue(*command)
            # Raised here and not by redis-py, which would put the payload into its message.
            replies: list[Any] = pipeline.execute(raise_on_error=False)
            for reply in replies:
                if isinstance(reply, Exception):
                    raise reply
        return replies

    def close(self) -> None:
        """Close the sockets."""
        self._client.close()
