"""Decide which reports of an upload to accept.  Pure: no clock, no store, no Flask.

The same bytes get the same answer on every day on which they are accepted at all: epochs are judged
against the day of sealing, and only that day against the clock.  So a retry is never judged anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from client_sdk.epoch import DAY, ONCE, day_of_date, epoch_of
from client_sdk.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE
from client_sdk.metric import Metric
from client_sdk.report import Column

from .catalog import Catalog
from .entry import Accepted
from .errors import ExpiredUploadError, FutureUploadError
from .segments import is_declared, segment_text
from .storage import Cell
from .tally import check_column
from .wire import Upload

UNKNOWN_METRIC = "unknown_metric"
UNKNOWN_SEGMENT = "unknown_segment"
METRIC_EXPIRED = "metric_expired"
EPOCH_TOO_OLD = "epoch_too_old"
EPOCH_IN_FUTURE = "epoch_in_future"
PAYLOAD_SIZE = "payload_size"
EMPTY_COLUMN = "empty_column"


@dataclass(frozen=True)
class Rejection:
    """Why *count* reports of a column were not accepted.  Final: they are not to be sent again."""

    column: int
    reason: str
    count: int


@dataclass(frozen=True)
class Verdict:
    """What becomes of an upload: the columns to fold and the rejections to count."""

    accepted: tuple[Accepted, ...]
    reports: int  # how many reports the accepted columns hold
    rejected: tuple[Rejection, ...]


def judge(upload: Upload, catalog: Catalog, today: int) -> Verdict:
    """Return the verdict on *upload* at epoch day *today*.

    Raises: ExpiredUploadError: sealed so long ago that its id may be forgotten.
            FutureUploadError: sealed later than any honest clock says.
    """
    if upload.sealed < today - MAX_REPORT_AGE:
        rule = f"must not be before day {today - MAX_REPORT_AGE}"
        raise ExpiredUploadError(f"sealed={upload.sealed}: {rule}")
    if upload.sealed > today + MAX_CLOCK_SKEW:
        rule = f"must not be after day {today + MAX_CLOCK_SKEW}"
        raise FutureUploadError(f"sealed={upload.sealed}: {rule}")
    accepted: list[Accepted] = []
    rejected: list[Rejection] = []
    reports = 0
    for index, column in enumerate(upload.columns):
        payloads, size, counts = _judge_column(column, upload, catalog)
        if payloads:
            metric = catalog.by_digest[column.metric]
            cell = Cell(column.metric, column.epoch, segment_text(metric, upload.segment))
            accepted.append(Accepted(cell, payloads))
            reports += len(payloads) // size
        rejected += [Rejection(index, reason, count) for reason, count in counts.items()]
    return Verdict(tuple(accepted), reports, tuple(rejected))


def _judge_column(
    column: Column, upload: Upload, catalog: Catalog
) -> tuple[bytes, int, Mapping[str, int]]:
    """Return the valid payloads, the bytes of one, and the counted rejections."""
    metric = catalog.by_digest.get(column.metric)
    if metric is None:
        return b"", 1, {UNKNOWN_METRIC: 1}  # how many reports these are, only the sender knows
    size = metric.mechanism.payload_size
    count, rest = divmod(len(column.payloads), size)
    if rest:
        return b"", size, {PAYLOAD_SIZE: count + 1}
    if not count:
        return b"", size, {EMPTY_COLUMN: 1}
    reason = _refuse_column(column, metric, upload)
    if reason:
        return b"", size, {reason: count}
    checked = check_column(metric.mechanism, column.payloads)
    return checked.payloads, size, checked.rejected


def _refuse_column(column: Column, metric: Metric, upload: Upload) -> str | None:
    if not is_declared(upload.segment, metric):
        return UNKNOWN_SEGMENT
    return _refuse_epoch(column.epoch, metric, upload.sealed)


def _refuse_epoch(epoch: int, metric: Metric, sealed: int) -> str | None:
    if metric.every == ONCE:
        expired = sealed > day_of_date(metric.expires) + MAX_REPORT_AGE
        return METRIC_EXPIRED if expired else None if epoch == 0 else EPOCH_IN_FUTURE
    latest = epoch_of(metric.every, (sealed + 1 + MAX_CLOCK_SKEW) * DAY - 1)
    earliest = epoch_of(metric.every, (sealed - MAX_REPORT_AGE) * DAY)
    if epoch > latest:
        return EPOCH_IN_FUTURE
    if epoch < earliest:
        return EPOCH_TOO_OLD
    if epoch > epoch_of(metric.every, (day_of_date(metric.expires) + 1) * DAY - 1):
        return METRIC_EXPIRED
    return None
