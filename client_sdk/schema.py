"""The tables of the device database, and whether a file holds them unharmed.

A charge can be added, never changed and never taken away; but for ``forget_changes``, which moves
what a metric has cost from its earlier charges to its latest.  Each one also adds to a checksum and
to a count, the generation, so that a changed or lost charge shows when the file is next opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from .errors import StoreError

if TYPE_CHECKING:
    import sqlite3

FILE_NAME: Final = "hearsay.sqlite3"
SCHEMA_VERSION: Final = 2

TABLES: Final = (
    # one row a report; device is empty, but at a gateway, which speaks for several
    """CREATE TABLE charges (
        device BLOB NOT NULL,
        digest BLOB NOT NULL,
        epoch INTEGER NOT NULL,
        nano INTEGER NOT NULL CHECK (nano >= 0),
        delta INTEGER NOT NULL CHECK (delta >= 0),
        day INTEGER NOT NULL,
        PRIMARY KEY (device, digest, epoch)
    ) WITHOUT ROWID""",
    # which values were charged already, each under a tag that only the secret connects to it
    """CREATE TABLE memo (
        device BLOB NOT NULL,
        digest BLOB NOT NULL,
        tag BLOB NOT NULL,
        reports INTEGER NOT NULL CHECK (reports > 0),
        PRIMARY KEY (device, digest, tag)
    ) WITHOUT ROWID""",
    # what is aggregated until its epoch ends, masked
    """CREATE TABLE windows (
        device BLOB NOT NULL,
        digest BLOB NOT NULL,
        epoch INTEGER NOT NULL,
        sealed BLOB NOT NULL,
        PRIMARY KEY (device, digest, epoch)
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
    # the latest reports that were acknowledged
    """CREATE TABLE sent (
        number INTEGER PRIMARY KEY,
        digest BLOB NOT NULL,
        epoch INTEGER NOT NULL,
        payload BLOB NOT NULL,
        day INTEGER NOT NULL
    )""",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)

_WEIGHT: Final = "1 + {0}nano + 7 * {0}delta + 1000003 * {0}day + 31 * {0}epoch"

_NO_CHANGE: Final = "charges_are_never_changed"

# In memory these are left out: such a ledger ends with its process, and simulations open thousands.
GUARDS: Final = (
    f"""CREATE TRIGGER {_NO_CHANGE} BEFORE UPDATE ON charges
        BEGIN SELECT RAISE(ABORT, 'charges: append only'); END""",
    """CREATE TRIGGER charges_are_never_removed BEFORE DELETE ON charges
        BEGIN SELECT RAISE(ABORT, 'charges: append only'); END""",
    "INSERT INTO meta VALUES ('checksum', 0), ('generation', 0)",
    "CREATE TRIGGER charges_are_counted AFTER INSERT ON charges BEGIN"  # noqa: S608 - constants
    f" UPDATE meta SET value = value + {_WEIGHT.format('NEW.')} WHERE key = 'checksum';"
    " UPDATE meta SET value = value + 1 WHERE key = 'generation'; END",
)


def require_schema(connection: sqlite3.Connection, statements: Sequence[str]) -> None:
    """Create the tables of a new database by *statements*, whichever process comes first.

    Raises: StoreError: another version of Hearsay, or another program, wrote the file.
    """
    if _version(connection) != 0:
        require_known(connection)
        return
    connection.execute("BEGIN IMMEDIATE")
    if _version(connection) == 0:
        if connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None:
            raise StoreError(f"{FILE_NAME}: belongs to another program")
        for statement in statements:
            connection.execute(statement)
    connection.execute("COMMIT")


def require_known(connection: sqlite3.Connection) -> None:
    """Raise StoreError unless this version of Hearsay wrote the file."""
    version = _version(connection)
    if version != SCHEMA_VERSION:
        age = "a newer" if version > SCHEMA_VERSION else "an unreleased"
        raise StoreError(f"{FILE_NAME}: schema {version} was written by {age} version")


@contextmanager
def unguarded(tx: sqlite3.Connection) -> Iterator[None]:
    """Let the block, a part of the transaction *tx*, change charges: ``forget_changes`` only.

    Its sums must stay, so the checksum does too.  If it raises, the transaction is undone, and the
    guard with it stands again.
    """
    found = tx.execute("SELECT sql FROM sqlite_master WHERE name = ?", (_NO_CHANGE,)).fetchone()
    if found is not None:  # in memory there is none
        tx.execute(f"DROP TRIGGER {_NO_CHANGE}")
    yield
    if found is not None:
        tx.execute(*found)


def is_sound(connection: sqlite3.Connection) -> bool:
    """Whether no page is damaged and no table, guard or charge was changed behind SQLite's back."""
    if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        return False
    if not _statements() <= {row[0] for row in connection.execute("SELECT sql FROM sqlite_master")}:
        return False
    row = connection.execute(
        f"SELECT (SELECT value FROM meta WHERE key = 'checksum')"  # noqa: S608 - only constants
        f" = (SELECT coalesce(sum({_WEIGHT.format('')}), 0) FROM charges)"
        " AND (SELECT typeof(value) FROM meta WHERE key = 'generation') = 'integer'"
    ).fetchone()
    return bool(row == (1,))


def _statements() -> set[str]:
    """Return what SQLite remembers of each table and guard: the words that made it."""
    return {each for each in (*TABLES, *GUARDS) if each.startswith("CREATE")}


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
