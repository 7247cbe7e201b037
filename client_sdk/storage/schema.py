"""The tables of the device database, and whether a file holds them unharmed.

The ledger is three of them.  ``charges`` has a row for each report, which is never changed and
never removed.  ``costs`` says what a metric has cost and for which days; a row that is deleted
is carried to the latest row of its metric, so nothing is ever lost from the sum.  ``totals`` says
what a metric has cost for life, so that a charge need not add up the ledger.  No statement is
exempt from these laws.  A checksum and a count of the charges, the generation, show when the file
is next opened whether anything was changed behind SQLite's back.

Properties of the database itself are rows of a key and a value, in the transaction of whoever needs
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..core.errors import UnusableFolderError
from ..core.limits import DATABASE_FILE
from ..core.typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    import sqlite3

    Transaction: TypeAlias = sqlite3.Connection  # an open one

FILE_NAME: Final = DATABASE_FILE
RESERVE_FILE: Final = "ballast"  # beside it, of bytes that can be given up on a full disk
SCHEMA_VERSION: Final = 4

TABLES: Final = (
    # one row a report; device is empty, but at a gateway, which speaks for several
    """CREATE TABLE charges (
        device BLOB NOT NULL,
        digest BLOB NOT NULL,
        epoch INTEGER NOT NULL,
        PRIMARY KEY (device, digest, epoch)
    ) WITHOUT ROWID""",
    # what the reports of a metric cost that are about the same days; also of reports that cost 0
    """CREATE TABLE costs (
        device BLOB NOT NULL,
        digest BLOB NOT NULL,
        last INTEGER NOT NULL,
        first INTEGER NOT NULL CHECK (first <= last),
        nano INTEGER NOT NULL CHECK (nano >= 0),
        delta INTEGER NOT NULL CHECK (delta >= 0),
        PRIMARY KEY (device, digest, last, first)
    ) WITHOUT ROWID""",
    # the sums of costs, a row for each metric
    """CREATE TABLE totals (
        device BLOB NOT NULL,
        digest BLOB NOT NULL,
        nano INTEGER NOT NULL,
        delta INTEGER NOT NULL,
        PRIMARY KEY (device, digest)
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
    # one-time tokens, each with the id of the upload that it is for
    """CREATE TABLE tokens (
        id BLOB PRIMARY KEY,
        week INTEGER NOT NULL,
        token BLOB NOT NULL,
        sealed INTEGER NOT NULL
    ) WITHOUT ROWID""",
    # the latest reports that were acknowledged
    """CREATE TABLE sent (
        number INTEGER PRIMARY KEY,
        digest BLOB NOT NULL,
        epoch INTEGER NOT NULL,
        payload BLOB NOT NULL,
        day INTEGER NOT NULL
    )""",
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID",
    # after the deletion, when the latest row that is left is the one to carry to
    """CREATE TRIGGER costs_are_carried AFTER DELETE ON costs BEGIN
        SELECT RAISE(ABORT, 'costs: append only') WHERE NOT EXISTS (
            SELECT 1 FROM costs WHERE device = OLD.device AND digest = OLD.digest
                AND (last, first) > (OLD.last, OLD.first));
        UPDATE costs SET nano = nano + OLD.nano, delta = delta + OLD.delta
            WHERE device = OLD.device AND digest = OLD.digest AND (last, first) = (
                SELECT last, first FROM costs WHERE device = OLD.device AND digest = OLD.digest
                    ORDER BY last DESC, first DESC LIMIT 1); END""",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)

_OF_CHARGE: Final = "1 + 31 * {0}epoch"
_OF_COST: Final = "{0}nano + 7 * {0}delta + 1000003 * {0}last + 1009 * {0}first"
_WEIGH: Final = "UPDATE meta SET value = value + {0} WHERE key = 'checksum';"

# In memory these are left out: such a ledger ends with its process, and simulations open thousands.
GUARDS: Final = (
    """CREATE TRIGGER charges_are_never_changed BEFORE UPDATE ON charges
        BEGIN SELECT RAISE(ABORT, 'charges: append only'); END""",
    """CREATE TRIGGER charges_are_never_removed BEFORE DELETE ON charges
        BEGIN SELECT RAISE(ABORT, 'charges: append only'); END""",
    """CREATE TRIGGER costs_never_fall BEFORE UPDATE ON costs
        WHEN NEW.nano < OLD.nano OR NEW.delta < OLD.delta
            OR (NEW.device, NEW.digest, NEW.last, NEW.first)
            <> (OLD.device, OLD.digest, OLD.last, OLD.first)
        BEGIN SELECT RAISE(ABORT, 'costs: append only'); END""",
    """CREATE TRIGGER totals_never_fall BEFORE UPDATE ON totals
        WHEN NEW.nano < OLD.nano OR NEW.delta < OLD.delta
            OR (NEW.device, NEW.digest) <> (OLD.device, OLD.digest)
        BEGIN SELECT RAISE(ABORT, 'totals: append only'); END""",
    """CREATE TRIGGER totals_are_never_removed BEFORE DELETE ON totals
        BEGIN SELECT RAISE(ABORT, 'totals: append only'); END""",
    "INSERT INTO meta VALUES ('checksum', 0), ('generation', 0)",
    "CREATE TRIGGER charges_are_counted AFTER INSERT ON charges BEGIN"  # noqa: S608 - constants
    f" {_WEIGH.format(_OF_CHARGE.format('NEW.'))}"
    " UPDATE meta SET value = value + 1 WHERE key = 'generation'; END",
    "CREATE TRIGGER costs_are_weighed AFTER INSERT ON costs BEGIN"
    f" {_WEIGH.format(_OF_COST.format('NEW.'))} END",
    "CREATE TRIGGER costs_are_weighed_again AFTER UPDATE ON costs BEGIN"
    f" {_WEIGH.format('NEW.nano - OLD.nano + 7 * (NEW.delta - OLD.delta)')} END",
    "CREATE TRIGGER costs_are_taken_off AFTER DELETE ON costs BEGIN"
    f" {_WEIGH.format('-(' + _OF_COST.format('OLD.') + ')')} END",
)

_SUMS: Final = "SELECT device, digest, sum(nano), sum(delta) FROM costs GROUP BY device, digest"
_TOTALS: Final = "SELECT device, digest, nano, delta FROM totals"
_SOUND: Final = (
    "SELECT (SELECT value FROM meta WHERE key = 'checksum')"  # noqa: S608 - only constants
    f" = (SELECT coalesce(sum({_OF_CHARGE.format('')}), 0) FROM charges)"
    f" + (SELECT coalesce(sum({_OF_COST.format('')}), 0) FROM costs)"
    " AND (SELECT typeof(value) FROM meta WHERE key = 'generation') = 'integer'"
    f" AND NOT EXISTS ({_SUMS} EXCEPT {_TOTALS}) AND NOT EXISTS ({_TOTALS} EXCEPT {_SUMS})"
)

_Property: TypeAlias = bytes | str | int | float


def require_schema(connection: sqlite3.Connection, statements: Sequence[str]) -> None:
    """Create the tables of a new database by *statements*, whichever process comes first.

    Raises: UnusableFolderError: another version of Hearsay, or another program, wrote the file.
    """
    if _version(connection) != 0:
        require_known(connection)
        return
    connection.execute("BEGIN IMMEDIATE")
    if _version(connection) == 0:
        if connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None:
            what = "belongs to another program: choose another folder"
            raise UnusableFolderError(f"{FILE_NAME}: {what}")
        for statement in statements:
            connection.execute(statement)
    connection.execute("COMMIT")


@contextmanager
def all_or_nothing(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit the block as one transaction, or nothing of it if it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def require_known(connection: sqlite3.Connection) -> None:
    """Raise UnusableFolderError unless this version of Hearsay wrote the file."""
    version = _version(connection)
    if version != SCHEMA_VERSION:
        newer = version > SCHEMA_VERSION
        age, step = ("a newer", "update this one") if newer else ("an unreleased", "remove it")
        what = f"schema {version} was written by {age} version"
        raise UnusableFolderError(f"{FILE_NAME}: {what}: {step}")


def is_sound(connection: sqlite3.Connection) -> bool:
    """Whether no page is damaged and no table, guard or charge was changed behind SQLite's back."""
    if connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
        return False
    if not _statements() <= {row[0] for row in connection.execute("SELECT sql FROM sqlite_master")}:
        return False
    return bool(connection.execute(_SOUND).fetchone() == (1,))


def _statements() -> set[str]:
    """Return what SQLite remembers of each table and guard: the words that made it."""
    return {statement for statement in (*TABLES, *GUARDS) if statement.startswith("CREATE")}


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def property_of(tx: Transaction, key: str) -> _Property | None:
    """Return the property called *key*, or None."""
    row = tx.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def set_property(tx: Transaction, key: str, value: _Property) -> None:
    """Set the property called *key* to *value*."""
    tx.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def remove_property(tx: Transaction, key: str) -> None:
    """Delete the property called *key*."""
    tx.execute("DELETE FROM meta WHERE key = ?", (key,))
