"""A server that is started again has all of it; one that is full lets workers make room."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from collector.core.cells import Cell
from collector.core.config import STANDARD, STRICT, VOLATILE
from collector.core.errors import (
    NotLoggedError,
    StorageFullError,
    StorageUnavailableError,
    UnsafeStoreError,
)
from collector.storage.access import INGEST, INIT, QUERY, WORKER
from collector.storage.archive_queue import RedisArchiveQueue
from collector.storage.connect import open_storage
from collector.storage.connection import Connection
from collector.storage.diagnosis import Diagnosis
from collector.storage.hashes import RedisHashes
from collector.storage.keys import Keys
from collector.storage.records import CredentialStore
from collector.storage.redis import RedisStorage
from collector.storage.values import SealedUpload
from tests.support.sites.guarded_site import GuardedSite, guarded_store
from tests.support.store.cluster import Node, running
from tests.support.store.servers import needs_real
from tests.support.store.stored import CELL, DAY, NOBODY_LEFT_IT, tallies

pytestmark = [pytest.mark.real, needs_real]

METRIC, FIRST_DAY = b"\x01" * 6, 30_000
FIRST_CELL: Final = Cell(METRIC, 3, "")
# As it once was in ACL files: then a server replays nothing that a function wrote.
WITHOUT_RIGHTS: Final = "user default reset"


def storage_of(site: GuardedSite, user: str, profile: str = STRICT) -> RedisStorage:
    return RedisStorage(Connection.open(site.address(user)), Keys("hearsay", 1), profile)


def found_after_a_restart(folder: Path, default: str | None = None) -> tuple[int, int, int]:
    """Fold one upload of three and claim one; return what a new server has."""
    with guarded_store(folder, default) as site:
        storage_of(site, INIT, VOLATILE).prepare()
        ingest, worker = storage_of(site, INGEST), storage_of(site, WORKER)
        for number in range(3):
            assert ingest.append(bytes([number]) * 16, FIRST_DAY, b"entry", 1)
        first, _ = worker.claim(0, "w", 2, 0)
        assert worker.fold(0, [first.id], {FIRST_CELL: [(0, 1), (1, 1)]}) == ()
    return found(folder, default)


def found(folder: Path, default: str | None = None) -> tuple[int, int, int]:
    """Start a server in *folder*; return its backlog, what it has folded and what accepted."""
    with guarded_store(folder, default) as site:
        vectors = tallies(storage_of(site, QUERY), METRIC, [3]).get(FIRST_CELL, [])
        worker = storage_of(site, WORKER)
        folded = sum(int.from_bytes(vector[:8], "big") for vector in vectors)
        return worker.backlog(), folded, worker.counters()[0].accepted.uploads


def test_a_restart_with_these_users_finds_every_tally_and_every_pending_upload(
    tmp_path: Path,
) -> None:
    """The server replays its append-only file as the default user: off, and with every right."""
    assert found_after_a_restart(tmp_path) == (2, 1, 3)


def test_a_restart_knows_the_ids_of_every_upload(tmp_path: Path) -> None:
    """And the secret by which they are found; with the rights of the web process's user alone."""
    uploads = [SealedUpload(bytes([number]) * 16, FIRST_DAY, b"e", 1) for number in range(200)]
    with guarded_store(tmp_path) as site:
        storage_of(site, INIT, VOLATILE).prepare()
        assert all(storage_of(site, INGEST).append_many(uploads))

    with guarded_store(tmp_path) as site:
        again = storage_of(site, INGEST).append_many(uploads)
        form = Connection.open(site.address(INIT)).call(
            "TYPE", Keys("hearsay", 1).seen(0, FIRST_DAY)
        )

    assert (any(again), form) == (False, b"hash")


def test_nobody_logs_in_as_the_default_user(tmp_path: Path) -> None:
    with guarded_store(tmp_path):
        nameless = Connection.open(f"unix://{tmp_path}/store.sock?db=0")

        for words in (("PING",), ("AUTH", "default", ""), ("AUTH", "")):
            with pytest.raises(StorageUnavailableError):
                nameless.call(*words)


def test_a_server_that_would_replay_nothing_is_refused_by_name(tmp_path: Path) -> None:
    """It takes every upload, answers every query, and forgets all of it at its next restart."""
    with guarded_store(tmp_path, WITHOUT_RIGHTS) as site:
        with pytest.raises(UnsafeStoreError, match="user default=without rights"):
            storage_of(site, INIT).prepare()

        [server] = Diagnosis(Connection.open(site.address(INIT)), Keys("hearsay", 1)).servers()

    assert server.replays is False


def test_the_restart_of_this_test_loses_all_under_a_default_user_without_rights(
    tmp_path: Path,
) -> None:
    """The control, on Redis 7.0: the test above can see what it looks for."""
    after = found_after_a_restart(tmp_path, WITHOUT_RIGHTS)
    with guarded_store(tmp_path) as site:
        [server] = Diagnosis(Connection.open(site.address(INIT)), Keys("hearsay", 1)).servers()
    if not server.info["redis_version"].startswith("7.0."):
        pytest.skip("this server replays its file whatever its default user may do")

    assert after != (2, 1, 3)


def test_what_was_forgotten_is_found_again_once_the_default_user_has_its_rights(
    tmp_path: Path,
) -> None:
    """As the runbook says: the file still has it, while nothing new is written."""
    found_after_a_restart(tmp_path, WITHOUT_RIGHTS)

    assert found(tmp_path) == (2, 1, 3)


@pytest.fixture
def node() -> Iterator[Node]:
    with running(1, [{}]) as [alone]:
        yield alone


def storage_at(node: Node) -> RedisStorage:
    return open_storage(f"redis://{node.address}/0", "full", 1, STANDARD)


def fill(node: Node) -> None:
    node.connection.call("CONFIG", "SET", "maxmemory", 1)


def test_a_worker_that_starts_while_memory_is_full_folds(node: Node) -> None:
    """A restart must not need the room that only the worker can make."""
    before = storage_at(node)
    before.prepare()
    before.append(bytes(16), DAY, b"entry", 1)
    fill(node)

    after = storage_at(node)
    after.prepare()
    [claimed] = after.claim(0, "one", 9, NOBODY_LEFT_IT)

    assert after.fold(0, [claimed.id], {CELL: [(0, 1)]}) == ()
    assert after.backlog() == 0


def test_what_waits_for_the_archive_is_drained_while_memory_is_full(node: Node) -> None:
    """Law: what fills the store can be taken out of it, also before the first file is there."""
    keys = Keys("full", 1)
    worker = RedisStorage(node.connection, keys, STANDARD, archived=True)
    worker.prepare()
    queue = RedisArchiveQueue(node.connection, keys)
    assert queue.bind("archive", fresh=True)
    worker.append(bytes(16), DAY, b"entry", 1)
    worker.fold(0, [one.id for one in worker.claim(0, "one", 9, NOBODY_LEFT_IT)], {CELL: [(0, 1)]})
    fill(node)

    assert queue.bind("archive", fresh=True)
    assert not queue.bind("another", fresh=True)
    last = queue.last(0)
    assert [fold.entries for fold in queue.waiting(0, last)] == [(b"entry",)]
    queue.forget(0, last)

    assert queue.last(0) == 0


def test_a_store_that_was_never_prepared_cannot_be_while_memory_is_full(node: Node) -> None:
    """That it can start then must not mean that it starts without its library."""
    fill(node)

    with pytest.raises(StorageFullError):
        storage_at(node).prepare()


class FullDisk(Connection):
    """To a server whose log takes nothing more."""

    def _require_logged(self, info: bytes) -> None:
        raise NotLoggedError("store: its disk is full")


def test_processes_start_while_the_log_takes_nothing_but_nothing_new_is_prepared(
    node: Node,
) -> None:
    storage_at(node).prepare()
    full = FullDisk.open(f"redis://{node.address}/0")

    RedisStorage(full, Keys("full", 1), STANDARD).prepare()

    with pytest.raises(NotLoggedError):
        RedisStorage(full, Keys("new", 1), STANDARD).prepare()
    full.close()


def test_a_key_is_revoked_while_memory_is_full_and_none_is_made(node: Node) -> None:
    """A stolen key must not be good until there is room again."""
    storage_at(node).prepare()
    store = CredentialStore(RedisHashes(node.connection, "full"))
    store.put(b"k" * 32, "good")
    fill(node)

    assert store.replace(b"k" * 32, b"good", "revoked")
    assert not store.replace(b"n" * 32, b"good", "good")

    assert store.records() == {b"k" * 32: b"revoked"}
    with pytest.raises(StorageFullError):
        store.put(b"n" * 32, "good")


def test_servers_that_change_their_settings_say_so_when_they_are_next_asked(node: Node) -> None:
    """A store that is started again with other settings is taken for the same by its clients."""
    storage = storage_at(node)
    before = storage.health()
    node.connection.call("CONFIG", "SET", "appendonly", "no", "maxmemory-policy", "allkeys-lru")

    after = storage.health()

    assert before.faults == ()
    assert [fault.partition("=")[0] for fault in after.faults] == [
        "maxmemory_policy",
        "aof_enabled",
    ]
    assert abs(after.times[0] - time.time()) < 60
