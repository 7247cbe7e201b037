"""The outbox: reports that wait to be sealed, bounded in number, bytes and age.

Only perturbed payloads are stored.  A report carries no more of the device's segment than its
metric keeps apart, and reports of different segments never share an upload.  So an upload never
tells a dimension that none of its metrics asked for.

The last reports that were acknowledged are kept, so that a device can show its user what it said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ..core import compact_json
from ..core.base64url import from_base64url
from ..core.dataclass import dataclass
from ..core.limits import MAX_ACKNOWLEDGED, MAX_REPORT_AGE
from ..core.typing import TYPE_CHECKING
from ..wire.reports import DEVICE, Bounds, Report

if TYPE_CHECKING:
    from .schema import Transaction


class Outbox:
    """Queues reports made under one segment, within *bounds*."""

    def __init__(self, segment: Mapping[str, str], bounds: Bounds = DEVICE) -> None:
        """Stamp new reports with *segment*, as it is when they are made."""
        self._segment, self._bounds = dict(segment), bounds
        self._texts: dict[tuple[str, ...], str] = {}  # by dimensions
        self._unmeasured = 0  # reports since the outbox was last measured

    def put(
        self,
        tx: Transaction,
        report: Report,
        day: int,
        dimensions: Collection[str],
        label: Mapping[str, str] | None = None,
    ) -> int:
        """Append *report*; return how many of the oldest were dropped to make room.

        Args: day: epoch day of recording.  dimensions: of the segment, that its metric keeps apart.
              label: values of the report's own, in place of the device's.
        """
        tx.execute(
            "INSERT INTO reports (digest, epoch, payload, segment, day) VALUES (?, ?, ?, ?, ?)",
            (
                report.metric,
                report.epoch,
                report.payload,
                self._text(tuple(dimensions), label),
                day,
            ),
        )
        self._unmeasured += 1
        if self._unmeasured <= self._bounds.slack:
            return 0
        self._unmeasured = 0
        return self._trim(tx)

    def _trim(self, tx: Transaction) -> int:
        """Drop the oldest reports until the others keep the bounds; return how many those were."""
        count, size = tx.execute(
            "SELECT count(*), coalesce(sum(length(payload)), 0) FROM reports"
        ).fetchone()
        surplus = max(0, count - self._bounds.reports)
        if surplus == 0 and size <= self._bounds.size:
            return 0
        last = dropped = 0
        for number, length in tx.execute(
            "SELECT number, length(payload) FROM reports ORDER BY number"
        ):
            if dropped >= surplus and size <= self._bounds.size:
                break
            last, dropped, size = number, dropped + 1, size - length
        tx.execute("DELETE FROM reports WHERE number <= ?", (last,))
        return dropped

    def _text(self, dimensions: tuple[str, ...], label: Mapping[str, str] | None) -> str:
        """Return the segment as far as it has *dimensions*, in canonical form."""
        if label:
            known = {**self._segment, **label}
            own = {name: known[name] for name in sorted(set(dimensions) & known.keys())}
            return compact_json.dumps(own)
        text = self._texts.get(dimensions)
        if text is None:
            names = sorted(set(dimensions) & self._segment.keys())
            segment = {name: self._segment[name] for name in names}
            text = self._texts[dimensions] = compact_json.dumps(segment)
        return text


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


def token_of(tx: Transaction, upload_id: bytes) -> bytes | None:
    """Return the one-time token that a sealed upload goes with; None if it was sealed without."""
    row = tx.execute("SELECT token FROM tokens WHERE id = ?", (upload_id,)).fetchone()
    return None if row is None else bytes(row[0])


def discard_token(tx: Transaction, upload_id: bytes) -> None:
    """Delete the token of an upload that was answered, or was seen by somebody."""
    tx.execute("DELETE FROM tokens WHERE id = ?", (upload_id,))


def clear(tx: Transaction) -> int:
    """Delete all that waits, and one-time tokens; return how many reports that were."""
    count = waiting(tx)
    for table in ("reports", "uploads", "tokens"):
        tx.execute(f"DELETE FROM {table}")  # noqa: S608 - names from above
    tx.execute("DELETE FROM meta WHERE key IN ('tokens_last', 'tokens_due')")
    return count


@dataclass(frozen=True)
class AcknowledgedReport:
    """A report and the epoch day on which the collector acknowledged it."""

    report: Report
    day: int


def keep_acknowledged(tx: Transaction, body: bytes, day: int) -> None:
    """Keep the reports of a device's acknowledged upload; of all, the last MAX_ACKNOWLEDGED.

    A device makes one report a metric and epoch, so a column of its uploads is one report.
    """
    rows = [
        (from_base64url(column["metric"]), column["epoch"], from_base64url(column["payloads"]), day)
        for column in compact_json.loads(body.decode())["columns"]
    ]
    tx.executemany("INSERT INTO sent (digest, epoch, payload, day) VALUES (?, ?, ?, ?)", rows)
    tx.execute(
        "DELETE FROM sent WHERE number <= (SELECT max(number) FROM sent) - ?", (MAX_ACKNOWLEDGED,)
    )


def acknowledged_reports(tx: Transaction) -> Iterator[AcknowledgedReport]:
    """Yield the reports that are kept, the latest first."""
    for *report, day in tx.execute(
        "SELECT digest, epoch, payload, day FROM sent ORDER BY number DESC"
    ):
        yield AcknowledgedReport(Report(*report), day)
