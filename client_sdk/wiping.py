"""Erasing: what a revoked consent or a purge takes away.  What was spent stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .storage import outbox
from .storage.ledger import forget_changes

if TYPE_CHECKING:
    from .storage.schema import Transaction
    from .storage.store import Store

_ERASED_TABLES: Final = ("windows", "memo", "sent")


def open_windows(tx: Transaction) -> int:
    """Return how many windows ``erase`` would take away."""
    (count,) = tx.execute("SELECT count(*) FROM windows").fetchone()
    return int(count)


def erase(tx: Transaction, store: Store) -> int:
    """Delete all that waits, acknowledged reports, the memo, the secret and damaged files.

    Returns: how many reports waited.
    Raises:  StoreError: a file cannot be removed; then nothing was deleted from the database.
    """
    waiting = outbox.clear(tx)
    forget_changes(tx)
    for table in _ERASED_TABLES:
        tx.execute(f"DELETE FROM {table}")  # noqa: S608 - names from above
    store.remove_damaged()
    # last: should the commit fail, the memo's tags merely match nothing more
    store.secret.delete(tx)
    return waiting
