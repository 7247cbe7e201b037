"""The last reports that were acknowledged, kept so that a device can show its user what it said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .core.dataclass import dataclass
from .core.limits import MAX_ACKNOWLEDGED
from .core.wire import Report, from_base64url

if TYPE_CHECKING:
    from .schema import Transaction


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
        for column in json.loads(body)["columns"]
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
