"""What the ledger tells of repeated metrics, and how that is forgotten.

Of a permanent or two-layer metric the first report of a value costs something, and later ones
nothing.  So the costs of each day say, without any noise, on which days a value was new.  While the
user agrees, this stays: the collector sees the same.  When it is to be forgotten, which epochs have
their report stays, and so does the sum; but all that the metric has cost is carried to the day of
its latest report.  There it counts no less, and longer towards the week.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .schema import Transaction

# A report of a fresh metric always costs something: a day that cost nothing had repeats alone.
_REPEATED: Final = """
    SELECT device, digest FROM memo UNION
    SELECT device, digest FROM costs WHERE digest <> x''
        GROUP BY device, digest HAVING min(nano) = 0"""


def forget_changes(tx: Transaction) -> None:
    """Carry all that each repeated metric has cost to the day of its latest report."""
    for device, digest in tx.execute(_REPEATED).fetchall():
        tx.execute(
            "DELETE FROM costs WHERE device = ? AND digest = ? AND (last, first) < ("
            " SELECT last, first FROM costs WHERE device = ? AND digest = ?"
            " ORDER BY last DESC, first DESC LIMIT 1)",
            (device, digest, device, digest),
        )
