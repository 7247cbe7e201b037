"""The last reports that a development collector accepted: in memory, for ``hearsay tail``.

Only with HEARSAY_DEVELOPMENT=1, which takes a store that keeps nothing and an address that only
this machine reaches.  A report is kept as it is counted, after the upload that brought it was
stored; nothing says which reports came together, but their order would, so no other collector
keeps it.  It holds no true value: none ever arrives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Final, NamedTuple

import msgspec
from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from client_sdk.core.epoch import epoch_label
from client_sdk.privacy.wording import what_was_sent, why_deniable

from ...core.catalog import Catalog
from ...core.cells import Cell
from ...core.credentials import VIEW
from ...core.entry import AcceptedColumn
from ...core.errors import QueryError
from ..api.openapi import Operation, in_query
from ..auth import scope, visible
from ..services import services
from .upload import Observer

MOST: Final = 100  # reports; what a developer reads
PATH: Final = "/v1/development/reports"
_AFTER: Final = in_query("after", {"type": "string"}, "The number of the last report seen.")
_DIGITS: Final = 15  # of a number of a report
blueprint = Blueprint("development", __name__)


class _Report(NamedTuple):
    number: int
    cell: Cell
    payload: bytes


class RecentReport(msgspec.Struct, frozen=True):
    """One accepted report in words."""

    number: int  # counts up while the process runs
    metric: str
    epoch: str  # when it began
    every: str
    segment: str  # as the tallies name it; "" for everybody
    payload: str  # hexadecimal
    sent: str
    means: str


class RecentAnswer(msgspec.Struct, frozen=True):
    """The kept reports after a number, oldest first."""

    reports: list[RecentReport]


class RecentReports(Observer):
    """Keeps the last MOST reports of one process.  Safe among threads."""

    def __init__(self, catalog: Catalog) -> None:
        """Start empty; *catalog* has the size of a payload."""
        self._metrics = catalog.by_digest
        self._kept: deque[_Report] = deque(maxlen=MOST)
        self._last, self._turn = 0, Lock()

    def accept(self, columns: Sequence[AcceptedColumn]) -> None:
        """Keep the reports of an upload that was stored, the last MOST of a long one."""
        with self._turn:
            for cell, payloads in columns:
                size = self._metrics[cell.metric].mechanism.payload_size
                for start in range(max(0, len(payloads) - MOST * size), len(payloads), size):
                    self._last += 1
                    self._kept.append(_Report(self._last, cell, payloads[start : start + size]))

    def after(self, number: int, catalog: Catalog) -> list[RecentReport]:
        """Return the reports after *number* of metrics in *catalog*, in words.

        All of them after a number that was never given: it is of an earlier run.
        """
        with self._turn:
            since = number if number <= self._last else 0
            kept = [report for report in self._kept if report.number > since]
        return [text for report in kept if (text := _in_words(report, catalog)) is not None]


def _in_words(report: _Report, catalog: Catalog) -> RecentReport | None:
    cell = report.cell
    try:
        metric = catalog.by_digest[cell.metric]
    except KeyError:
        return None  # this reader's token does not open it
    return RecentReport(
        number=report.number,
        metric=metric.address,
        epoch=epoch_label(metric.every, cell.epoch),
        every=metric.every,
        segment=cell.segment,
        payload=report.payload.hex(),
        sent=what_was_sent(metric, report.payload),
        means=why_deniable(metric),
    )


@blueprint.get(PATH)
@scope(VIEW)
@Operation(RecentAnswer, parameters=(_AFTER,), problems=(400,))
def recent_reports() -> ResponseReturnValue:
    """Tell the last accepted reports; of a development collector only."""
    text = request.args.get("after", "0")
    if set(request.args) - {"after"} or not (text.isdecimal() and len(text) <= _DIGITS):
        raise QueryError("after", "must be the number of a report, and the only parameter")
    recent = services().recent
    reports = recent.after(int(text), visible()) if isinstance(recent, RecentReports) else []
    return msgspec.to_builtins(RecentAnswer(reports))  # type: ignore[no-any-return]  # a dict
