"""Damaged files that were set aside, and how a file is removed so that little is left."""

from __future__ import annotations

import os
from typing import Final

from .core.errors import StoreError
from .core.paths import open_existing
from .schema import FILE_NAME

DAMAGED_SUFFIX: Final = ".damaged"  # behind the name of a file that was set aside; one is kept

_PART: Final = 65_536  # bytes that are overwritten at a time


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
