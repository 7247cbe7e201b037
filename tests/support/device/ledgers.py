"""Ledgers of many years, written at once through all rules of the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

LAST_DAY: Final = 19_000  # long before the clocks of the tests begin
_COST: Final = 1_000_000  # nano-epsilon


def fill_ledger(tx: sqlite3.Connection, digests: Sequence[bytes], hours: int) -> None:
    """Charge each of the metrics *digests* for so many hours in a row, up to LAST_DAY."""
    first = 24 * LAST_DAY - hours
    epochs = range(first, first + hours)
    days = range(first // 24, LAST_DAY)
    for digest in digests:
        tx.executemany(
            "INSERT INTO charges (device, digest, epoch) VALUES (x'', ?, ?)",
            ((digest, epoch) for epoch in epochs),
        )
        tx.executemany(
            "INSERT INTO costs (device, digest, first, last, nano, delta)"
            " VALUES (x'', ?, ?, ?, ?, 0)",
            ((digest, day, day, 24 * _COST) for day in days),
        )
        tx.execute(
            "INSERT INTO totals (device, digest, nano, delta) VALUES (x'', ?, ?, 0)"
            " ON CONFLICT DO UPDATE SET nano = nano + excluded.nano",
            (digest, 24 * _COST * len(days)),
        )
