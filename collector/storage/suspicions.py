"""What the checks of closed epochs found, in the store: one hash, a field a metric.

A worker writes all that it found of a metric in place of what was found before, so two that look at
the same time change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from ..core.config import Config
from .connect import open_connection
from .connection import Connection
from .keys import Keys


class WatchRecord(msgspec.Struct, frozen=True):
    """What was found when the closed epochs of one metric were looked at last."""

    at: int  # Unix time
    latest: int  # epoch
    looked: int  # epochs with enough reports to be judged
    found: dict[str, list[str]]  # sentences, by the label of an epoch


class SuspicionStore(Protocol):
    """What the checks found.

    Raises, both methods: StorageUnavailableError, StorageFullError.  Each may be repeated.
    """

    def put(self, metric: bytes, record: WatchRecord) -> None:
        """Write what was found of a metric, in place of what was found before."""

    def records(self) -> Mapping[bytes, WatchRecord]:
        """Return what was found of each metric, by digest."""


class RedisSuspicions:
    """The SuspicionStore protocol on Redis or Valkey."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        """Use *connection* for the findings under *prefix*.  Raises ConfigError."""
        self._connection, self._key = connection, f"{Keys(prefix, 1).prefix}:suspicions"

    def put(self, metric: bytes, record: WatchRecord) -> None:
        """Write one field."""
        self._connection.call("HSET", self._key, metric.hex(), msgspec.json.encode(record))

    def records(self) -> dict[bytes, WatchRecord]:
        """Read the whole hash; what is not ours is passed over."""
        flat = self._connection.call("HGETALL", self._key)
        found = {}
        for name, text in zip(flat[::2], flat[1::2], strict=True):
            try:
                digest = bytes.fromhex(name.decode())
                found[digest] = msgspec.json.decode(text, type=WatchRecord)
            except (ValueError, msgspec.MsgspecError):
                continue
        return found


def open_suspicions(config: Config) -> RedisSuspicions:
    """Return the findings in *config*'s store.  Nothing is sent before their first use."""
    return RedisSuspicions(open_connection(config.redis_url), config.prefix)
