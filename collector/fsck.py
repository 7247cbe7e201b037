"""Compare what the store holds with what it has counted: every upload, report and tally.

Law: *accepted = folded + pending + set aside + dropped*, in uploads and in reports, where folded is
what the tallies hold, and the rest what the streams hold.  Nothing is changed.  A store in use may
be checked: what moves meanwhile is allowed for, so a fault of fewer reports is found at rest only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from client_sdk.metric import Metric

from .entry import decode
from .errors import CorruptEntryError
from .storage.protocols import Inspection
from .storage.values import Counters, Kept, Stored
from .tally import fault_of, reports_of


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
    tallied = [0] * len(before)
    yield from _tallies(inspection.tallies(), metrics, tallied)
    after = inspection.counters()
    for shard, (pending, aside) in enumerate(walked):
        then, now = before[shard], after[shard]
        counted = (
            ("pending", then.pending.reports, pending.reports),
            ("set aside", then.quarantined.reports, aside.reports),
            ("folded", then.folded.reports, tallied[shard]),
        )
        for state, expected, found in counted:
            if abs(found - expected) > _moved(then, now):
                fault = f"holds {found} reports {state}, has counted {expected}"
                yield Finding(f"shard={shard}", fault)


def _uploads(shards: Iterable[Counters]) -> Iterator[Finding]:
    for shard, one in enumerate(shards):
        if one.stream != one.pending.uploads:
            fault = f"holds {one.stream} uploads pending, has counted {one.pending.uploads}"
            yield Finding(f"shard={shard}", fault)
        if one.aside != one.quarantined.uploads:
            fault = f"holds {one.aside} uploads set aside, has counted {one.quarantined.uploads}"
            yield Finding(f"shard={shard}", fault)


def _moved(then: Counters, now: Counters) -> int:
    """Return how many reports can have changed their state between two moments."""
    pairs = (
        (then.accepted, now.accepted),
        (then.folded, now.folded),
        (then.quarantined, now.quarantined),
        (then.dropped, now.dropped),
    )
    return sum(abs(late.reports - early.reports) for early, late in pairs)


class _Walk:
    """The entries of one stream: how many reports they say they hold, and which say it wrongly."""

    def __init__(self, entries: Iterator[Stored], metrics: Mapping[bytes, Metric]) -> None:
        self._entries, self._metrics = entries, metrics
        self.reports = 0

    def findings(self, readable: bool = True) -> Iterator[Finding]:
        """Yield the faults of the entries, which must be *readable*, and count their reports."""
        for one in self._entries:
            self.reports += one.reports
            place = f"shard={one.shard} entry={one.id}"
            try:
                held = self._held(one)
            except CorruptEntryError as error:
                if readable:
                    yield Finding(place, str(error))
                continue
            if held is not None and held != one.reports:
                yield Finding(place, f"holds {held} reports, says {one.reports}")

    def _held(self, one: Stored) -> int | None:
        """Return the number of reports in an entry, or None if a metric of it is not known."""
        total = 0
        for column in decode(one.entry):
            metric = self._metrics.get(column.cell.metric)
            if metric is None:
                return None
            total += len(column.payloads) // metric.mechanism.payload_size
        return total


def _tallies(
    kept: Iterable[Kept], metrics: Mapping[bytes, Metric], tallied: list[int]
) -> Iterator[Finding]:
    """Yield the faults of tallies, and add their reports to *tallied*, by shard."""
    seen: set[tuple[int, str]] = set()
    for one in kept:
        place = _place(one, metrics)
        if (one.shard, place) in seen:  # a scan may show a key twice
            continue
        seen.add((one.shard, place))
        if one.vector is None:
            yield Finding(place, "is indexed, but its tally is not there or not readable")
            continue
        if one.shard < len(tallied):
            tallied[one.shard] += reports_of(one.vector)
        if not one.indexed:
            yield Finding(place, "is not indexed, so that no query reads it")
        metric = metrics.get(one.cell.metric)
        fault = fault_of(metric.mechanism, one.vector) if metric else ""
        if fault:
            yield Finding(place, fault)


def _place(one: Kept, metrics: Mapping[bytes, Metric]) -> str:
    cell = one.cell
    metric = metrics.get(cell.metric)
    name = metric.name if metric else cell.metric.hex()
    where = f"metric={name} epoch={cell.epoch} segment={cell.segment!r} lateness={cell.lateness}"
    return f"shard={one.shard} {where}"
