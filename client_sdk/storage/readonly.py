"""Reading the device database without changing a thing, in whatever state it is.

``Store`` takes care of what it opens: it sets damage aside, and wipes a copy.  A reader, perhaps of
a backup, must do neither; so the file is opened read-only here, and its state is put in words.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..core.errors import StoreError
from ..core.typing import TYPE_CHECKING, Final
from .database import means_damage
from .rollback import identity_of, read_generation
from .schema import FILE_NAME, is_sound, property_of, require_known

if TYPE_CHECKING:
    from .schema import Transaction

_IS_COPY: Final = (
    "this looks like a copy, or a file that was put back: when the application runs here, what"
    " waits and the secret are deleted, and the rest of the week counts as spent"
)
_IS_DAMAGED: Final = (
    f"{FILE_NAME}: is damaged, and cannot be shown; when the application runs, it sets the file"
    " aside, begins a new one, and reports nothing for a week"
)


@contextmanager
def open_readonly(folder: str) -> Iterator[tuple[Transaction, list[str]]]:
    """Open the database in *folder* to read it; yield it with sentences about its state.

    Raises: StoreError: it is damaged, of another version, or cannot be read.
    """
    import sqlite3

    path = os.path.abspath(os.path.join(folder, FILE_NAME))
    if os.path.getsize(path) == 0:
        raise StoreError(f"{FILE_NAME}: is empty")
    try:
        with closing(sqlite3.connect(_readonly_uri(path), uri=True, isolation_level=None)) as tx:
            tx.execute("BEGIN")
            require_known(tx)
            if not is_sound(tx):
                raise StoreError(_IS_DAMAGED)
            yield tx, _state(tx, folder)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if means_damage(error):
            raise StoreError(_IS_DAMAGED) from error
        raise StoreError(f"{FILE_NAME}: cannot be read: {error}") from error


def _readonly_uri(path: str) -> str:
    """Return the URI by which SQLite writes nothing, not even a log unless there is one.

    With a log the application is running, or was killed, and what it holds counts.
    """
    log = f"{path}-wal"
    logged = os.path.exists(log) and os.path.getsize(log) > 0
    return f"{Path(path).as_uri()}?{'mode=ro' if logged else 'immutable=1'}"


def _state(tx: Transaction, folder: str) -> list[str]:
    known, generation = property_of(tx, "identity"), property_of(tx, "generation")
    moved = known is not None and known != identity_of(os.path.join(folder, FILE_NAME))
    return [_IS_COPY] if moved or read_generation(folder) > int(generation or 0) else []
