"""What charges tell of repeated metrics, and how that is forgotten.

Of a permanent or two-layer metric the first report of a value costs something, and later ones
nothing.  So a row for each report says, without any noise, at which reports the value was new.
While the user agrees, this stays: the collector sees the same.  When it is to be forgotten, the
rows stay, and so does which epochs have their report; but all that the metric has cost moves to its
latest row.  There it counts no less, and longer towards the week.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .schema import unguarded

if TYPE_CHECKING:
    from .store import Transaction

# A fresh metric always costs the same.  What differs is repeated, though its memo may be gone.
_REPEATED: Final = """
    SELECT device, digest FROM memo UNION
    SELECT device, digest FROM charges WHERE digest <> x''
        GROUP BY device, digest HAVING min(nano) < max(nano)"""
_LATEST: Final = (
    "SELECT epoch FROM charges WHERE device = ? AND digest = ? ORDER BY day DESC, epoch DESC"
)


def forget_changes(tx: Transaction) -> None:
    """Charge all that each repeated metric has cost to its latest report."""
    repeated = tx.execute(_REPEATED).fetchall()
    if not repeated:
        return
    with unguarded(tx):
        for of in repeated:
            latest = tx.execute(_LATEST, of).fetchone()
            if latest is None:
                continue  # remembered, and yet not charged: damage
            where = "WHERE device = ? AND digest = ?"
            (total,) = tx.execute(f"SELECT sum(nano) FROM charges {where}", of).fetchone()  # noqa: S608 - a constant
            tx.execute(f"UPDATE charges SET nano = 0 {where}", of)  # noqa: S608 - a constant
            tx.execute(
                f"UPDATE charges SET nano = ? {where} AND epoch = ?",  # noqa: S608 - a constant
                (total, *of, *latest),
            )
