"""Stores for tests: fakeredis in this process, and a real server started for the session."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fakeredis
import pytest

from collector.config import STANDARD, VOLATILE
from collector.embedded import PATH, WHEEL, EmbeddedStore, launch
from collector.storage.connection import Connection, Part
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage

SHARDS = 2
needs_real = pytest.mark.skipif(
    os.environ.get("HEARSAY_TESTS_NO_REAL") == "1", reason="HEARSAY_TESTS_NO_REAL=1"
)
REAL = pytest.param("real", marks=[pytest.mark.real, needs_real])


@contextmanager
def real_server(data_dir: Path | None = None) -> Iterator[EmbeddedStore]:
    """Run a real server, or fail loudly: a suite that skips it proves little."""
    with launch(None, data_dir, kinds=(PATH, WHEEL)) as embedded:
        yield embedded


def fake_connection() -> Connection:
    """Return a connection to an empty fakeredis of its own."""
    server = fakeredis.FakeServer(version=(7, 0))
    return Connection(fakeredis.FakeRedis(server=server, protocol=2))


def own_keys(shards: int = SHARDS) -> Keys:
    """Return keys under a prefix that no other test has."""
    return Keys(f"test-{secrets.token_hex(6)}", shards)


def profile_of(kind: str) -> str:
    """Return the strictest profile that a kind of server satisfies."""
    return VOLATILE if kind == "fake" else STANDARD


class RecordingConnection(Connection):
    """Passes commands on and keeps them."""

    def __init__(self, inner: Connection) -> None:
        self._inner = inner
        self.commands: list[tuple[Part, ...]] = []

    def call(self, *command: Part) -> Any:
        self.commands.append(command)
        return self._inner.call(*command)

    def call_many(self, commands: Any) -> list[Any]:
        self.commands += commands
        return self._inner.call_many(commands)


class AcknowledgingStorage(RedisStorage):
    """The control: a fold that takes the acknowledgement for its token, and so counts twice."""

    _SCRIPT = """
        for i = 4, #ARGV do
          if redis.call('XACK', KEYS[1], ARGV[1], ARGV[i]) == 1 then
            redis.call('BITFIELD', KEYS[2], 'INCRBY', 'i64', '#0', 1)
          end
        end
        redis.call('SADD', KEYS[3], ARGV[2])
        return {}
    """

    def fold(self, shard: int, ids: Any, increments: Any) -> tuple[str, ...]:
        [cell] = increments
        keys = self._keys
        names = keys.stream(shard), keys.tally(shard, cell), keys.cells(shard, cell.metric, 0)
        self._call("EVAL", self._SCRIPT, 3, *names, "workers", cell.segment, "", *ids)
        return ()
