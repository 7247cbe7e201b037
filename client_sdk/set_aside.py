"""Files set aside because they were damaged, and how a file is removed so that little is left."""

from __future__ import annotations

import os
from typing import Final

from .errors import StoreError
from .private_files import open_existing
from .schema import FILE_NAME

DAMAGED: Final = ".damaged"  # behind the name of a file that was set aside; one is kept

_PART: Final = 65_536  # bytes that are overwritten at a time


def set_aside_in(folder: str) -> list[str]:
    """Return the paths of what was set aside in *folder*, logs that were made of it included."""
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [os.path.join(folder, name) for name in names if name.startswith(FILE_NAME + DAMAGED)]


def remove_set_aside(folder: str) -> None:
    """Overwrite and remove what was set aside in *folder*.  Raises StoreError."""
    try:
        for path in set_aside_in(folder):
            shred(path)
    except OSError as error:
        raise StoreError(f"{FILE_NAME}{DAMAGED}: {error.strerror}") from error


def shred(path: str) -> None:
    """Overwrite the file at *path* with zeros and remove it; one that is gone is gone.

    Raises: OSError: it is still there.
    """
    try:
        if os.path.islink(path):  # what it points to is not ours
            os.remove(path)
            return
        with open(open_existing(path), "r+b") as file:
            left = os.fstat(file.fileno()).st_size
            while left > 0:
                left -= file.write(bytes(min(left, _PART)))
            file.flush()
            os.fsync(file.fileno())
        os.remove(path)
    except FileNotFoundError:
        return
