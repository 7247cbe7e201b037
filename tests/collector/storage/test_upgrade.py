"""Old and new releases share a store: libraries are exchanged under load, and nothing is lost."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Iterator
from importlib.resources import files

import pytest

from collector.core.errors import NotPreparedError
from collector.storage.connection import Connection
from collector.storage.keys import Keys
from collector.storage.preparation import LIBRARY_VERSION
from collector.storage.redis import RedisStorage
from tests.support.store.servers import profile_of
from tests.support.store.stored import CELL, DAY, claim_all, total

LIBRARY = files("collector.storage").joinpath("hearsay.lua").read_text(encoding="utf-8")
VERSION = f"local VERSION = {LIBRARY_VERSION}\n"
# The next release: another version, and one step more.
NEXT = LIBRARY.replace(VERSION, f"local VERSION = {LIBRARY_VERSION + 1}\n") + (
    "\nregister('next_step', function() return 1 end, 'no-writes')\n"
)
# The release before the first: it only knew its version.
OLD = "#!lua name=hearsay\nredis.register_function('hearsay_version', function() return 0 end)\n"
UPLOADS = 300


@pytest.fixture
def load(server: Connection) -> Iterator[object]:
    """Return a function that loads a library everywhere; afterwards ours is loaded again."""

    def everywhere(source: str) -> None:
        for node in server.nodes():
            node.call("FUNCTION", "LOAD", "REPLACE", source)

    yield everywhere
    everywhere(LIBRARY)


def version(server: Connection) -> set[int]:
    return {int(node.call("FCALL", "hearsay_version", 0)) for node in server.nodes()}


def fold_all(store: RedisStorage) -> int:
    """Fold what is there, one report an entry; return the number of entries."""
    folded = 0
    for shard in range(store.shards):
        while claimed := store.claim(shard, "any", 50, 0):
            ids = [one.id for one in claimed]
            assert store.fold(shard, ids, {CELL: [(0, len(ids)), (1, len(ids))]}) == ()
            folded += len(ids)
    return folded


def test_the_versions_of_this_test_differ_from_ours() -> None:
    """Otherwise nothing would be exchanged."""
    assert VERSION in LIBRARY
    assert NEXT.count(f"local VERSION = {LIBRARY_VERSION + 1}") == 1


def test_uploads_and_folds_go_on_while_the_library_is_exchanged_there_and_back(
    store: RedisStorage, load: object
) -> None:
    """Every acknowledged upload is folded exactly once, and no call finds a step missing."""
    assert callable(load)
    done = threading.Event()
    failures: list[BaseException] = []

    def take() -> None:
        try:
            for _ in range(UPLOADS):
                assert store.append(secrets.token_bytes(16), DAY, b"entry", 1)
        except BaseException as error:  # noqa: BLE001  # shown below
            failures.append(error)
        finally:
            done.set()

    uploads = threading.Thread(target=take)
    uploads.start()
    folded = exchanges = 0
    while not done.is_set() or not exchanges:
        load(NEXT if exchanges % 2 == 0 else LIBRARY)
        exchanges += 1
        folded += fold_all(store)
    uploads.join()
    folded += fold_all(store)

    assert failures == []
    assert (folded, total(store)) == (UPLOADS, (UPLOADS, [UPLOADS]))
    assert [one.drift for one in store.counters()] == [0] * store.shards
    assert sum(one.folded.uploads for one in store.counters()) == UPLOADS


def test_a_release_that_comes_back_keeps_the_newer_library_and_works_on_it(
    server: Connection, store: RedisStorage, load: object
) -> None:
    """Its own library would take steps from processes that are still newer."""
    assert callable(load)
    load(NEXT)

    store.prepare()

    assert version(server) == {LIBRARY_VERSION + 1}
    assert store.append(secrets.token_bytes(16), DAY, b"entry", 1)
    assert len(claim_all(store)) == 1


def test_a_new_release_on_an_old_library_refuses_uploads_until_it_is_prepared(
    server: Connection, keys: Keys, server_kind: str, load: object
) -> None:
    """Refused as unavailable: devices keep their reports, and send them again."""
    assert callable(load)
    store = RedisStorage(server, keys, profile_of(server_kind))
    store.prepare()
    load(OLD)
    with pytest.raises(NotPreparedError, match="hearsay init"):
        store.append(secrets.token_bytes(16), DAY, b"entry", 1)

    store.prepare()

    assert version(server) == {LIBRARY_VERSION}
    assert store.append(secrets.token_bytes(16), DAY, b"entry", 1)


def test_every_step_that_the_code_calls_is_in_the_library() -> None:
    """A step that is renamed in one place only would be found by a device first."""
    folder = files("collector.storage")
    code = "".join(
        path.read_text(encoding="utf-8") for path in folder.iterdir() if path.name.endswith(".py")
    )
    called = set(re.findall(r'"hearsay_(\w+)"', code))

    assert called
    assert called - set(re.findall(r"register\('(\w+)'", LIBRARY)) == set()
