"""What the servers tell of themselves, and what a user who may not ask learns."""

from __future__ import annotations

from typing import Any

import pytest

from collector.core.errors import RefusedByStoreError
from collector.storage.connection import Connection
from collector.storage.diagnosis import Diagnosis, Server
from collector.storage.keys import Keys
from collector.storage.preparation import LIBRARY_VERSION
from collector.storage.redis import RedisStorage


class Refusing(Connection):
    """A user with no right at all."""

    def __init__(self) -> None:
        pass

    def call(self, *command: Any) -> Any:
        raise RefusedByStoreError("NOPERM")

    def call_many(self, commands: Any, replicas: int = 0) -> list[Any]:
        raise RefusedByStoreError("NOPERM")


def test_a_prepared_store_is_seen_as_prepared(
    server: Connection, keys: Keys, store: RedisStorage, server_kind: str
) -> None:
    """Every server has the library, every shard its group and its counts."""
    diagnosis = Diagnosis(server, keys)

    servers, shards = diagnosis.servers(), diagnosis.shards()

    assert len(servers) == (3 if server_kind == "cluster" else 1)
    assert [one.library for one in servers] == [LIBRARY_VERSION] * len(servers)
    assert diagnosis.recorded()[0] == keys.shards
    assert [one.has_group for one in shards] == [True] * keys.shards
    assert [one.counters for one in shards] == store.counters()


def test_a_store_that_is_not_prepared_is_seen_as_that(server: Connection, keys: Keys) -> None:
    """Nothing is made by looking."""
    diagnosis = Diagnosis(server, Keys(f"{keys.prefix}-other", 1))

    assert diagnosis.recorded() == (None, None)
    assert diagnosis.shards()[0].has_group is False


def test_the_clock_of_a_server_is_compared_with_ours(server: Connection, keys: Keys) -> None:
    """A clock of ours that stands at zero is decades behind."""
    [first, *_] = Diagnosis(server, keys, lambda: 0.0).servers()

    assert first.ahead is not None
    assert first.ahead > 1_000_000_000


def test_who_may_not_ask_learns_nothing_and_is_not_stopped(keys: Keys) -> None:
    """The process's own user has few rights; a scrape goes on without what they do not give."""
    diagnosis = Diagnosis(Refusing(), keys)

    assert diagnosis.servers() == [Server({}, None, None, None)]
    assert diagnosis.recorded() == (None, None)
    assert [shard.has_group for shard in diagnosis.shards()] == [None] * keys.shards


@pytest.mark.parametrize(
    ("info", "is_sound"),
    [
        ({}, True),
        ({"aof_last_write_status": "ok", "aof_last_bgrewrite_status": "ok"}, True),
        ({"aof_last_write_status": "err"}, False),
        ({"aof_last_bgrewrite_status": "err"}, False),
    ],
)
def test_a_log_is_sound_if_it_was_last_written_and_rewritten(
    info: dict[str, str], is_sound: bool
) -> None:
    assert Server(info, None, None, None).log_is_sound is is_sound
