"""What servers tell of themselves; one that could lose what it acknowledged is refused."""

from __future__ import annotations

from typing import Any

import pytest

from collector.core.config import HA, PROFILES, STANDARD, STRICT, VOLATILE
from collector.core.errors import RefusedByStoreError, UnsafeStoreError
from collector.storage.connection import NO_PROOF, Connection, Part, Proof, parse_info
from collector.storage.diagnosis import Diagnosis, Server
from collector.storage.keys import Keys
from collector.storage.preparation import LIBRARY_VERSION, faults
from collector.storage.redis import RedisStorage
from tests.support.store.servers import REAL, RecordingConnection, fake_connection

GOOD = {
    "redis_version": "7.0.15",
    "role": "master",
    "maxmemory_policy": "noeviction",
    "aof_enabled": "1",
}


@pytest.mark.parametrize(
    ("info", "sync", "profile", "named"),
    [
        *((GOOD, "always", profile, []) for profile in PROFILES),
        # A Valkey is judged by its own version.
        *(
            (GOOD | {"redis_version": "6.0.0", "valkey_version": version}, None, STANDARD, [])
            for version in ("7.2.0", "8.1.3", "10.0")
        ),
        *(
            (GOOD, sync, STRICT, [f"appendfsync={sync or '?'}"])
            for sync in ("everysec", "no", None)
        ),
        # One that syncs when its system likes loses more than two seconds with the power.
        *((GOOD, sync, STANDARD, []) for sync in ("everysec", None)),
        (GOOD, "no", STANDARD, ["appendfsync=no"]),
        ({"redis_version": "6.0"}, None, STRICT, [...] * 5),
        # A stand-in that tells nothing is fit for volatile only.
        ({}, None, VOLATILE, []),
        ({}, None, STANDARD, [...]),
        ({}, None, STRICT, [...]),
    ],
)
def test_all_faults_of_a_server_are_named_at_once(
    info: dict[str, str], sync: str | None, profile: str, named: list[Any]
) -> None:
    found = [reason.split(":")[0] for reason in faults(info, sync, profile)]

    assert len(found) == len(named)
    assert ... in named or found == named


@pytest.mark.parametrize(
    ("field", "value", "profiles"),
    [
        ("redis_version", "6.2.14", PROFILES),
        ("redis_version", "nonsense", PROFILES),
        ("valkey_version", "7.1.9", PROFILES),
        ("role", "slave", PROFILES),
        ("maxmemory_policy", "allkeys-lru", PROFILES),
        ("maxmemory_policy", "volatile-ttl", PROFILES),
        ("aof_enabled", "0", (STANDARD, STRICT, HA)),
    ],
)
def test_a_bad_setting_is_named_where_it_matters(
    field: str, value: str, profiles: tuple[str, ...]
) -> None:
    found = {profile: faults(GOOD | {field: value}, "always", profile) for profile in PROFILES}

    assert {profile for profile, reasons in found.items() if reasons} == set(profiles)
    assert {reasons[0].split(":")[0] for reasons in found.values() if reasons} == {
        f"{field}={value}"
    }


def test_info_is_read_by_field() -> None:
    text = b"# Server\r\nredis_version:7.0.15\r\n\r\n# Memory\r\nused:1:2\r\n"

    assert parse_info(text) == {"redis_version": "7.0.15", "used": "1:2"}


def test_prepare_refuses_an_unsafe_server_and_writes_nothing(keys: Keys) -> None:
    connection = RecordingConnection(fake_connection())

    with pytest.raises(UnsafeStoreError, match="standard"):
        RedisStorage(connection, keys, STANDARD).prepare()

    assert {command[0] for command in connection.commands} <= {"INFO", "GET"}


def test_prepare_refuses_another_number_of_shards(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    other = RedisStorage(server, Keys(keys.prefix, keys.shards + 1), VOLATILE)

    with pytest.raises(UnsafeStoreError, match="shards=3: the store was prepared with 2"):
        other.prepare()


class WithoutRights(RecordingConnection):
    """A user who has FCALL but may neither load functions nor read settings."""

    def call(self, *command: Part) -> object:
        if command[0] in ("FUNCTION", "CONFIG"):
            raise RefusedByStoreError("NOPERM")
        return super().call(*command)


def test_prepare_without_the_right_to_load_uses_what_was_loaded(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    user = RedisStorage(WithoutRights(server), keys, VOLATILE)

    user.prepare()

    assert user.append(b"a" * 16, 30_000, b"entry", 1)


@pytest.mark.parametrize("server_kind", [REAL])
def test_strict_names_the_setting_that_a_user_may_not_read(server: Connection, keys: Keys) -> None:
    with pytest.raises(UnsafeStoreError, match=r"appendfsync=\?"):
        RedisStorage(WithoutRights(server), keys, STRICT).prepare()


class Refusing(Connection):
    """A user with no right at all."""

    def __init__(self) -> None:
        pass

    def call(self, *command: Any) -> Any:
        raise RefusedByStoreError("NOPERM")

    def call_many(self, commands: Any, proof: Proof = NO_PROOF) -> list[Any]:
        raise RefusedByStoreError("NOPERM")


def test_a_prepared_store_is_seen_as_prepared(
    server: Connection, keys: Keys, store: RedisStorage, server_kind: str
) -> None:
    """Every server has the library, every shard its group and its counts."""
    diagnosis = Diagnosis(server, keys)

    servers, shards = diagnosis.servers(), diagnosis.shards()

    assert len(servers) == (3 if server_kind == "cluster" else 1)
    assert [one.library for one in servers] == [LIBRARY_VERSION] * len(servers)
    # the default, which a server outside of a cluster has, too, and does not heed
    assert {one.stops_with_others for one in servers} == {server_kind == "cluster"}
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
