"""Compare what the store holds with what it has counted: every upload, report and tally.

Law: *accepted = folded + pending + set aside + dropped*, in uploads and in reports, where folded is
what the tallies hold, what was pruned and what is known to be lost, and the rest what the streams
hold.  A store in use may be checked: what moves meanwhile is allowed for, so a fault of fewer
reports is found at rest only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from client_sdk.registry.metric import Metric

from ..core.cells import Cell
from ..core.entry import decode
from ..core.errors import CorruptEntryError, RequestError
from ..estimation.tally import fault_of, reports_of
from ..storage.protocols import Inspection
from ..storage.values import Counters, ShardTally, StreamEntry

_DIGEST_SHOWN: Final = 8  # hex digits; two definitions of one metric share its name


@dataclass(frozen=True)
class Finding:
    """Something in the store that its own steps cannot have left behind."""

    place: str
    fault: str

    def __str__(self) -> str:
        """Read ``place: fault``."""
        return f"{self.place}: {self.fault}"


def fsck(inspection: Inspection, metrics: Mapping[bytes, Metric]) -> Iterator[Finding]:
    """Yield what is wrong with the store, shard by shard and then tally by tally.

    Args:   metrics: by digest; tallies of others are counted, but not judged.
    Raises: StorageUnavailableError.
    """
    before = inspection.counters()
    yield from _uploads(before)
    walked = [
        (_Walk(inspection.pending(shard), metrics), _Walk(inspection.set_aside(shard), metrics))
        for shard in range(len(before))
    ]
    for pending, aside in walked:
        yield from pending.findings()
        yield from aside.findings(readable=False)
    for ids in inspection.lost_ids():
        what = f"{ids.lost} of {ids.buckets} buckets of upload ids are gone"
        step = "what would be looked for there is answered 503 until the day is forgotten"
        yield Finding(f"shard={ids.shard} day={ids.day}", f"{what}; {step}")
    tallied = [0] * len(before)
    gone: dict[int, list[Cell]] = {}
    yield from _tallies(inspection.tallies(), metrics, inspection.marks(), tallied, gone)
    after = inspection.counters()
    for shard, (pending, aside) in enumerate(walked):
        then, now = before[shard], after[shard]
        if shard in gone:
            lacking = max(then.held_reports - tallied[shard], 0)
            tallied[shard] += lacking
            yield _gone(shard, gone[shard], lacking, metrics)
        counted = (
            ("pending", then.pending.reports, pending.reports),
            ("set aside", then.quarantined.reports, aside.reports),
            ("folded", then.held_reports, tallied[shard]),
        )
        for state, expected, actual in counted:
            if abs(actual - expected) > _moved(then, now):
                fault = f"holds {actual} reports {state}, has counted {expected}"
                yield Finding(f"shard={shard}", fault)


def accept_missing(inspection: Inspection) -> list[int]:
    """Count what the tallies lack as lost, and forget those that are gone; return it by shard.

    Raises: RequestError: something was folded meanwhile; what was accepted before stays so.
            StorageUnavailableError.
    """
    before = inspection.counters()
    tallied, gone = [0] * len(before), dict[int, list[Cell]]()
    for _ in _tallies(inspection.tallies(), {}, {}, tallied, gone):
        pass
    lost = []
    for shard, then in enumerate(before):
        lacking = then.held_reports - tallied[shard]
        missing = gone.get(shard, [])
        lost.append(max(lacking, 0))
        if (lacking > 0 or missing) and not inspection.lose(shard, then, missing, lost[-1]):
            rule = "must be at rest: stop the workers, and try again"
            raise RequestError(f"shard={shard}: {rule}")
    return lost


def _gone(
    shard: int, cells: Sequence[Cell], reports: int, metrics: Mapping[bytes, Metric]
) -> Finding:
    """Return the finding of the tallies of a shard that are indexed and not there."""
    place = f"shard={shard} {_name(cells[0], metrics)}"
    others = f" ({len(cells) - 1} others of this shard, too)" if len(cells) > 1 else ""
    what = f"its tally is gone{others}, and {reports} reports with it"
    step = "if it was deleted on purpose, hearsay fsck --accept-missing counts them as lost"
    return Finding(place, f"{what}; {step}")


def _uploads(shards: Iterable[Counters]) -> Iterator[Finding]:
    for place, shard in enumerate(shards):
        for state, held, count in (
            ("pending", shard.stream, shard.pending),
            ("set aside", shard.aside, shard.quarantined),
        ):
            if held != count.uploads:
                fault = f"holds {held} uploads {state}, has counted {count.uploads}"
                yield Finding(f"shard={place}", fault)


def _moved(then: Counters, now: Counters) -> int:
    """Return how many reports can have changed their state between two moments."""

    def reports(at: Counters) -> tuple[int, ...]:
        states = at.accepted, at.folded, at.quarantined, at.dropped
        return *(count.reports for count in states), at.held_reports - at.folded.reports

    return sum(abs(late - early) for early, late in zip(reports(then), reports(now), strict=True))


class _Walk:
    """The entries of one stream: how many reports they say they hold, and which say it wrongly."""

    def __init__(self, entries: Iterator[StreamEntry], metrics: Mapping[bytes, Metric]) -> None:
        self._entries, self._metrics = entries, metrics
        self.reports = 0

    def findings(self, readable: bool = True) -> Iterator[Finding]:
        """Yield the faults of the entries, which must be *readable*, and count their reports."""
        for entry in self._entries:
            self.reports += entry.reports
            place = f"shard={entry.shard} entry={entry.id}"
            try:
                held = self._held(entry)
            except CorruptEntryError as error:
                if readable:
                    yield Finding(place, str(error))
                continue
            if held is not None and held != entry.reports:
                yield Finding(place, f"holds {held} reports, says {entry.reports}")

    def _held(self, entry: StreamEntry) -> int | None:
        """Return the number of reports in an entry, or None if a metric of it is not known."""
        total = 0
        for column in decode(entry.entry):
            metric = self._metrics.get(column.cell.metric)
            if metric is None:
                return None
            total += len(column.payloads) // metric.mechanism.payload_size
        return total


def _tallies(
    stored: Iterable[ShardTally],
    metrics: Mapping[bytes, Metric],
    marks: Mapping[bytes, int],
    tallied: list[int],
    gone: dict[int, list[Cell]],
) -> Iterator[Finding]:
    """Yield the faults of tallies; add their reports to *tallied*, and missing ones to *gone*."""
    seen: set[tuple[int, Cell]] = set()
    for tally in stored:
        if (tally.shard, tally.cell) in seen:  # a scan may show a key twice
            continue
        seen.add((tally.shard, tally.cell))
        place = f"shard={tally.shard} {_name(tally.cell, metrics)}"
        if tally.gone:
            gone.setdefault(tally.shard, []).append(tally.cell)
            continue
        if tally.vector is None:
            yield Finding(place, "is indexed, but its tally is not readable")
            continue
        if tally.shard < len(tallied):
            tallied[tally.shard] += reports_of(tally.vector)
        if tally.cell.epoch < marks.get(tally.cell.metric, tally.cell.epoch):
            fault = "is marked as pruned, but its tally is still there; run hearsay prune again"
            yield Finding(place, fault)
        if not tally.indexed:
            yield Finding(place, "is not indexed, so that no query reads it")
        metric = metrics.get(tally.cell.metric)
        fault = fault_of(metric.mechanism, tally.vector) if metric else ""
        if fault:
            yield Finding(place, fault)


def _name(cell: Cell, metrics: Mapping[bytes, Metric]) -> str:
    metric = metrics.get(cell.metric)
    digest = cell.metric.hex()
    name = f"{metric.address}@{digest[:_DIGEST_SHOWN]}" if metric else digest
    return f"metric={name} epoch={cell.epoch} segment={cell.segment!r} lateness={cell.lateness}"
