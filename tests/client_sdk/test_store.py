"""The device database: all or nothing, private to its user, and closed to everything damaged."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from client_sdk.errors import EntropyError, StoreError
from client_sdk.store import FILE_NAME, Store
from tests.support.device import rows

INSERT = "INSERT INTO charges (digest, epoch, nano, day) VALUES (x'00', 0, 1, 0)"
COUNT = "SELECT count(*) FROM charges"


def insert(store: Store) -> None:
    with store.transaction() as tx:
        tx.execute(INSERT)


def look(store: Store) -> None:
    with store.transaction() as tx:
        tx.execute(COUNT)


def insert_then_raise(store: Store, error: BaseException) -> None:
    with store.transaction() as tx:
        tx.execute(INSERT)
        raise error


def test_a_transaction_that_ends_is_on_disk(tmp_path: Path) -> None:
    store = Store(tmp_path)

    insert(store)

    assert rows(tmp_path, COUNT) == [(1,)]
    store.close()


@pytest.mark.parametrize("error", [EntropyError("none"), KeyboardInterrupt()])
def test_a_transaction_that_raises_leaves_nothing_and_the_error_passes(
    tmp_path: Path, error: BaseException
) -> None:
    store = Store(tmp_path)

    with pytest.raises(type(error)):
        insert_then_raise(store, error)

    assert rows(tmp_path, COUNT) == [(0,)]
    store.close()


def test_a_store_can_be_used_again_after_a_failed_transaction() -> None:
    store = Store(None)

    with pytest.raises(StoreError, match="no such table"), store.transaction() as tx:
        tx.execute("SELECT 1 FROM missing")
    insert(store)

    with store.transaction() as tx:
        assert tx.execute(COUNT).fetchone() == (1,)


def test_nothing_is_opened_before_the_first_transaction(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")

    assert not store.exists
    assert not (tmp_path / "new").exists()


def test_folder_and_files_are_readable_by_their_user_only(tmp_path: Path) -> None:
    folder = tmp_path / "app" / "telemetry"
    store = Store(folder)

    insert(store)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert modes == {FILE_NAME: 0o600, f"{FILE_NAME}-wal": 0o600, f"{FILE_NAME}-shm": 0o600}
    store.close()


def test_commits_on_disk_wait_for_the_disk(tmp_path: Path) -> None:
    store = Store(tmp_path)

    with store.transaction() as tx:
        mode, synchronous = (
            tx.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")
        )

    assert (mode, synchronous) == ("wal", 2)  # 2 is FULL
    store.close()


def test_a_closed_file_opens_again_with_all_it_held(tmp_path: Path) -> None:
    store = Store(tmp_path)
    insert(store)
    store.close()

    store.open()
    with store.transaction() as tx:
        count = tx.execute(COUNT).fetchone()

    assert count == (1,)
    store.close()


@pytest.mark.parametrize("in_memory", [False, True])
def test_a_closed_store_refuses_and_opens_nothing(tmp_path: Path, in_memory: bool) -> None:
    store = Store(None if in_memory else tmp_path)
    store.close()

    with pytest.raises(StoreError, match="was closed"):
        insert(store)

    assert not store.exists


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"not a database, " * 512)

    with pytest.raises(StoreError, match="not a database"):
        insert(Store(tmp_path))

    assert (tmp_path / FILE_NAME).read_bytes() == b"not a database, " * 512


@pytest.mark.parametrize("page", range(4))
def test_a_database_with_a_page_overwritten_is_refused(tmp_path: Path, page: int) -> None:
    store = Store(tmp_path)
    insert(store)
    store.close()
    whole = bytearray((tmp_path / FILE_NAME).read_bytes())
    whole[page * 4096 : page * 4096 + 1024] = b"\xa5" * 1024
    (tmp_path / FILE_NAME).write_bytes(whole)

    with pytest.raises(StoreError, match=r"is damaged|is not a database"):
        look(Store(tmp_path))


def test_a_database_of_another_version_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.transaction() as tx:
        tx.execute("PRAGMA user_version = 999")
    store.close()

    with pytest.raises(StoreError, match="schema 999"):
        look(Store(tmp_path))


def test_a_folder_that_cannot_be_made_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")

    with pytest.raises(StoreError, match="data_dir="):
        insert(Store(tmp_path / "taken"))
