"""The memo: which values of a metric this device has been charged for.

The values themselves are not in it.  A row has a tag that only who holds the secret can connect to
a value, and payloads are not stored at all: they are drawn again from the secret.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .schema import Transaction

TAG_SIZE: Final = 16  # bytes
MAX_REPORTS: Final = 2  # counted of a value; beyond, none costs anything, so none need be known

_PURPOSE: Final = b"charge"


def tag_of(secret: bytes, device: bytes, digest: bytes, encoded: bytes) -> bytes:
    """Return the tag under which a value is remembered."""
    absorbed = secret + device + digest + _PURPOSE + encoded
    return hashlib.shake_256(absorbed).digest(TAG_SIZE)


def reports_of(tx: Transaction, device: bytes, digest: bytes, tag: bytes) -> int:
    """Return how many reports of the value of *tag* there were; MAX_REPORTS stands for any more."""
    row = tx.execute(
        "SELECT reports FROM memo WHERE device = ? AND digest = ? AND tag = ?",
        (device, digest, tag),
    ).fetchone()
    return 0 if row is None else int(row[0])


def set_reports(tx: Transaction, device: bytes, digest: bytes, tag: bytes, reports: int) -> None:
    """Set the number of reports of a value to *reports*, of which MAX_REPORTS are counted."""
    if reports <= MAX_REPORTS:
        tx.execute(
            "INSERT OR REPLACE INTO memo (device, digest, tag, reports) VALUES (?, ?, ?, ?)",
            (device, digest, tag, reports),
        )
