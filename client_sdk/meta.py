"""Properties of the database itself: one value a key, in the transaction of whoever needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .schema import Transaction

Property: TypeAlias = bytes | str | int | float


def property_of(tx: Transaction, key: str) -> Property | None:
    """Return the property called *key*, or None."""
    row = tx.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def set_property(tx: Transaction, key: str, value: Property) -> None:
    """Set the property called *key* to *value*."""
    tx.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def remove_property(tx: Transaction, key: str) -> None:
    """Delete the property called *key*."""
    tx.execute("DELETE FROM meta WHERE key = ?", (key,))
