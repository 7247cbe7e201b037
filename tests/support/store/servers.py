"""Stores for tests: fakeredis in this process, and a real server started for the session."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fakeredis
import pytest

from collector.core.config import STANDARD, VOLATILE
from collector.demo.embedded import PATH, WHEEL, EmbeddedStore, launch
from collector.storage.connection import NO_PROOF, Connection, Part, Proof
from collector.storage.keys import Keys, member_of
from collector.storage.redis import RedisStorage

NO_SERVER = "neither redis-server nor valkey-server is on PATH"
SHARDS = 2
MEMORY = "memory"
needs_real = pytest.mark.skipif(
    os.environ.get("HEARSAY_TESTS_NO_REAL") == "1", reason="HEARSAY_TESTS_NO_REAL=1"
)
REAL = pytest.param("real", marks=[pytest.mark.real, needs_real])
CLUSTER = pytest.param("cluster", marks=[pytest.mark.real, needs_real])

EVERY_STORE = pytest.mark.parametrize(
    "server_kind", [MEMORY, "fake", REAL, CLUSTER], indirect=True
)  # of a law that asks for no server: it binds the store in memory, too


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

    def nodes(self) -> Sequence[Connection]:
        inner = self._inner.nodes()
        return [self] if len(inner) == 1 else inner

    def call(self, *command: Part) -> Any:
        self.commands.append(command)
        return self._inner.call(*command)

    def call_many(self, commands: Any, proof: Proof = NO_PROOF) -> list[Any]:
        self.commands += commands
        return self._inner.call_many(commands, proof)

    def try_many(self, commands: Any, proof: Proof = NO_PROOF) -> list[Any]:
        self.commands += commands
        return self._inner.try_many(commands, proof)


class AcknowledgingStorage(RedisStorage):
    """The control: a fold that takes the acknowledgement for its token, and so counts twice."""

    _SCRIPT = """
        local acknowledged = 0
        for i = 4, #ARGV do
          acknowledged = acknowledged + redis.call('XACK', KEYS[1], ARGV[1], ARGV[i])
        end
        if acknowledged == 0 then return {} end
        for index, delta in string.gmatch(ARGV[3], '(%d+) (%-?%d+)') do
          redis.call('BITFIELD', KEYS[2], 'INCRBY', 'i64', '#' .. index, delta)
        end
        redis.call('SADD', KEYS[3], ARGV[2])
        return {}
    """

    def fold(
        self, shard: int, ids: Any, increments: Any, ending: int | None = None
    ) -> tuple[str, ...]:
        [(cell, pairs)] = increments.items()
        keys = self._keys
        names = keys.stream(shard), keys.tally(shard, cell), keys.cells(shard, cell.metric, 0)
        text = " ".join(f"{index} {delta}" for index, delta in pairs)
        member = member_of(cell)
        self._call("EVAL", self._SCRIPT, 3, *names, "workers", member, text, *ids)
        return ()
