"""The reserve file takes up room beside the database, so that there is some on a full disk.

On a full disk SQLite cannot even delete: that, too, is written to its log first.  Without this file
an outbox would never empty again, and a user could not withdraw what is in it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from .core.paths import create
from .schema import RESERVE_FILE

if TYPE_CHECKING:
    from .core.paths import PathOrStr

RESERVE_SIZE: Final = 256 * 1024  # bytes; the log of the deletions of several passes
LEFT_FREE: Final = RESERVE_SIZE  # bytes beside it: what was just made room for is used first


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
            if self._free() >= RESERVE_SIZE + LEFT_FREE:
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
