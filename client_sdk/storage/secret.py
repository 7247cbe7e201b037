"""The device secret: the only thing from which a permanent response can be drawn again.

It is a file of its own beside the database, so that the database alone says nothing about any
value.  A file is removed so that little of it is left, as are damaged files that were set aside.
"""

from __future__ import annotations

import os
from contextlib import suppress

from ..core.errors import StoreError
from ..core.limits import SECRET_SIZE
from ..core.paths import create, open_existing
from ..core.randomness import draw_bytes, system_randomness
from ..core.typing import TYPE_CHECKING, Final
from .schema import FILE_NAME

if TYPE_CHECKING:
    from ..core.paths import PathOrStr
    from .schema import Transaction

DAMAGED_SUFFIX: Final = ".damaged"  # behind the name of a file that was set aside; one is kept

_PART: Final = 65_536  # bytes that are overwritten at a time

SECRET_FILE: Final = "secret"  # noqa: S105 - the name of a file
NAMES_FILE: Final = "names"  # of the secret from which a gateway draws the keys of its devices
DEVICE_SIZE: Final = 16  # bytes of a gateway's key for one of its devices


class Secret:
    """Thirty-two bytes of the operating system's entropy, in *folder* or, if None, in memory."""

    def __init__(self, folder: PathOrStr | None, file_name: str = SECRET_FILE) -> None:
        """Make nothing yet."""
        self._folder, self._name = folder, file_name
        self._in_memory: bytes | None = None

    @property
    def exists(self) -> bool:
        """Whether ``get`` would return a secret that was made before.  Raises OSError."""
        return (self._in_memory if self._folder is None else self._read()) is not None

    def get(self, tx: Transaction) -> bytes:
        """Return the secret, made now if there is none.

        Args:   tx: the open transaction, whose lock lets only one process make a secret.
        Raises: StoreError: it can be neither read nor written.  EntropyError.
        """
        if self._folder is None:
            self._in_memory = self._in_memory or _draw()
            return self._in_memory
        try:
            return self._read() or self._make()
        except OSError as error:
            raise StoreError(f"{self._name}: {error.strerror}") from error

    def delete(self, tx: Transaction | None) -> None:
        """Overwrite and remove the secret, so that no permanent response can be drawn again.

        Args:   tx: the open transaction; None: the database is damaged, and has none.
        Raises: StoreError: it is still there.
        """
        self._in_memory = None
        if self._folder is None:
            return
        try:
            shred(self._path())
        except OSError as error:
            raise StoreError(f"{self._name}: {error.strerror}") from error

    def _path(self, suffix: str = "") -> str:
        return os.path.join(self._folder or "", self._name + suffix)

    def _read(self) -> bytes | None:
        """Return the secret; None if there is none, or one that a crash or damage cut short."""
        try:
            with open(self._path(), "rb") as file:
                secret = file.read(SECRET_SIZE + 1)
        except FileNotFoundError:
            return None
        return secret if len(secret) == SECRET_SIZE and any(secret) else None

    def _make(self) -> bytes:
        secret, new = _draw(), self._path(".new")
        with suppress(FileNotFoundError):  # a process that was killed may have left it
            os.remove(new)
        descriptor = create(new)
        with open(descriptor, "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(descriptor)
        os.replace(new, self._path())  # the file appears whole or not at all
        return secret


def _draw() -> bytes:
    return draw_bytes(system_randomness(), SECRET_SIZE)


def device_key(secret: bytes, name: str) -> bytes:
    """Return under what a gateway keeps the ledger of the device that it calls *name*."""
    import hashlib  # it loads OpenSSL: 4 MB that a start need not pay for

    return hashlib.shake_256(secret + b"hearsay device\0" + name.encode()).digest(DEVICE_SIZE)


def damaged_files(folder: str) -> list[str]:
    """Return the paths of the damaged files in *folder*, logs that were made of them included."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [
        os.path.join(folder, name) for name in names if name.startswith(FILE_NAME + DAMAGED_SUFFIX)
    ]


def remove_damaged(folder: str) -> None:
    """Overwrite and remove the damaged files in *folder*.  Raises StoreError."""
    try:
        for path in damaged_files(folder):
            shred(path)
    except OSError as error:
        raise StoreError(f"{FILE_NAME}{DAMAGED_SUFFIX}: {error.strerror}") from error


def shred(path: str) -> None:
    """Overwrite the file at *path* with zeros and remove it; one that is gone is gone.

    Raises: OSError: it is still there.
    """
    try:
        if os.path.islink(path):  # its target is not ours
            os.remove(path)
            return
        with open(open_existing(path), "r+b") as file:
            rest = os.fstat(file.fileno()).st_size
            while rest > 0:
                rest -= file.write(bytes(min(rest, _PART)))
            file.flush()
            os.fsync(file.fileno())
        os.remove(path)
    except FileNotFoundError:
        return
