"""Files and folders for one user only, made through no link.

Where root makes them in somebody else's folder, as by ``sudo``, they belong to that somebody: else
the application could never write there again as itself.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)  # Windows has none


def make_folder(path: str) -> None:
    """Make the folder at *path* and those above it, where there are none.  Raises OSError."""
    missing, above = [], path
    while not os.path.exists(above):
        missing.append(above)
        above = os.path.dirname(above) or os.curdir
    os.makedirs(path, mode=0o700, exist_ok=True)
    for folder in reversed(missing):
        with suppress(OSError):  # Windows opens no folders
            descriptor = os.open(folder, os.O_RDONLY | _NO_LINK)
            _give(descriptor, folder)
            os.close(descriptor)


def create(path: str) -> int:
    """Return a descriptor that writes to a new file.  Raises FileExistsError, OSError."""
    return _open(path, os.O_EXCL)


def create_or_open(path: str) -> int:
    """Return a descriptor that writes to the beginning of a file, new or not.  Raises OSError."""
    return _open(path, 0)


def open_existing(path: str) -> int:
    """Return a descriptor that reads and writes a file that is no link.  Raises OSError."""
    return os.open(path, os.O_RDWR | _NO_LINK)


def _open(path: str, exclusive: int) -> int:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | exclusive | _NO_LINK, 0o600)
    _give(descriptor, path)
    return descriptor


def _give(descriptor: int, path: str) -> None:
    """Give what root made to the owner of the folder that it lies in."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        with suppress(OSError):  # on file systems that know no owners, or let nobody change them
            owner = os.stat(os.path.dirname(path) or os.curdir)
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
