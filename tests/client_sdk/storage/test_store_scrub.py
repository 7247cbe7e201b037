"""Scrubbing the device database: what was deleted is nowhere in its files, or the caller hears."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from client_sdk.core.errors import StoreError
from client_sdk.storage.schema import FILE_NAME
from client_sdk.storage.store import Store

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
