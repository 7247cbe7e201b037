"""Sealed uploads: bytes that wait for an acknowledgement and never change again.

Whatever happens on the way, a retry can only repeat what was said, never draw or say more.  A
sealed upload that outlives its first try is one whose outcome is unknown.  If it is certain that
nobody took it, its reports go back to where they waited, and may be sealed anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from .bounds import DEVICE, Bounds
from .dataclass import dataclass
from .limits import MAX_COLUMNS, SIZE_CLASSES, UPLOAD_ID_SIZE
from .randomness import Randomness
from .report import Report, columns_of

if TYPE_CHECKING:
    from .store import Transaction

Row: TypeAlias = tuple[int, str, bytes, int, bytes, int]  # of the table ``reports``

MAX_SEALED: Final = 5  # uploads from which on, while they fail, only what is a day old is sealed

_COLUMN_FRAME: Final = 80  # bytes of JSON around payloads: names, digest, an epoch of 20 digits
_UPLOAD_FRAME: Final = 128  # bytes of JSON around segment and columns
_SMALLER: Final = 4  # how much smaller an upload becomes that was too large: as size classes are


@dataclass(frozen=True)
class Sealed:
    """An upload as it is sent, again and again, until it is answered."""

    upload_id: bytes
    body: bytes
    reports: int
    rows: tuple[Row, ...] = ()  # what it was sealed from, in the pass of its first try only

    @property
    def is_new(self) -> bool:
        """Whether this is its first try, so that nobody can have taken it before."""
        return bool(self.rows)


class Sealer:
    """Turns what waits into uploads within *bounds*; *randomness* draws their ids and turns."""

    def __init__(self, randomness: Randomness, bounds: Bounds = DEVICE) -> None:
        """Begin with the largest bodies that *bounds* allow."""
        self.bounds = bounds
        self._randomness = randomness
        self._body = bounds.body  # bytes; less once a proxy has refused that much

    def take(self, tx: Transaction, day: int, *, failing: bool) -> Sealed | None:
        """Return the upload whose turn it is; None if nothing waits.

        What was sealed comes first, and while tries fail, what was not: so neither keeps the other
        from being sent.  During an outage few uploads are sealed in vain: one a day and segment.

        Raises: EntropyError: no upload id could be drawn.
        """
        (sealed,) = tx.execute("SELECT count(*) FROM uploads").fetchone()
        if sealed and not failing:
            return self.first_sealed(tx)
        if sealed >= MAX_SEALED:
            (oldest,) = tx.execute("SELECT coalesce(min(day), ?) FROM reports", (day,)).fetchone()
            if oldest >= day:
                return self.first_sealed(tx)
        return self.seal(tx, day) or self.first_sealed(tx)

    def first_sealed(self, tx: Transaction) -> Sealed | None:
        """Return the sealed upload that was tried longest ago; None if there is none."""
        row = tx.execute("SELECT id, body, reports FROM uploads ORDER BY number LIMIT 1").fetchone()
        return None if row is None else Sealed(*row)

    def sealed(self, tx: Transaction, upload_id: bytes) -> Sealed | None:
        """Return the sealed upload of that id; None if it is gone."""
        row = tx.execute(
            "SELECT id, body, reports FROM uploads WHERE id = ?", (upload_id,)
        ).fetchone()
        return None if row is None else Sealed(*row)

    def seal(self, tx: Transaction, day: int) -> Sealed | None:
        """Turn reports of one segment into an upload; None if none waits unsealed.

        Raises: EntropyError: no upload id could be drawn.
        """
        segment = self._segment(tx)
        return None if segment is None else self._seal(tx, day, segment)

    def seal_smaller(self, tx: Transaction, refused: Sealed, day: int) -> Sealed | None:
        """Seal the reports of *refused* in smaller uploads, and return the first of them.

        Only for what was too large at its first try: a refusal of a body unread is the one answer
        after which it is certain that nobody took it.  None, and nothing happens, if it cannot be
        made smaller, or a denial came first.

        Raises: EntropyError: no upload id could be drawn.
        """
        smaller = len(refused.body) // _SMALLER
        if len(refused.rows) < 2 or smaller < SIZE_CLASSES[0] or not self.unseal(tx, refused):
            return None
        self._body = min(self._body, smaller)
        return self._seal(tx, day, refused.rows[0][1])

    def unseal(self, tx: Transaction, upload: Sealed) -> bool:
        """Let the reports of *upload*, which nobody has seen, wait as before it was sealed.

        Returns: False if a denial came first, or they are not known any more.
        """
        if not upload.is_new or not remove(tx, upload.upload_id):
            return False
        (first,) = tx.execute("SELECT coalesce(min(number), 0) FROM reports").fetchone()
        numbers = range(first - len(upload.rows), first)  # older than all others, as they were
        tx.executemany(
            "INSERT INTO reports (number, segment, digest, epoch, payload, day)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [(number, *row[1:]) for number, row in zip(numbers, upload.rows, strict=True)],
        )
        return True

    def lots(self, tx: Transaction) -> int:
        """Return how many uploads would be needed for all that waits, if none grew too large."""
        (count,) = tx.execute(
            "SELECT (SELECT count(*) FROM uploads) + (SELECT count(DISTINCT segment) FROM reports)"
        ).fetchone()
        return int(count)

    def _segment(self, tx: Transaction) -> str | None:
        """Return the segment whose turn it is.

        Of a device, one that has waited since the earliest day, and of several any: a fixed order
        would tell which uploads are of one device.
        """
        if not self.bounds.apart:
            row = tx.execute("SELECT segment FROM reports ORDER BY number LIMIT 1").fetchone()
            return None if row is None else str(row[0])
        days = tx.execute(
            "SELECT segment, min(day) FROM reports GROUP BY segment ORDER BY min(day), segment"
        ).fetchall()
        oldest = [segment for segment, day in days if day == days[0][1]]
        if len(oldest) < 2:
            return str(oldest[0]) if oldest else None
        return str(oldest[self._randomness.uniform(len(oldest))])

    def _seal(self, tx: Transaction, day: int, segment: str) -> Sealed:
        """Turn the oldest reports of *segment* into an upload, within the limits of a body."""
        rows = self._fitting(
            segment,
            tx.execute(
                "SELECT number, segment, digest, epoch, payload, day FROM reports"
                " WHERE segment = ? ORDER BY number LIMIT ?",
                (segment, self.bounds.upload_reports),
            ),
        )
        size = UPLOAD_ID_SIZE
        upload_id = self._randomness.uniform(1 << (8 * size)).to_bytes(size, "big")
        columns = columns_of(Report(*row[2:5]) for row in rows)
        body = self.bounds.seal(upload_id, day, json.loads(segment), columns)
        tx.execute(
            "INSERT INTO uploads (id, body, reports, sealed_day) VALUES (?, ?, ?, ?)",
            (upload_id, body, len(rows), day),
        )
        tx.execute("DELETE FROM reports WHERE segment = ? AND number <= ?", (segment, rows[-1][0]))
        return Sealed(upload_id, body, len(rows), tuple(rows))

    def _fitting(self, segment: str, rows: Iterable[Any]) -> list[Row]:
        """Return the leading rows that surely fit a body, even as JSON; at least one."""
        room = self._body - _UPLOAD_FRAME - len(segment)
        columns: set[tuple[bytes, int]] = set()
        fitting: list[Row] = []
        for row in rows:
            _, _, digest, epoch, payload, _ = row
            if (digest, epoch) not in columns:
                columns.add((digest, epoch))
                room -= _COLUMN_FRAME
            room -= -(-len(payload) * 4 // 3)
            if fitting and (room < 0 or len(columns) > MAX_COLUMNS):
                break
            fitting.append(row)
        return fitting


def put_behind(tx: Transaction, upload_id: bytes) -> None:
    """Put a sealed upload behind all others, so that it blocks none.  Its bytes stay."""
    tx.execute(
        "UPDATE uploads SET number = (SELECT max(number) + 1 FROM uploads) WHERE id = ?",
        (upload_id,),
    )


def remove(tx: Transaction, upload_id: bytes) -> bool:
    """Delete a sealed upload; return False if another process, or a revocation, came first."""
    return tx.execute("DELETE FROM uploads WHERE id = ?", (upload_id,)).rowcount > 0
