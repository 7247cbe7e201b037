"""How many tokens each identity has had in a week: never more than the plan says.

A token is counted, on the disk, before it is given out: an issuer that is killed gives an identity
one less, never one more.  What is counted by is a keyed hash of the identity under a number drawn
for that week, which is deleted with the week's counts; so the file of a later week cannot be
joined to this one, and no identity stands in it.

A clock may jump ahead and back.  A week whose counts were deleted gives nothing more, and counts
are kept for some weeks after their own, so that a small jump costs nothing.
"""

from __future__ import annotations

import hmac
import os
import sqlite3
from pathlib import Path
from typing import Final

from ..core.errors import ConfigError, StorageUnavailableError

_SALT_SIZE: Final = 32  # bytes
_WHO_SIZE: Final = 16  # bytes; by chance no two of 10^9 identities share them
KEPT: Final = 4  # weeks after its own for which a week's counts are kept
_WAIT_S: Final = 5.0  # seconds for another process, which must not be there
_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS weeks (week INTEGER PRIMARY KEY, salt BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS issued (week INTEGER NOT NULL, identity BLOB NOT NULL,"
    " tokens INTEGER NOT NULL, PRIMARY KEY (week, identity)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS forgotten (week INTEGER PRIMARY KEY)",  # the newest, if any
)


class Allowance:
    """The counts of an issuer, in one file.  Used by one thread."""

    def __init__(self, path: Path, most: int) -> None:
        """Allow *most* tokens a week and identity.  Raises ConfigError: the file cannot be used."""
        self._most, self._salts = most, dict[int, bytes]()
        try:
            self._database = sqlite3.connect(
                path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False
            )
            for statement in (
                "PRAGMA journal_mode = WAL",
                "PRAGMA synchronous = FULL",
                "PRAGMA secure_delete = ON",
                *_SCHEMA,
            ):
                self._database.execute(statement)
            self._forgotten = self._newest_forgotten()
            path.chmod(0o600)
        except (sqlite3.Error, OSError) as error:
            raise ConfigError("--state", path, f"cannot be used: {error}") from None

    def take(self, week: int, identity: str) -> bool:
        """Count a token of *week* for *identity*; return False if it has had all of them.

        Raises: StorageUnavailableError: it could not be counted, so none may be given.
        """
        if self._forgotten is not None and week <= self._forgotten:
            return False  # what was had of it is not known any more
        try:
            mark = hmac.digest(
                self._salt(week), identity.encode("utf-8", "surrogatepass"), "sha256"
            )[:_WHO_SIZE]
            counted = self._database.execute(
                "INSERT INTO issued VALUES (?, ?, 1) ON CONFLICT DO UPDATE"
                " SET tokens = tokens + 1 WHERE tokens < ?",
                (week, mark, self._most),
            )
            return counted.rowcount > 0
        except sqlite3.Error as error:
            raise StorageUnavailableError(f"state: {error}") from None

    def forget_before(self, week: int) -> None:
        """Delete what was counted in weeks before *week*, which then give nothing more.

        Raises: StorageUnavailableError.
        """
        try:
            with self._database:  # all of it, or nothing
                self._database.execute("BEGIN IMMEDIATE")
                self._database.execute(
                    "INSERT OR IGNORE INTO forgotten SELECT week FROM weeks WHERE week < ?", (week,)
                )
                self._database.execute(
                    "DELETE FROM forgotten WHERE week < (SELECT max(week) FROM forgotten)"
                )
                for table in ("issued", "weeks"):
                    self._database.execute(f"DELETE FROM {table} WHERE week < ?", (week,))  # noqa: S608 - names from above
            self._forgotten = self._newest_forgotten()
        except sqlite3.Error as error:
            raise StorageUnavailableError(f"state: {error}") from None
        self._salts = {kept: salt for kept, salt in self._salts.items() if kept >= week}

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _newest_forgotten(self) -> int | None:
        (week,) = self._database.execute("SELECT max(week) FROM forgotten").fetchone()
        return None if week is None else int(week)

    def _salt(self, week: int) -> bytes:
        if week not in self._salts:
            fresh = os.urandom(_SALT_SIZE)
            self._database.execute("INSERT OR IGNORE INTO weeks VALUES (?, ?)", (week, fresh))
            query = "SELECT salt FROM weeks WHERE week = ?"
            (self._salts[week],) = self._database.execute(query, (week,)).fetchone()
        return self._salts[week]
