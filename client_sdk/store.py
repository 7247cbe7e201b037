"""The device database: one SQLite file, in which a charge and its report appear together.

Law of this layer: all of a transaction or nothing of it; a commit is on the disk before it returns
(``synchronous=FULL``, since a ledger that forgets its last charges overspends); whatever SQLite
raises leaves as a StoreError; a damaged or foreign file is never used, mended or replaced.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from .errors import StoreError
from .locks import ProcessLock
from .registry import PathOrStr

if TYPE_CHECKING:
    import sqlite3

    Transaction: TypeAlias = sqlite3.Connection

FILE_NAME: Final = "hearsay.sqlite3"
BUSY_TIMEOUT: Final = 2.0  # seconds that one process waits for another; a commit takes some 10 ms
SCHEMA_VERSION: Final = 1

_SCHEMA: Final = (
    """CREATE TABLE charges (
        digest BLOB NOT NULL,
        epoch INTEGER NOT NULL,
        nano INTEGER NOT NULL CHECK (nano > 0),
        day INTEGER NOT NULL,
        PRIMARY KEY (digest, epoch)
    ) WITHOUT ROWID""",
    """CREATE TABLE reports (
        number INTEGER PRIMARY KEY,
        digest BLOB NOT NULL,
        epoch INTEGER NOT NULL,
        payload BLOB NOT NULL,
        segment TEXT NOT NULL,
        day INTEGER NOT NULL
    )""",
    """CREATE TABLE uploads (
        number INTEGER PRIMARY KEY,
        id BLOB NOT NULL,
        body BLOB NOT NULL,
        reports INTEGER NOT NULL CHECK (reports > 0),
        sealed_day INTEGER NOT NULL
    )""",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)

# In memory these are left out: such a ledger ends with its process, and simulations open thousands.
_GUARDS: Final = (
    """CREATE TRIGGER charges_are_never_changed BEFORE UPDATE ON charges
        BEGIN SELECT RAISE(ABORT, 'charges: append only'); END""",
    """CREATE TRIGGER charges_are_never_removed BEFORE DELETE ON charges
        BEGIN SELECT RAISE(ABORT, 'charges: append only'); END""",
)


class Store:
    """A database in a folder, or in memory, opened at the first transaction.

    Threads take turns.  A forked child opens the file anew and leaves its parent's connection
    alone; a store in memory is refused there, or both would spend the same budget.
    """

    def __init__(self, folder: PathOrStr | None) -> None:
        """Keep the database in *folder*, made for this user only; None: in memory."""
        self._folder = folder
        self._lock = ProcessLock()
        self._connections: dict[int, sqlite3.Connection] = {}  # by process id
        self._closed = False

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Run the block as one transaction: durable when it ends, undone if it raises.

        Raises: StoreError: the database cannot be opened, read or written; nothing happened.
        """
        import sqlite3

        with self._lock:
            try:
                connection = self._connection()
                connection.execute("BEGIN IMMEDIATE")
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise StoreError(f"{FILE_NAME}: {error}") from error

    @property
    def exists(self) -> bool:
        """Whether there is a database yet."""
        if self._folder is None:
            return bool(self._connections)
        return os.path.exists(os.path.join(self._folder, FILE_NAME))

    def scrub(self) -> None:
        """Overwrite what deleted rows left.  Raises StoreError if a reader still needs it."""
        import sqlite3

        with self._lock:
            try:
                if not self._has_log():
                    return
                busy = self._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            except (sqlite3.Error, FileNotFoundError) as error:
                raise StoreError(f"{FILE_NAME}: {error}") from error
            if busy:
                raise StoreError(f"{FILE_NAME}: its log is in use by another connection")

    def open(self) -> None:
        """Let transactions through again after ``close``."""
        with self._lock:
            self._closed = False

    def close(self) -> None:
        """Close the database and refuse transactions.  A store in memory forgets everything."""
        with self._lock:
            self._closed = True
            connection = self._connections.pop(os.getpid(), None)
            if connection is not None:
                connection.close()

    def _has_log(self) -> bool:
        """Whether the log holds anything; as it empties, deleted rows are overwritten."""
        log = os.path.join(self._folder or "", f"{FILE_NAME}-wal")
        return self._folder is not None and os.path.exists(log) and os.path.getsize(log) > 0

    def _connection(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"{FILE_NAME}: was closed")
        pid = os.getpid()
        connection = self._connections.get(pid)
        if connection is None:
            if self._folder is None and self._connections:
                raise StoreError("data_dir=None: a store in memory ends at a fork")
            # a parent's connection stays referenced: closing it here would break the parent's locks
            connection = self._connections[pid] = _open(self._folder)
        return connection


def _open(folder: PathOrStr | None) -> sqlite3.Connection:
    import sqlite3

    connection = sqlite3.connect(
        ":memory:" if folder is None else _make_private(folder),
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if folder is not None:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            _require_sound(connection)
        _require_schema(connection, _SCHEMA if folder is None else (*_SCHEMA, *_GUARDS))
    except BaseException:
        connection.close()
        raise
    return connection


def _make_private(folder: PathOrStr) -> str:
    """Make *folder* and the database file, readable by this user only, and return the file."""
    path = os.path.join(folder, FILE_NAME)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(f"data_dir={folder}: must be a folder to write in: {error}") from error
    return path


def _require_sound(connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != ("ok",):
        raise StoreError(f"{FILE_NAME}: is damaged")


def _require_schema(connection: sqlite3.Connection, schema: Sequence[str]) -> None:
    """Create the tables of a new database, by whichever process comes first."""
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in (0, SCHEMA_VERSION):
        raise StoreError(f"{FILE_NAME}: schema {version} was written by another version")
    if version == 0:
        for statement in schema:
            connection.execute(statement)
    connection.execute("COMMIT")
