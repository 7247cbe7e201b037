"""Nothing is acknowledged into a store that was emptied, in whole or in part, by mistake."""

from __future__ import annotations

import secrets
from typing import Any, cast

import pytest

from collector.core.errors import NotPreparedError, ReplacedStoreError, UnsafeStoreError
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.preparation import LIBRARY_VERSION, change_contents, establish, generation_of
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from tests.support.store.servers import SHARDS, profile_of
from tests.support.store.stored import DAY, claim_all


def another(server: Connection, keys: Keys, server_kind: str) -> RedisStorage:
    """Return the storage of a process that has just been started."""
    return RedisStorage(server, keys, profile_of(server_kind))


def of_shard(shard: int) -> SealedUpload:
    return SealedUpload(shard.to_bytes(8, "big") + secrets.token_bytes(8), DAY, b"entry", 1)


def append(store: RedisStorage, shard: int = 0) -> bool:
    return store.append(*of_shard(shard))


def empty(server: Connection, keys: Keys) -> None:
    """Delete everything of the deployment, as FLUSHALL does; functions stay."""
    RedisStorage(server, keys).destroy()


def lose(server: Connection, keys: Keys, shard: int) -> None:
    """Delete everything of one shard, as a server does that comes back without its files."""
    names = keys.stream, keys.counters, keys.state, keys.quarantine
    for name in [name(shard) for name in names] + [keys.seen(shard, DAY)]:
        server.call("DEL", name)


def test_an_emptied_store_acknowledges_nothing_and_is_not_ready(
    store: RedisStorage, server: Connection, keys: Keys, server_kind: str
) -> None:
    """From the very first upload on, without a poll; also for what was seen before."""
    serving = another(server, keys, server_kind)
    known = of_shard(0)
    assert serving.append(*known)
    empty(server, keys)

    for sealed in (known, of_shard(0), of_shard(1)):
        with pytest.raises(ReplacedStoreError, match="gone"):
            serving.append(*sealed)
    refusing = serving.refusing().values()
    assert [type(failure) for failure in refusing] == [ReplacedStoreError] * SHARDS
    assert str(generation_of(server, keys)) == ""
    assert [server.call("EXISTS", keys.stream(shard)) for shard in range(SHARDS)] == [0] * SHARDS


def test_a_store_that_took_the_place_of_another_is_used_by_those_who_began_with_it(
    store: RedisStorage, server: Connection, keys: Keys, server_kind: str
) -> None:
    before = another(server, keys, server_kind)
    assert append(before)
    empty(server, keys)
    store.prepare(renew=True)
    after = another(server, keys, server_kind)

    with pytest.raises(ReplacedStoreError):
        append(before)
    assert append(after)
    assert len(claim_all(after)) == 1


def test_one_lost_shard_acknowledges_nothing_while_the_others_go_on(
    store: RedisStorage, server: Connection, keys: Keys, server_kind: str
) -> None:
    serving = another(server, keys, server_kind)
    assert append(serving, 0)
    lose(server, keys, 1)

    with pytest.raises(ReplacedStoreError):
        append(serving, 1)
    assert append(serving, 0)
    assert {shard: type(failure) for shard, failure in serving.refusing().items()} == {
        1: ReplacedStoreError
    }


def test_a_process_that_starts_on_a_store_with_a_lost_shard_mends_nothing_by_itself(
    store: RedisStorage, server: Connection, keys: Keys, server_kind: str
) -> None:
    """Or a restart would hide the loss: an operator decides, by hearsay init."""
    lose(server, keys, 1)
    started = another(server, keys, server_kind)
    with pytest.raises(UnsafeStoreError, match="shards=1"):
        started.prepare()

    started.prepare(renew=True)

    assert append(started, 0)
    assert append(started, 1)


def test_the_loss_of_the_name_alone_is_the_loss_of_a_part(
    store: RedisStorage, server: Connection, keys: Keys, server_kind: str
) -> None:
    """In a cluster it is on one server of several."""
    server.call("DEL", keys.generation)

    with pytest.raises(UnsafeStoreError, match="generation"):
        another(server, keys, server_kind).prepare()


def test_preparing_again_changes_no_generation(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    before = generation_of(server, keys)

    store.prepare()
    store.prepare(renew=True)

    assert generation_of(server, keys) == before
    assert len(before.id) == 16


def test_an_interrupted_preparation_is_finished_by_the_next(
    store: RedisStorage, server: Connection, keys: Keys, server_kind: str
) -> None:
    server.call("HSET", keys.generation, "whole", "")
    server.call("DEL", keys.state(1))
    before = server.call("HGET", keys.generation, "id").decode()

    another(server, keys, server_kind).prepare()

    assert generation_of(server, keys).id == before


def test_tallies_changed_by_hand_change_what_the_contents_are_known_by(
    store: RedisStorage, server: Connection, keys: Keys
) -> None:
    """And nothing else: uploads go on."""
    before = str(generation_of(server, keys))

    change_contents(server, keys)

    assert str(generation_of(server, keys)) != before
    assert append(store)


def test_a_library_of_this_release_without_a_generation_takes_no_upload(
    server: Connection, keys: Keys, server_kind: str
) -> None:
    """As between the exchange of the library and the end of hearsay init."""
    storage = another(server, keys, server_kind)
    storage.prepare()
    for shard in range(SHARDS):
        server.call("DEL", keys.state(shard))
    server.call("DEL", keys.generation)

    with pytest.raises((ReplacedStoreError, NotPreparedError)):
        append(another(server, keys, server_kind))
    storage.prepare()
    assert append(another(server, keys, server_kind))
    assert {int(node.call("FCALL", "hearsay_version", 0)) for node in server.nodes()} == {
        LIBRARY_VERSION
    }
    storage.destroy()


class Overtaken:
    """A connection whose user is overtaken by another process behind its n-th command."""

    def __init__(self, server: Connection, keys: Keys, at: int) -> None:
        self._server, self._keys, self._left = server, keys, at

    def call(self, *command: Any) -> Any:
        """Pass *command* on."""
        return self._then(self._server.call(*command))

    def call_many(self, commands: Any) -> Any:
        """Pass *commands* on."""
        return self._then(self._server.call_many(commands))

    def _then(self, answer: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            establish(self._server, self._keys, renew=False)
        return answer


@pytest.mark.parametrize("at", range(1, 5 + SHARDS))
def test_two_processes_that_begin_on_a_new_store_at_once_both_use_it(
    store: RedisStorage, server: Connection, keys: Keys, at: int
) -> None:
    """As `hearsay serve & hearsay worker` do: what is being written has not been lost."""
    for name in [keys.generation, *(keys.state(shard) for shard in range(SHARDS))]:
        server.call("DEL", name)

    establish(cast("Connection", Overtaken(server, keys, at)), keys, renew=False)

    assert generation_of(server, keys).id
