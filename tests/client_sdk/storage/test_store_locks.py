"""Locks of the device database: nothing that this package does to the file lets go of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from client_sdk.storage.rollback import identity_of
from client_sdk.storage.schema import FILE_NAME
from client_sdk.storage.store import Store

INSERT = (
    "INSERT INTO reports (digest, epoch, payload, segment, day) VALUES (x'00', 0, x'00', '', 0)"
)
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
        command, capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def _look(folder: Path) -> None:
    identity_of(str(folder / FILE_NAME))


def _open_another(folder: Path) -> None:
    another = Store(folder)
    with another.transaction() as tx:
        tx.execute(INSERT)


def _read_and_close(folder: Path) -> None:
    (folder / FILE_NAME).read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="locks there belong to handles")
@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        (_look, "database is locked"),
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
        tx.execute(INSERT)

    action(tmp_path)

    assert taken_over(tmp_path) == outcome
