"""Forgetting: what a revoked consent or a purge takes away.  The charges stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import outbox

if TYPE_CHECKING:
    from .secret import Secret
    from .store import Transaction

_FORGOTTEN: Final = ("windows", "memo", "sent")


def open_windows(tx: Transaction) -> int:
    """Return how many windows ``wipe`` would take away."""
    (count,) = tx.execute("SELECT count(*) FROM windows").fetchone()
    return int(count)


def wipe(tx: Transaction, secret: Secret) -> int:
    """Delete all that waits, what was sent, the memo and the secret.

    Returns: how many reports waited.
    Raises:  StoreError: the secret cannot be removed; then nothing was deleted.
    """
    waited = outbox.wipe(tx)
    for table in _FORGOTTEN:
        tx.execute(f"DELETE FROM {table}")  # noqa: S608 - names from above
    secret.delete(tx)  # last: should the commit fail, the memo's tags merely match nothing more
    return waited
