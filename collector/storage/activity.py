"""Counts of processes in the store: one hash a UTC day, each process writing only its own fields.

A process writes sums, not steps, so a write that is repeated changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from client_sdk.core.epoch import DAY

from ..core.config import Config
from .connect import open_connection
from .connection import Connection, Part
from .keys import Keys

_DAYS: Final = 2  # days after which a day's counts are forgotten
_SEEN: Final = "seen"  # the field that holds the Unix time of the last write
_FIELD: Final = re.compile(r"([a-z]+):([0-9a-f]+):([a-z0-9_.-]+)")


@dataclass(frozen=True)
class ActivityRecord:
    """What one process has counted on a day, and the Unix time at which it said so."""

    role: str
    process: str
    counts: Mapping[str, int]
    seen: int


class ActivityStore(Protocol):
    """What processes say of themselves.

    Raises, both methods: StorageUnavailableError, StorageFullError.  Each may be repeated.
    """

    def put(self, day: int, record: ActivityRecord) -> None:
        """Write the sums of one process on epoch day *day*, in place of older ones.

        A sum that *record* leaves out stays as it was.
        """

    def records(self, day: int) -> list[ActivityRecord]:
        """Return the last record of every process on epoch day *day*."""


class RedisActivity:
    """The ActivityStore protocol on Redis or Valkey."""

    def __init__(self, connection: Connection, prefix: str) -> None:
        """Use *connection* for the counts under *prefix*.  Raises ConfigError."""
        self._connection, self._prefix = connection, Keys(prefix, 1).prefix

    def put(self, day: int, record: ActivityRecord) -> None:
        """Write one field a count."""
        own = f"{record.role}:{record.process}"
        pairs: list[Part] = [f"{own}:{_SEEN}", record.seen]
        for name, n in record.counts.items():
            pairs += f"{own}:{name}", n
        key = self._key(day)
        forgotten = ("EXPIREAT", key, (day + _DAYS) * DAY)
        self._connection.call_many([("HSET", key, *pairs), forgotten])

    def records(self, day: int) -> list[ActivityRecord]:
        """Read the whole hash: a few dozen fields a process."""
        flat = self._connection.call("HGETALL", self._key(day))
        found: dict[tuple[str, str], dict[str, int]] = {}
        for name, text in zip(flat[::2], flat[1::2], strict=True):
            parts = _FIELD.fullmatch(name.decode(errors="replace"))
            if parts and text.isdigit():
                found.setdefault((parts[1], parts[2]), {})[parts[3]] = int(text)
        return [
            ActivityRecord(role, process, counts, counts.pop(_SEEN, 0))
            for (role, process), counts in found.items()
        ]

    def _key(self, day: int) -> str:
        return f"{self._prefix}:activity:{day}"


def open_activity(config: Config) -> RedisActivity:
    """Return the counts of *config*'s store.  Nothing is sent before their first use."""
    return RedisActivity(open_connection(config.redis_url), config.prefix)
