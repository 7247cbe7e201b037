"""Sealed uploads: bytes that wait for an acknowledgement and never change again.

Whatever happens on the way, a retry can only repeat what was said, never draw or say more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from .bounds import DEVICE, Bounds
from .dataclass import dataclass
from .limits import MAX_COLUMNS, UPLOAD_ID_SIZE
from .randomness import Randomness
from .report import Report, columns_of

if TYPE_CHECKING:
    from .store import Transaction

MAX_SEALED: Final = 5  # uploads beyond which a failing one lets no further be sealed before it

_COLUMN_FRAME: Final = 80  # bytes of JSON around payloads: names, digest, an epoch of 20 digits
_UPLOAD_FRAME: Final = 128  # bytes of JSON around segment and columns


@dataclass(frozen=True)
class Sealed:
    """An upload as it is sent, again and again, until it is answered."""

    upload_id: bytes
    body: bytes
    reports: int


@dataclass(frozen=True)
class Sealer:
    """Turns what waits into uploads within *bounds*; *randomness* draws their ids."""

    randomness: Randomness
    bounds: Bounds = DEVICE

    def next_upload(self, tx: Transaction, day: int) -> Sealed | None:
        """Return the first sealed upload; without one, seal what waits; None if nothing waits.

        Raises: EntropyError: no upload id could be drawn.
        """
        row = tx.execute("SELECT id, body, reports FROM uploads ORDER BY number LIMIT 1").fetchone()
        return self._seal_oldest(tx, day) if row is None else Sealed(*row)

    def defer(self, tx: Transaction, upload_id: bytes, day: int) -> None:
        """Put a sealed upload behind all others, and behind what waits, so that it blocks none.

        Its bytes stay.  During an outage each try would seal the few reports made since the last,
        so there are never more than MAX_SEALED uploads by this.

        Raises: EntropyError: no upload id could be drawn.
        """
        if tx.execute("SELECT 1 FROM uploads WHERE id = ?", (upload_id,)).fetchone() is None:
            return  # another process, or a revocation, came first
        (sealed,) = tx.execute("SELECT count(*) FROM uploads").fetchone()
        if sealed < MAX_SEALED:
            self._seal_oldest(tx, day)
        tx.execute(
            "UPDATE uploads SET number = (SELECT max(number) + 1 FROM uploads) WHERE id = ?",
            (upload_id,),
        )

    def _seal_oldest(self, tx: Transaction, day: int) -> Sealed | None:
        """Turn the oldest reports of one segment into an upload, within the limits of a body."""
        rows = tx.execute(
            "SELECT number, segment, digest, epoch, payload FROM reports"
            " WHERE segment = (SELECT segment FROM reports ORDER BY number LIMIT 1)"
            " ORDER BY number LIMIT ?",
            (self.bounds.upload_reports,),
        ).fetchall()
        if not rows:
            return None
        rows = rows[: self._fitting(rows)]
        size = UPLOAD_ID_SIZE
        upload_id = self.randomness.uniform(1 << (8 * size)).to_bytes(size, "big")
        columns = columns_of(Report(*row[2:]) for row in rows)
        body = self.bounds.seal(upload_id, day, json.loads(rows[0][1]), columns)
        tx.execute(
            "INSERT INTO uploads (id, body, reports, sealed_day) VALUES (?, ?, ?, ?)",
            (upload_id, body, len(rows), day),
        )
        tx.execute(
            "DELETE FROM reports WHERE segment = ? AND number <= ?", (rows[0][1], rows[-1][0])
        )
        return Sealed(upload_id, body, len(rows))

    def _fitting(self, rows: Sequence[tuple[Any, ...]]) -> int:
        """Return how many leading rows surely fit a body, even as JSON; at least one."""
        room = self.bounds.body - _UPLOAD_FRAME - len(rows[0][1])
        columns: set[tuple[bytes, int]] = set()
        for count, (_, _, digest, epoch, payload) in enumerate(rows):
            if (digest, epoch) not in columns:
                columns.add((digest, epoch))
                room -= _COLUMN_FRAME
            room -= -(-len(payload) * 4 // 3)
            if room < 0 or len(columns) > MAX_COLUMNS:
                return max(1, count)
        return len(rows)


def remove(tx: Transaction, upload_id: bytes) -> bool:
    """Delete a sealed upload; return False if another process, or a revocation, came first."""
    return tx.execute("DELETE FROM uploads WHERE id = ?", (upload_id,)).rowcount > 0
