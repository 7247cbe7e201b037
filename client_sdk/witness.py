"""The generation file: how far the ledger has come, beside the database.

The database counts its charges.  The count is repeated here after every commit, so a database that
knows of fewer was rolled back to an earlier state, or lost its log.  The file never runs ahead: it
is written after the commit is durable, and losing it loses only this one sign.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from .core.paths import create_or_open

GENERATION_FILE: Final = "generation"

_DIGITS: Final = 20  # always written, so that no crash leaves a shorter number


def read_generation(folder: str) -> int:
    """Return the number in *folder*; 0 if there is none that can be read."""
    try:
        with open(_path(folder), "rb") as file:
            return int(file.read(_DIGITS))
    except (OSError, ValueError):
        return 0


def write_generation(folder: str, generation: int) -> None:
    """Write *generation* to *folder*, if that is possible."""
    with suppress(OSError), open(create_or_open(_path(folder)), "wb") as file:
        file.write(f"{generation:0{_DIGITS}d}".encode())


def _path(folder: str) -> str:
    return os.path.join(folder, GENERATION_FILE)
