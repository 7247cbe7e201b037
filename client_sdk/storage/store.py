"""The device database: one SQLite file, in which a charge and its report appear together.

Law of this layer: all of a transaction or nothing of it; a commit is on the disk before it returns
(``synchronous=FULL``, since a ledger that forgets its last charges overspends); whatever SQLite
raises leaves as a StoreError; a file of a newer version is never touched.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..core.dataclass import dataclass
from ..core.errors import StoreError
from ..core.locks import Process, QuietLock, this_process
from ..core.paths import PathOrStr
from ..core.typing import TYPE_CHECKING, Final
from .database import (
    BUSY_TIMEOUT,
    ReserveFile,
    may_mean_full,
    means_damage,
    open_in_memory,
    open_on_disk,
)
from .rollback import write_generation
from .schema import FILE_NAME, all_or_nothing, property_of
from .secret import Secret, damaged_files, remove_damaged

if TYPE_CHECKING:
    import sqlite3

    from .schema import Transaction

_NEVER: Final = float("inf")  # on the monotonic clock


@dataclass()
class _OpenDatabase:
    """A connection and the file behind it."""

    connection: sqlite3.Connection
    inode: int
    generation: int = 0  # as in the generation file


class Store:
    """A database in a folder, or in memory, opened at the first transaction.

    Threads take turns.  A forked child opens the file anew and leaves its parent's connection
    alone; a store in memory is refused there, used before or not, or each process would spend the
    same budget.
    """

    def __init__(self, folder: PathOrStr | None) -> None:
        """Keep the database in *folder*, made for this user only; None: in memory.

        Its size has no limit of its own, for a ledger that is full would silence its device for
        ever; all but the ledger is bounded by what may wait.
        """
        self._folder = None if folder is None else os.fspath(folder)
        self._reserve = None if folder is None else ReserveFile(folder)
        self.secret = Secret(folder)
        self._lock = QuietLock()
        self._deadlines: dict[int, float] = {}  # of threads, on the monotonic clock
        self._open: dict[Process, _OpenDatabase] = {}
        self._process = this_process()
        self._closed = False
        self._doubts = 0

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Let no transaction of this thread in the block wait for others after *seconds*."""
        thread = threading.get_ident()
        self._deadlines[thread] = time.monotonic() + seconds
        try:
            yield
        finally:
            self._deadlines.pop(thread, None)

    @contextmanager
    def transaction(self, *, growing: bool = False) -> Iterator[Transaction]:
        """Run the block as one transaction: durable when it ends, undone if it raises.

        Args:   growing: whether it makes reports; on a full disk the room is for those that leave.
        Raises: StoreError: the database cannot be opened, read or written, or this thread is
                in a transaction already; nothing happened.
        """
        if self._lock.is_mine:  # an application's hook; waiting for itself would never end
            raise StoreError(f"{FILE_NAME}: a transaction of this thread is not over")
        with self._turn():
            # in here a fork waits for them, and copies no module half imported
            import json  # noqa: F401 - of the ledger, and of answers to uploads
            import sqlite3

            opened = None
            try:
                opened = self._connection()
                if growing and self._reserve is not None and not self._reserve.restore():
                    raise StoreError(f"{FILE_NAME}: the disk is full")
                with all_or_nothing(opened.connection):
                    yield opened.connection
                self._write_generation(opened)
            # a message may hold a damaged name
            except (sqlite3.Error, UnicodeDecodeError) as error:
                if opened is not None and means_damage(error):
                    self._close_connection()  # the next one opens, and so examines, the file
                if self._reserve is not None and may_mean_full(error):
                    self._make_room(self._reserve)
                raise StoreError(f"{FILE_NAME}: {error}") from error

    @property
    def durable(self) -> bool:
        """Whether it outlives the process."""
        return self._folder is not None

    @property
    def is_open(self) -> bool:
        """Whether this process has opened it."""
        return this_process() in self._open

    @property
    def exists(self) -> bool:
        """Whether there is a database yet."""
        if self._folder is None:
            return bool(self._open)
        return os.path.exists(os.path.join(self._folder, FILE_NAME))

    @property
    def has_traces(self) -> bool:
        """Whether there is anything that a denial takes away.  Raises OSError."""
        if self.exists or self._folder is None:
            return self.exists
        return self.secret.exists or bool(damaged_files(self._folder))

    def remove_damaged(self) -> None:
        """Overwrite and remove the damaged files in the folder.  Raises StoreError."""
        if self._folder is not None:
            remove_damaged(self._folder)

    def remove(self, name: str) -> None:
        """Remove the file *name* beside the database, if there is one.  Raises StoreError."""
        if self._folder is not None:
            try:
                with suppress(FileNotFoundError):
                    os.remove(os.path.join(self._folder, name))
            except OSError as error:
                raise StoreError(f"{name}: {error.strerror}") from error

    def take_doubts(self) -> int:
        """Return how often since the last call a ledger was found damaged, copied or put back."""
        doubts, self._doubts = self._doubts, 0
        return doubts

    def scrub(self) -> None:
        """Overwrite what deleted rows left.  Raises StoreError if a reader still needs it."""
        with self._turn():
            import sqlite3

            try:
                # as the log empties, deleted rows are overwritten
                log = os.path.join(self._folder or "", f"{FILE_NAME}-wal")
                if self._folder is None or not os.path.exists(log) or not os.path.getsize(log):
                    return
                checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)"
                busy = self._connection().connection.execute(checkpoint).fetchone()[0]
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
            self._close_connection()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Keep other threads out.  Raises StoreError: one was in for too long."""
        if not self._lock.acquire(self._seconds_left()):
            raise StoreError(f"{FILE_NAME}: another thread uses it")
        try:
            yield
        finally:
            self._lock.release()

    def _seconds_left(self) -> float:
        """Return how long this thread may wait."""
        deadline = self._deadlines.get(threading.get_ident(), _NEVER)
        return max(0.0, deadline - time.monotonic())

    def _connection(self) -> _OpenDatabase:
        if self._closed:
            raise StoreError(f"{FILE_NAME}: was closed")
        process = this_process()
        opened = self._open.get(process)
        if self._folder is None:
            if process != self._process:  # each process would spend the caps
                raise StoreError("data_dir=None: a store in memory ends at a fork")
            return opened or self._open.setdefault(process, _OpenDatabase(open_in_memory(), 0))
        patience = min(BUSY_TIMEOUT, self._seconds_left())
        if opened is None or opened.inode != self._inode():
            # a parent's connection stays referenced: closing it here would break the parent's locks
            self._close_connection()
            connection, inode, doubted = open_on_disk(self._folder, patience)
            self._doubts += doubted
            opened = self._open[process] = _OpenDatabase(connection, inode)
        opened.connection.execute(f"PRAGMA busy_timeout = {int(1_000 * patience)}")
        return opened

    def _make_room(self, reserve: ReserveFile) -> None:
        """On a full disk, give up the reserve file and empty the log into the database."""
        import sqlite3

        reserve.drop()
        opened = self._open.get(this_process())
        if opened is not None:
            with suppress(sqlite3.Error):
                opened.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _inode(self) -> int:
        """Return which file is in place now; 0 if none is."""
        with suppress(FileNotFoundError):
            return os.stat(os.path.join(self._folder or "", FILE_NAME)).st_ino
        return 0

    def _close_connection(self) -> None:
        opened = self._open.pop(this_process(), None)
        if opened is not None:
            opened.connection.close()

    def _write_generation(self, opened: _OpenDatabase) -> None:
        """Write the generation to its file, if it can; the commit stands, so nothing is raised."""
        import sqlite3

        if self._folder is None:
            return
        with suppress(sqlite3.Error, ValueError):  # the next transaction writes it
            generation = int(property_of(opened.connection, "generation") or 0)
            if generation != opened.generation:
                write_generation(self._folder, generation)
                opened.generation = generation
