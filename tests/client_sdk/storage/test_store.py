"""The device database: all or nothing, private to its user, forked, locked and scrubbed."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from client_sdk.core.errors import EntropyError, StoreError
from client_sdk.core.locks import this_process
from client_sdk.storage.rollback import GENERATION_FILE, identity_of
from client_sdk.storage.schema import FILE_NAME, SCHEMA_VERSION
from client_sdk.storage.secret import SECRET_FILE
from client_sdk.storage.store import Store
from tests.support.device.device import alter, rows
from tests.support.patience import PATIENCE

INSERT = "INSERT INTO charges VALUES (x'', x'00', 0)"
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

    with store.transaction() as tx:
        store.secret.get(tx)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert modes.keys() >= {FILE_NAME, f"{FILE_NAME}-wal", GENERATION_FILE, SECRET_FILE}
    assert set(modes.values()) == {0o600}
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


@pytest.mark.parametrize(
    ("version", "age"), [(SCHEMA_VERSION + 1, "a newer"), (1, "an unreleased")]
)
def test_a_database_of_another_version_is_refused_and_never_touched(
    tmp_path: Path, version: int, age: str
) -> None:
    store = Store(tmp_path)
    insert(store)
    store.close()
    alter(tmp_path, f"PRAGMA user_version = {version}")
    before = (tmp_path / FILE_NAME).read_bytes()

    with pytest.raises(StoreError, match=f"schema {version} was written by {age} version"):
        look(Store(tmp_path))

    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    alter(tmp_path, "CREATE TABLE theirs (anything)")

    with pytest.raises(StoreError, match="belongs to another program"):
        look(Store(tmp_path))

    assert rows(tmp_path, "SELECT count(*) FROM theirs") == [(0,)]


def test_a_thread_in_a_transaction_that_asks_for_another_is_refused_at_once() -> None:
    store = Store(None)

    with store.transaction() as tx:
        with pytest.raises(StoreError, match="is not over"):
            insert(store)
        tx.execute(INSERT)

    look(store)


def test_a_folder_that_cannot_be_made_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")

    with pytest.raises(StoreError, match="data_dir="):
        insert(Store(tmp_path / "taken"))


def test_a_generation_that_cannot_be_written_does_not_undo_a_commit(tmp_path: Path) -> None:
    """The commit is on the disk: to call it failed would count its reports twice."""
    store = Store(tmp_path)
    insert(store)
    connection = store._open[this_process()].connection
    connection.execute("ALTER TABLE meta RENAME COLUMN value TO other")  # all reads of it fail
    connection.execute("DROP TRIGGER charges_are_counted")

    with store.transaction() as tx:
        tx.execute("INSERT INTO charges VALUES (x'', x'01', 0)")

    assert rows(tmp_path, COUNT) == [(2,)]
    store.close()


def _insert_in_child(store: Store, results: multiprocessing.SimpleQueue[str]) -> None:
    try:
        insert(store)
    except StoreError as error:
        results.put(str(error))
    else:
        results.put("inserted")
    finally:
        store.close()


def _outcome_in_forked_child(store: Store) -> str:
    context = multiprocessing.get_context("fork")
    results: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    child = context.Process(target=_insert_in_child, args=(store, results))
    child.start()
    child.join(timeout=PATIENCE)
    if child.is_alive():
        child.kill()
        child.join()
    return "hung" if results.empty() else results.get()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_opens_the_file_for_itself(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.transaction() as tx:
        tx.execute("INSERT INTO charges VALUES (x'', x'01', 0)")

    outcome = _outcome_in_forked_child(store)

    with store.transaction() as tx:
        assert (outcome, tx.execute(COUNT).fetchone()) == ("inserted", (2,))
    store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_is_not_stopped_by_a_lock_of_its_parent(tmp_path: Path) -> None:
    store = Store(tmp_path)

    with store._lock:
        outcome = _outcome_in_forked_child(store)

    assert outcome == "inserted"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("used", [True, False])
def test_a_store_in_memory_is_refused_in_a_forked_child(used: bool) -> None:
    """Used before or not: else every child would spend the caps anew."""
    store = Store(None)
    if used:
        insert(store)

    outcome = _outcome_in_forked_child(store)

    assert outcome == "data_dir=None: a store in memory ends at a fork"


INSERT_REPORT = "INSERT INTO reports VALUES (NULL, x'00', 0, x'00', '{}', 0)"
_TAKE_OVER = """
import sqlite3, sys
try:
    other = sqlite3.connect(sys.argv[1], timeout=0)
    print(other.execute("PRAGMA journal_mode = DELETE").fetchone()[0])
except sqlite3.OperationalError as error:
    print(error)
"""


def taken_over(folder: Path) -> str:
    """Return how far another process comes with a file that it must not have to itself."""
    command = [sys.executable, "-c", _TAKE_OVER, str(folder / FILE_NAME)]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout.strip()


def _look_at(folder: Path) -> None:
    identity_of(str(folder / FILE_NAME))


def _open_another(folder: Path) -> None:
    another = Store(folder)
    with another.transaction() as tx:
        tx.execute(INSERT_REPORT)


def _read_and_close(folder: Path) -> None:
    (folder / FILE_NAME).read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="locks there belong to handles")
@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        (_look_at, "database is locked"),
        (_open_another, "database is locked"),
        (_read_and_close, "delete"),  # the planted bug: closing any descriptor drops all locks
    ],
)
def test_an_open_database_stays_locked(
    tmp_path: Path, action: Callable[[Path], None], outcome: str
) -> None:
    """Law: another process cannot take away the log of a database that is open here."""
    store = Store(tmp_path)
    with store.transaction() as tx:
        tx.execute(INSERT_REPORT)

    action(tmp_path)

    assert taken_over(tmp_path) == outcome


SECRET = b"payload-to-be-forgotten"


def insert_report(store: Store) -> None:
    with store.transaction() as tx:
        tx.execute("INSERT INTO reports VALUES (1, x'00', 0, ?, '{}', 0)", (SECRET,))


def delete_reports(store: Store) -> None:
    with store.transaction() as tx:
        tx.execute("DELETE FROM reports")


def test_a_scrub_leaves_no_byte_of_deleted_rows(tmp_path: Path) -> None:
    store = Store(tmp_path)
    insert_report(store)
    delete_reports(store)

    store.scrub()

    assert all(SECRET not in path.read_bytes() for path in tmp_path.iterdir())
    store.close()


def test_a_scrub_that_a_reader_stops_is_a_store_error(tmp_path: Path) -> None:
    store = Store(tmp_path)
    insert_report(store)
    reader = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM reports").fetchone()
    delete_reports(store)

    with pytest.raises(StoreError, match="in use"):
        store.scrub()

    reader.close()
    store.scrub()
    assert all(SECRET not in path.read_bytes() for path in tmp_path.iterdir())
    store.close()


def test_a_scrub_of_what_was_never_written_opens_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")

    store.scrub()

    assert not (tmp_path / "new").exists()
