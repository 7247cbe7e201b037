"""Opening the device database on disk: whole and its own, or doubted.

A damaged file is set aside, without the secret, and a new one begun.  A file that was copied from
elsewhere, or put back to an earlier state, keeps its charges and loses what a copy must not repeat:
reports, uploads, windows, the memo and the secret.  Either way the ledger is in *doubt*: what was
spent elsewhere is not known, so the first charge is preceded by one for the rest of the week
(``ledger.begin``).

A reserve file takes up room beside the database.  On a full disk SQLite cannot even delete: that,
too, is written to its log first.  Without the reserve an outbox would never empty again, and a user
could not withdraw what is in it.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress

from ..core.errors import StoreError, UnusableFolderError
from ..core.paths import create, create_or_open, make_folder
from ..core.typing import TYPE_CHECKING, Final
from . import outbox, trusted_clock
from .ledger import forget_changes
from .rollback import GENERATION_FILE, identity_of, read_generation
from .schema import (
    FILE_NAME,
    GUARDS,
    RESERVE_FILE,
    TABLES,
    all_or_nothing,
    is_sound,
    property_of,
    require_schema,
    set_property,
)
from .secret import DAMAGED_SUFFIX, NAMES_FILE, SECRET_FILE, Secret

if TYPE_CHECKING:
    import sqlite3

    from ..core.paths import PathOrStr

BUSY_TIMEOUT: Final = 2.0  # seconds that one process waits for another; a commit takes some 10 ms
_DAMAGE: Final = (11, 26)  # SQLITE_CORRUPT and SQLITE_NOTADB
_FULL: Final = (10, 13, 14)  # SQLITE_IOERR, FULL and CANTOPEN: each may be for want of room
_BUSY: Final = 5  # SQLITE_BUSY
_NO_LOCKS: Final = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_LOCK_TEST: Final = "lock-test"  # a file that is removed at once
_BUSY_NAP: Final = 0.005  # seconds
_PAGE: Final = 4_096  # bytes; SQLite's default
_LOG_PAGES: Final = 64  # after which the log is emptied; its quarter of a MB can be made room for
_MADE_LATER: Final = (GENERATION_FILE, RESERVE_FILE, SECRET_FILE, NAMES_FILE)
_NOT_REPEATED: Final = ("windows", "memo")  # beside what the outbox has

RESERVE_SIZE: Final = 256 * 1024  # bytes; the log of the deletions of several passes
_LEFT_FREE: Final = RESERVE_SIZE  # bytes beside it: what was just made room for is used first


def open_in_memory() -> sqlite3.Connection:
    """Return a new database that ends with its connection."""
    connection = _connect(":memory:")
    require_schema(connection, TABLES)
    return connection


def open_on_disk(folder: str, patience: float) -> tuple[sqlite3.Connection, int, bool]:
    """Return a connection to the database in *folder*, made for this user only.

    Args:    patience: seconds that it waits for other processes.
    Returns: also the inode of the file, read before it was opened: should another one be put in its
             place meanwhile, the next look at the inode tells; and whether the ledger was found to
             be in doubt, just now.
    Raises:  StoreError: it cannot be opened, or is of another version; no lock holds in *folder*.
    """
    path = _make_private(folder)
    inode, connection = os.stat(path).st_ino, _connect(path, patience)
    try:
        if _prepare(connection, patience):
            return connection, inode, _doubt(connection, folder)
        connection.close()
        _replace_damaged(path, inode)
        inode, connection = os.stat(path).st_ino, _connect(path, patience)
        if not _prepare(connection, patience):
            raise StoreError(f"{FILE_NAME}: is damaged again and again")
        _doubt(connection, folder)
    except BaseException:
        connection.close()
        raise
    return connection, inode, True


def means_damage(error: sqlite3.Error | UnicodeDecodeError) -> bool:
    """Whether *error* blames the file, rather than the disk, a lock or the statement."""
    return (
        isinstance(error, UnicodeDecodeError)
        or getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE
    )


def may_mean_full(error: sqlite3.Error | UnicodeDecodeError) -> bool:
    """Whether *error* is one that a full disk gives, among other causes."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _FULL


def _connect(path: str, patience: float = BUSY_TIMEOUT) -> sqlite3.Connection:
    import sqlite3

    return sqlite3.connect(path, timeout=patience, isolation_level=None, check_same_thread=False)


def _prepare(connection: sqlite3.Connection, patience: float) -> bool:
    """Set up *connection*; return False if the file is damaged."""
    import sqlite3

    try:
        require_schema(connection, (*TABLES, *GUARDS))
        _use_log(connection, patience)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {_LOG_PAGES * _PAGE}")
        return is_sound(connection)
    except (sqlite3.Error, UnicodeDecodeError) as error:  # damaged names garble SQLite's messages
        if means_damage(error):
            return False
        raise


def _use_log(connection: sqlite3.Connection, patience: float) -> None:
    """Write ahead to a log.  SQLite does not wait for others that open a new file; so we do."""
    import sqlite3

    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == _BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(_BUSY_NAP)


def _doubt(connection: sqlite3.Connection, folder: str) -> bool:
    """Return whether the ledger cannot be taken at its word, having dropped what must go."""
    identity = identity_of(os.path.join(folder, FILE_NAME))
    with all_or_nothing(connection):
        known = property_of(connection, "identity")
        generation = int(property_of(connection, "generation") or 0)
        latest = read_generation(folder)
        moved = known is not None and known != identity  # or copied, by the user or a backup
        lost = known is None and _has_remains(folder)
        doubted = moved or lost or latest > generation
        if doubted:
            forget_changes(connection)
            outbox.clear(connection)
            for table in _NOT_REPEATED:
                connection.execute(f"DELETE FROM {table}")  # noqa: S608 - names from above
            trusted_clock.stop(connection)
            Secret(folder).delete(connection)
            set_property(connection, "generation", max(latest, generation) + 1)
            set_property(connection, "doubt", 1)
        if known != identity:
            set_property(connection, "identity", identity)
    if doubted:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # it overwrites what was dropped
    return doubted


def _has_remains(folder: str) -> bool:
    """Whether *folder* holds a file that is only ever made after a database."""
    return any(os.path.lexists(os.path.join(folder, name)) for name in _MADE_LATER)


def _replace_damaged(path: str, inode: int) -> None:
    """Rename the damaged file, unless another process already did, and begin a doubted one."""
    try:
        if os.stat(path).st_ino == inode:
            # the secret goes first: with it a finder of the file could read its windows
            Secret(os.path.dirname(path)).delete(None)
            os.replace(path, path + DAMAGED_SUFFIX)
            for log in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.remove(path + log)
    except FileNotFoundError:
        pass  # another process replaces it
    except OSError as error:
        raise StoreError(f"{FILE_NAME}: is damaged, and cannot be set aside: {error}") from error
    connection = _connect(_make_private(os.path.dirname(path)))
    try:
        require_schema(connection, (*TABLES, *GUARDS))
        set_property(connection, "doubt", 1)
    finally:
        connection.close()


def _require_locks(folder: str) -> None:
    """Raise UnusableFolderError where two processes could write at once: some network shares.

    A process is granted its own lock again.  So this asks for the lock of an opening of the file,
    as Linux alone has it, by two openings of one file.
    """
    try:
        from fcntl import F_OFD_SETLK, F_WRLCK, fcntl
    except ImportError:
        return
    from struct import pack

    path, openings = os.path.join(folder, _LOCK_TEST), []
    lock, why = pack("hhqqi", F_WRLCK, 0, 0, 0, 0), ""
    try:
        openings += [create_or_open(path), create_or_open(path)]
        if os.path.samestat(*map(os.fstat, openings)):  # else another process has removed the first
            for opening in openings:
                fcntl(opening, F_OFD_SETLK, lock)
            why = "grants one lock twice"
    except OSError as error:
        why = "refuses locks" if error.errno in _NO_LOCKS else ""
    finally:
        for opening in openings:
            os.close(opening)
        with suppress(OSError):
            os.remove(path)
    if why:
        raise UnusableFolderError(f"data_dir: its file system {why}: choose a folder of this disk")


def _make_private(folder: str) -> str:
    """Make *folder* and the database file, readable by this user only, and return the file."""
    path = os.path.join(folder, FILE_NAME)
    try:
        make_folder(folder)
        _require_locks(folder)
        # an existing file stays closed: closing it would drop SQLite's locks in this process
        with suppress(FileExistsError):
            os.close(create(path))
    except UnusableFolderError:
        raise
    except OSError as error:
        raise StoreError(f"data_dir={folder}: must be a folder to write in: {error}") from error
    return path


class ReserveFile:
    """The file in *folder*."""

    def __init__(self, folder: PathOrStr) -> None:
        """Make nothing yet."""
        self._folder = folder
        self._path = os.path.join(folder, RESERVE_FILE)

    def drop(self) -> None:
        """Give up the file if the disk is full; never raises."""
        with suppress(OSError):
            if self._free() < RESERVE_SIZE:
                os.remove(self._path)

    def restore(self) -> bool:
        """Make the file if it is gone and there is room; return whether it is there.  Never raises.

        Its bytes are chance, since file systems store nothing for zeros.
        """
        try:
            if os.path.exists(self._path):
                return True
            if self._free() >= RESERVE_SIZE + _LEFT_FREE:
                self._make()
                return True
        except FileExistsError:  # another process made it meanwhile
            return True
        except OSError:
            with suppress(OSError):
                os.remove(self._path)
        return False

    def _make(self) -> None:
        descriptor = create(os.fspath(self._path))
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, RESERVE_SIZE)
            else:
                os.write(descriptor, os.urandom(RESERVE_SIZE))
        finally:
            os.close(descriptor)

    def _free(self) -> int:
        from shutil import disk_usage

        return disk_usage(self._folder).free
