"""A server with the users of the ACL file is started again, and has all that it acknowledged."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from collector.core.cells import Cell
from collector.core.config import STRICT, VOLATILE
from collector.core.errors import StorageUnavailableError, UnsafeStoreError
from collector.storage.access import INGEST, INIT, QUERY, WORKER
from collector.storage.connection import Connection
from collector.storage.diagnosis import Diagnosis
from collector.storage.keys import Keys
from collector.storage.redis import RedisStorage
from tests.support.sites.guarded_site import GuardedSite, guarded_store
from tests.support.store.servers import needs_real
from tests.support.store.stored import tallies

pytestmark = [pytest.mark.real, needs_real]

METRIC, DAY = b"\x01" * 6, 30_000
CELL: Final = Cell(METRIC, 3, "")
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
            assert ingest.append(bytes([number]) * 16, DAY, b"entry", 1)
        first, _ = worker.claim(0, "w", 2, 0)
        assert worker.fold(0, [first.id], {CELL: [(0, 1), (1, 1)]}) == ()
    return found(folder, default)


def found(folder: Path, default: str | None = None) -> tuple[int, int, int]:
    """Start a server in *folder*; return its backlog, what it has folded and what accepted."""
    with guarded_store(folder, default) as site:
        vectors = tallies(storage_of(site, QUERY), METRIC, [3]).get(CELL, [])
        worker = storage_of(site, WORKER)
        folded = sum(int.from_bytes(vector[:8], "big") for vector in vectors)
        return worker.backlog(), folded, worker.counters()[0].accepted.uploads


def test_a_restart_with_these_users_finds_every_tally_and_every_pending_upload(
    tmp_path: Path,
) -> None:
    """The server replays its append-only file as the default user: off, and with every right."""
    assert found_after_a_restart(tmp_path) == (2, 1, 3)


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
