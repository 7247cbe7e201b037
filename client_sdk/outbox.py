"""The outbox: reports that wait, and uploads that were sealed and wait for an acknowledgement.

Only perturbed payloads are stored.  A sealed upload is bytes that never change again: whatever
happens on the way, a retry can only repeat what was said, never draw or say more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .limits import (
    MAX_DEVICE_BODY,
    MAX_PENDING_REPORTS,
    MAX_REPORT_AGE,
    MAX_UPLOAD_REPORTS,
    UPLOAD_ID_SIZE,
)
from .randomness import Randomness
from .report import Report, columns_of, seal

if TYPE_CHECKING:
    from .store import Transaction

MAX_SEALED: Final = 5  # uploads beyond which a failing one lets no further be sealed before it

_COLUMN_FRAME: Final = 80  # bytes of JSON around a payload: names, digest, an epoch of 20 digits
_UPLOAD_FRAME: Final = 128  # bytes of JSON around segment and columns


@dataclass(frozen=True)
class Sealed:
    """An upload as it is sent, again and again, until it is answered."""

    upload_id: bytes
    body: bytes
    reports: int


class Outbox:
    """Queues reports made under one segment.  Reports of another segment never share an upload."""

    def __init__(self, segment: Mapping[str, str]) -> None:
        """Stamp new reports with *segment*, as it is when they are made."""
        self._segment = json.dumps(dict(sorted(segment.items())), separators=(",", ":"))

    def put(self, tx: Transaction, report: Report, day: int) -> int:
        """Append *report*; return how many of the oldest were dropped to make room."""
        tx.execute(
            "INSERT INTO reports (digest, epoch, payload, segment, day) VALUES (?, ?, ?, ?, ?)",
            (report.metric, report.epoch, report.payload, self._segment, day),
        )
        (waiting,) = tx.execute("SELECT count(*) FROM reports").fetchone()
        surplus = max(0, int(waiting) - MAX_PENDING_REPORTS)
        if surplus:
            tx.execute(
                "DELETE FROM reports WHERE number IN"
                " (SELECT number FROM reports ORDER BY number LIMIT ?)",
                (surplus,),
            )
        return surplus


def next_upload(tx: Transaction, day: int, randomness: Randomness) -> Sealed | None:
    """Return the first sealed upload; without one, seal what waits; None if nothing waits.

    Raises: EntropyError: no upload id could be drawn.
    """
    row = tx.execute("SELECT id, body, reports FROM uploads ORDER BY number LIMIT 1").fetchone()
    return _seal_oldest(tx, day, randomness) if row is None else Sealed(*row)


def defer(tx: Transaction, upload_id: bytes, day: int, randomness: Randomness) -> None:
    """Put a sealed upload behind all others, and behind what waits, so that it cannot block them.

    Its bytes stay.  During an outage each try would seal the few reports made since the last, so
    there are never more than MAX_SEALED uploads by this.

    Raises: EntropyError: no upload id could be drawn.
    """
    if tx.execute("SELECT 1 FROM uploads WHERE id = ?", (upload_id,)).fetchone() is None:
        return  # another process, or a revocation, came first
    (sealed,) = tx.execute("SELECT count(*) FROM uploads").fetchone()
    if sealed < MAX_SEALED:
        _seal_oldest(tx, day, randomness)
    tx.execute(
        "UPDATE uploads SET number = (SELECT max(number) + 1 FROM uploads) WHERE id = ?",
        (upload_id,),
    )


def remove(tx: Transaction, upload_id: bytes) -> bool:
    """Delete a sealed upload; return False if another process, or a revocation, came first."""
    return tx.execute("DELETE FROM uploads WHERE id = ?", (upload_id,)).rowcount > 0


def expire(tx: Transaction, day: int) -> int:
    """Drop what has waited more than MAX_REPORT_AGE days; return how many reports that were."""
    oldest = day - MAX_REPORT_AGE
    (sealed,) = tx.execute(
        "SELECT coalesce(sum(reports), 0) FROM uploads WHERE sealed_day < ?", (oldest,)
    ).fetchone()
    if sealed:
        tx.execute("DELETE FROM uploads WHERE sealed_day < ?", (oldest,))
    return int(sealed) + tx.execute("DELETE FROM reports WHERE day < ?", (oldest,)).rowcount


def waiting(tx: Transaction) -> int:
    """Return how many reports wait, sealed ones included."""
    (count,) = tx.execute(
        "SELECT (SELECT count(*) FROM reports) + (SELECT coalesce(sum(reports), 0) FROM uploads)"
    ).fetchone()
    return int(count)


def wipe(tx: Transaction) -> int:
    """Delete all that waits; return how many reports that were."""
    count = waiting(tx)
    tx.execute("DELETE FROM reports")
    tx.execute("DELETE FROM uploads")
    return count


def _seal_oldest(tx: Transaction, day: int, randomness: Randomness) -> Sealed | None:
    """Turn the oldest reports of one segment into an upload, within the limits of a body."""
    rows = tx.execute(
        "SELECT number, segment, digest, epoch, payload FROM reports"
        " WHERE segment = (SELECT segment FROM reports ORDER BY number LIMIT 1)"
        " ORDER BY number LIMIT ?",
        (MAX_UPLOAD_REPORTS,),
    ).fetchall()
    if not rows:
        return None
    rows = rows[: _fitting(rows)]
    upload_id = randomness.uniform(1 << (8 * UPLOAD_ID_SIZE)).to_bytes(UPLOAD_ID_SIZE, "big")
    segment: dict[str, str] = json.loads(rows[0][1])
    body = seal(upload_id, day, segment, columns_of(Report(*row[2:]) for row in rows))
    tx.execute(
        "INSERT INTO uploads (id, body, reports, sealed_day) VALUES (?, ?, ?, ?)",
        (upload_id, body, len(rows), day),
    )
    tx.executemany("DELETE FROM reports WHERE number = ?", [row[:1] for row in rows])
    return Sealed(upload_id, body, len(rows))


def _fitting(rows: Sequence[tuple[Any, ...]]) -> int:
    """Return how many leading rows surely fit a device's body; at least one."""
    room = MAX_DEVICE_BODY - _UPLOAD_FRAME - len(rows[0][1])
    for count, row in enumerate(rows):
        room -= _COLUMN_FRAME + -(-len(row[4]) * 4 // 3)
        if room < 0:
            return max(1, count)
    return len(rows)
