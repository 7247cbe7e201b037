"""Facts about the database itself: one value a key, in the transaction of whoever needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .store import Transaction

Fact: TypeAlias = bytes | str | int | float


def get(tx: Transaction, key: str) -> Fact | None:
    """Return the value of *key*, or None."""
    row = tx.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def put(tx: Transaction, key: str, value: Fact) -> None:
    """Set *key* to *value*."""
    tx.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def remove(tx: Transaction, key: str) -> None:
    """Forget *key*."""
    tx.execute("DELETE FROM meta WHERE key = ?", (key,))
