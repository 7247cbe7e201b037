"""Decide which reports of an upload to accept.  Pure: no clock, no store, no Flask.

The same bytes get the same answer on every day on which they are accepted at all: epochs are judged
against the day of sealing, and only that day against the clock.  So a retry is never judged anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from client_sdk.core.epoch import DAY, ONCE, day_of_date, epoch_of
from client_sdk.core.limits import MAX_CLOCK_SKEW, MAX_REPORT_AGE
from client_sdk.registry.metric import Metric
from client_sdk.wire.reports import Column

from ..core.catalog import Catalog
from ..core.cells import RELAYED, UNKNOWN, Cell, Source, is_declared, segment_text
from ..core.entry import AcceptedColumn, Row, frame, row_of
from ..core.errors import ExpiredUploadError, FutureUploadError, MalformedUploadError
from ..estimation.tally import check_column
from .wire import Upload

UNKNOWN_METRIC = "unknown_metric"
_UNKNOWN_SEGMENT = "unknown_segment"
_METRIC_EXPIRED = "metric_expired"
_EPOCH_TOO_OLD = "epoch_too_old"
_EPOCH_IN_FUTURE = "epoch_in_future"
PAYLOAD_SIZE = "payload_size"
_EMPTY_COLUMN = "empty_column"
_SEVERAL_REPORTS = "several_reports"

_Said: TypeAlias = tuple[tuple[str, str], ...]  # the segment of an upload
_DAYS_KEPT: Final = 256  # days of sealing, of all catalogs: a key's share of the metrics is one
_UNDECLARED: Final = ""  # in place of a value that no metric declares
_SEGMENTS_KEPT: Final = 16_384  # some 300 bytes each
_COLUMNS_KEPT: Final = 16_384  # some 400 bytes each


class Rejection(Struct, frozen=True, forbid_unknown_fields=True):
    """Why reports of a column were not accepted.  Final: they are not to be sent again."""

    column: int
    reason: str
    count: int


class Verdict(Struct, frozen=True):
    """What becomes of an upload: the columns to fold and the rejections to count."""

    accepted: tuple[AcceptedColumn, ...]
    entry: bytes  # the accepted columns as a stream entry
    reports: int  # how many reports the accepted columns hold
    rejected: tuple[Rejection, ...]
    steps: int = 0  # of the fold of the accepted columns: what they cost a worker


def judge(
    upload: Upload,
    catalog: Catalog,
    today: int,
    *,
    of_device: bool = False,
    source: Source = UNKNOWN,
) -> Verdict:
    """Return the verdict on *upload* at epoch day *today*.

    Args: of_device: it came under a write key, which is public.  The ledger of a device charges a
              metric and epoch once, so a column of several reports was made by no device.
          source: what is known of how it came.
    Raises: ExpiredUploadError: sealed so long ago that its id may be forgotten.
            FutureUploadError: sealed later than any honest clock says.
            MalformedUploadError: *of_device*, and two columns are of one metric and epoch.
    """
    if upload.sealed < today - MAX_REPORT_AGE:
        age_rule = f"must not be before day {today - MAX_REPORT_AGE}"
        raise ExpiredUploadError(f"sealed={upload.sealed}: {age_rule}")
    if upload.sealed > today + MAX_CLOCK_SKEW:
        age_rule = f"must not be after day {today + MAX_CLOCK_SKEW}"
        raise FutureUploadError(f"sealed={upload.sealed}: {age_rule}")
    if of_device and len({(c.metric, c.epoch) for c in upload.columns}) < len(upload.columns):
        raise MalformedUploadError("columns: must each be of another metric or epoch")
    if RELAYED in source and not _is_alone(upload, _rules(catalog, upload.sealed)):
        source -= {RELAYED}
    said = _said(upload.segment, _vocabularies(catalog))
    context = _context(catalog, upload.sealed, said, source, of_device)
    outcomes = [
        (_kept if len(column.payloads) == 1 else _judge_column)(context, column)
        for column in upload.columns
    ]
    accepted: list[AcceptedColumn] = []
    rows: list[Row] = []
    rejected: list[Rejection] = []
    reports = steps = 0
    for index, (reasons, column, row, counted, added) in enumerate(outcomes):
        if column is not None:
            accepted.append(column)
            rows.append(row)
            reports += counted
            steps += added
        if reasons:
            rejected += [Rejection(index, *reason) for reason in reasons.items()]
    return Verdict(tuple(accepted), frame(rows), reports, tuple(rejected), steps)


class _Dimensions:
    """What metrics of the same dimensions share, by one of them.  Equal only to itself."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric


class _Rule:
    """What holds on one day of sealing for the reports of one metric."""

    def __init__(self, metric: Metric, sealed: int, dimensions: _Dimensions) -> None:
        self.metric, self.sealed, self.dimensions = metric, sealed, dimensions
        self.size, self.reason = metric.mechanism.payload_size, metric.mechanism.reason
        self.steps = metric.mechanism.fold_steps
        self.first, self.last = _epochs(metric, sealed)  # both accepted; none if last is before


@lru_cache(maxsize=_DAYS_KEPT)
def _rules(catalog: Catalog, sealed: int) -> Mapping[bytes, _Rule]:
    """Return the rule of each digest.  Kept, because only few days of sealing are ever accepted."""
    shared: dict[str, _Dimensions] = {}
    return {
        digest: _Rule(metric, sealed, shared.setdefault(repr(metric.segments), _Dimensions(metric)))
        for digest, metric in catalog.by_digest.items()
    }


@lru_cache(maxsize=_DAYS_KEPT)
def _vocabularies(catalog: Catalog) -> Mapping[str, set[str]]:
    """Return the values of each dimension that some metric of *catalog* declares."""
    values: dict[str, set[str]] = {}
    for metric in catalog.by_digest.values():
        for dimension, vocabulary in metric.segments.items():
            values.setdefault(dimension, set()).update(vocabulary)
    return values


def _said(segment: Mapping[str, str], vocabularies: Mapping[str, set[str]]) -> _Said:
    """Return what *segment* says as far as the registry asks: what is kept by it stays small."""
    return tuple(
        sorted(
            [
                (name, value if value in vocabularies[name] else _UNDECLARED)
                for name, value in segment.items()
                if name in vocabularies
            ]
        )
    )


@lru_cache(maxsize=_SEGMENTS_KEPT)
def _segment(dimensions: _Dimensions, said: _Said, source: Source) -> str | None:
    """Return the text of the segment of a report; None if it has an undeclared value.

    Kept, because a fleet reports of the same few segments.
    """
    segment, metric = dict(said), dimensions.metric
    return segment_text(metric, segment, source) if is_declared(segment, metric) else None


def _cell(rule: _Rule, epoch: int, said: _Said, source: Source) -> Cell | None:
    """Return where reports of *epoch* are counted; None if they are not."""
    if not rule.first <= epoch <= rule.last:
        return None
    segment = _segment(rule.dimensions, said, source)
    return None if segment is None else Cell(rule.metric.digest, epoch, segment)


class _Context:
    """What the columns of an upload share.  Equal only to itself."""

    def __init__(
        self, catalog: Catalog, sealed: int, said: _Said, source: Source, of_device: bool
    ) -> None:
        self.rules, self.said = _rules(catalog, sealed), said
        self.source, self.of_device = source, of_device


class _Outcome(NamedTuple):
    """What becomes of a column."""

    rejected: Mapping[str, int]  # reports, by reason
    accepted: AcceptedColumn | None = None
    row: Row = (b"", 0, "", b"")
    reports: int = 0
    steps: int = 0


def _judge_column(context: _Context, column: Column) -> _Outcome:
    """Return what becomes of *column*."""
    rule = context.rules.get(column.metric)
    cell = None if rule is None else _cell(rule, column.epoch, context.said, context.source)
    if rule is None or cell is None:
        return _Outcome(_refuse(column, rule, context.said))
    payloads, rejected = _judge_payloads(column.payloads, rule, of_device=context.of_device)
    if not payloads:
        return _Outcome(rejected)
    accepted = AcceptedColumn(cell, payloads)
    reports = len(payloads) // rule.size
    return _Outcome(rejected, accepted, row_of(accepted), reports, reports * rule.steps)


_context = lru_cache(maxsize=_SEGMENTS_KEPT)(_Context)
_kept = lru_cache(maxsize=_COLUMNS_KEPT)(_judge_column)  # of one byte, which has few values


def _is_alone(upload: Upload, rules: Mapping[bytes, _Rule]) -> bool:
    """Return whether *upload* holds one report and nothing else.

    What comes with others, accepted or not, is linked to them, so a relay hides less of it.
    """
    if len(upload.columns) != 1:
        return False
    (column,) = upload.columns
    rule = rules.get(column.metric)
    return rule is not None and len(column.payloads) == rule.size


def _judge_payloads(
    payloads: bytes, rule: _Rule, *, of_device: bool
) -> tuple[bytes, Mapping[str, int]]:
    """Return the valid payloads of a column whose cell is known, and the counted rejections."""
    reason, count = _malformed(payloads, rule)
    if of_device and count > 1:
        reason = reason or _SEVERAL_REPORTS
    if reason:
        return b"", {reason: count}
    checked = check_column(rule.metric.mechanism, payloads)
    return checked.payloads, checked.rejected


def _refuse(column: Column, rule: _Rule | None, said: _Said) -> Mapping[str, int]:
    """Return why no report of *column* can be counted anywhere, and how many these are."""
    if rule is None:
        return {UNKNOWN_METRIC: 1}  # how many reports these are, only the sender knows
    reason, count = _malformed(column.payloads, rule)
    if not reason and not is_declared(dict(said), rule.metric):
        reason = _UNKNOWN_SEGMENT
    return {reason or _refuse_epoch(column.epoch, rule): count}


def _malformed(payloads: bytes, rule: _Rule) -> tuple[str, int]:
    """Return why *payloads* are no column, "" if they are one, and their number."""
    count, rest = divmod(len(payloads), rule.size)
    if rest:
        return PAYLOAD_SIZE, count + 1
    return ("", count) if count else (_EMPTY_COLUMN, 1)


def _epochs(metric: Metric, sealed: int) -> tuple[int, int]:
    """Return the first and last epoch of *metric* that an upload sealed that day may report."""
    if metric.every == ONCE:
        return 0, (-1 if _has_ended(metric, sealed) else 0)
    first = epoch_of(metric.every, (sealed - MAX_REPORT_AGE) * DAY)
    return first, min(_latest(metric, sealed), _final(metric))


def _refuse_epoch(epoch: int, rule: _Rule) -> str:
    """Return why *epoch*, which is outside of the rule's, is not accepted."""
    metric = rule.metric
    if metric.every == ONCE:
        return _METRIC_EXPIRED if _has_ended(metric, rule.sealed) else _EPOCH_IN_FUTURE
    if epoch > _latest(metric, rule.sealed):
        return _EPOCH_IN_FUTURE
    return _EPOCH_TOO_OLD if epoch < rule.first else _METRIC_EXPIRED


def _has_ended(metric: Metric, sealed: int) -> bool:
    return sealed > day_of_date(metric.expires) + MAX_REPORT_AGE


def _latest(metric: Metric, sealed: int) -> int:
    return epoch_of(metric.every, (sealed + 1 + MAX_CLOCK_SKEW) * DAY - 1)


def _final(metric: Metric) -> int:
    return epoch_of(metric.every, (day_of_date(metric.expires) + 1) * DAY - 1)
