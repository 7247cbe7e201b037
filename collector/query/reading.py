"""From the store to slices: tallies of a window, merged over shards, epochs, lateness and sources.

A slice holds every report of its group, in however many segments they came: what a query does not
group by is merged here.  What a window has lost because an operator deleted it is said, and never
answered as nothing.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import Final, TypeAlias

from client_sdk.core.epoch import ONCE, epoch_label
from client_sdk.core.errors import InvalidTallyError
from client_sdk.mechanisms import MAX_REPORTS
from client_sdk.registry.metric import Metric

from ..analytics.rows import TIME
from ..analytics.suppression import too_few
from ..analytics.verb import NOT_SAID, Origin, Slice, in_order
from ..core.cells import Cell, split_source
from ..core.errors import (
    DamagedTallyError,
    PrunedError,
    QueryError,
    TallyOverflowError,
)
from ..core.exclusions import read_all
from ..core.remarks import Code, Remark, remark
from ..estimation.tally import Sum, reports_of
from ..storage.protocols import TallyStore
from ..storage.values import Index
from .exclusions import Excluded, ExclusionFilter, KeyFilter, overlapping
from .gate import require_affordable, require_few_indexes
from .plan import Plan, Reading

Group: TypeAlias = tuple[str, ...]
_WAITING: Final = 512 * 1024  # bytes of vectors of a group that are added at once


def slices_of(plan: Plan, reading: Reading, metric: Metric, storage: TallyStore) -> list[Slice]:
    """Return the slices of one definition of a metric, in the order of time and vocabulary.

    Without groups there is always one slice, be it of no reports.  One with too few reports is
    refused.

    Raises: StorageUnavailableError.  InvalidTallyError: a stored tally cannot have been folded.
            QueryError: more reports than can be added up.
    """
    label = cache(reading.label) if reading.label else None
    values_of = cache(partial(_values, plan))
    index = index_of(plan, reading, metric, storage)
    groups: dict[Cell, Group] = {}
    for cell in index.cells:
        values = values_of(cell.segment)
        if values is not None:
            groups[cell] = _group(plan, label(cell.epoch) if label else None, values)
    keys = set(groups.values()) or (set() if plan.dimensions else {()})
    width = metric.mechanism.tally_size + 1
    require_affordable(index.tallies, len(keys), width)
    totals = {group: _Total(metric, may_lack=bool(plan.keys)) for group in keys}
    sieve: ExclusionFilter | KeyFilter = ExclusionFilter(plan.excluded.applied, metric, index.cells)
    if plan.keys:
        sieve = KeyFilter(plan.excluded.applied, metric, index.cells, plan.keys)
    for cell, vector in storage.vectors(index, width):
        if sieve.passes(cell, vector, cell in groups):
            totals[groups[cell]].take(cell, vector)
    for cell, vector in sieve.rest():
        totals[groups[cell]].take(cell, vector)
    for cell, n, is_along in sieve.left_out:
        totals[groups[cell]].excluded += n
        totals[groups[cell]].merged_key_reports += n if is_along else 0
    return in_order(_slices(plan, reading, totals))


def index_of(plan: Plan, reading: Reading, metric: Metric, storage: TallyStore) -> Index:
    """Return which tallies one definition of a metric has in the window, but for what is pruned.

    Raises: as ``slices_of``.
    """
    begin = (plan.marks or {}).get(metric.digest, reading.epochs[0])
    epochs = reading.epochs[bisect_left(reading.epochs, begin) :]
    require_few_indexes(len(epochs), storage.shards)
    return storage.index(metric.digest, epochs, reading.version)


def _slices(plan: Plan, reading: Reading, totals: Mapping[Group, _Total]) -> list[Slice]:
    """Return the slices of *totals*; a group of which all is left out is as if it never was."""
    kept = {group: total for group, total in totals.items() if total.is_there} or totals
    if plan.dimensions and not any(total.is_there for total in kept.values()):
        kept = {}
    slices = [
        total.slice(dict(zip(plan.dimensions, group, strict=True)), reading)
        for group, total in kept.items()
    ]
    gone = [total for group, total in totals.items() if group not in kept]
    if slices and gone:
        excluded = slices[0].excluded + sum(total.excluded for total in gone)
        merged = slices[0].merged_key_reports + sum(total.merged_key_reports for total in gone)
        slices[0] = replace(slices[0], excluded=excluded, merged_key_reports=merged)
    return slices


@contextmanager
def naming(*metrics: Metric) -> Iterator[None]:
    """Turn what is wrong with a stored tally into an error that names the metric."""
    try:
        yield
    except (InvalidTallyError, ArithmeticError) as error:
        names = ", ".join(metric.address for metric in metrics)
        rule = "has a tally that no reports can give; run hearsay fsck"
        raise DamagedTallyError(f"metric={names}: {rule}") from error


def _values(plan: Plan, segment: str) -> Mapping[str, str | None] | None:
    """Return what the text of a segment says of each dimension; None if it is filtered out."""
    values: Mapping[str, str | None] = json.loads(segment) if segment else {}
    source, _ = split_source(segment)
    is_taken = all(values.get(name) in taken for name, taken in plan.filters.items())
    return values if is_taken and plan.takes(source) else None


def _group(plan: Plan, stretch: str | None, values: Mapping[str, str | None]) -> Group:
    return tuple(
        stretch if name == TIME and stretch is not None else values.get(name) or NOT_SAID
        for name in plan.dimensions
    )


class _Total:
    """The tallies of one group, added up a few at a time."""

    def __init__(self, metric: Metric, *, may_lack: bool) -> None:
        self._may_lack = may_lack  # reports, as the question is about some keys alone
        self._metric, self._sum = metric, Sum(metric.mechanism.tally_size)
        self._waiting: list[bytes] = []
        self._room = _WAITING
        self._reports = Counter[Cell]()
        self.excluded = self.merged_key_reports = 0  # reports that exclusions have taken out

    @property
    def is_there(self) -> bool:
        """Whether something was added, or at least nothing taken out."""
        return bool(self._reports) or not (self.excluded or self._may_lack)

    def take(self, cell: Cell, vector: bytes) -> None:
        """Add the *vector* of a cell."""
        self._waiting.append(vector)
        self._reports[cell] += reports_of(vector)
        self._room -= len(vector)
        if self._room <= 0:
            self._add()

    def slice(self, dimensions: Mapping[str, str], reading: Reading) -> Slice:
        """Return the sum.  Raises InvalidTallyError, QueryError."""
        self._add()
        metric, n = self._metric, self._sum.n
        if n < 0:
            raise InvalidTallyError(f"metric={metric.address}: n={n}: must not be negative")
        if n > MAX_REPORTS:
            rule = f"leaves {n} reports, must be at most {MAX_REPORTS}; take fewer epochs"
            raise QueryError("date_range", rule)
        reports, origins = self._counted()
        epochs = tuple(sorted(reports))
        begun = None if reading.metric.every == ONCE else reading.running
        running = begun is not None and bool(epochs) and epochs[-1] >= begun
        tally, refusal = self._sum.tally, too_few(metric, n)
        return Slice(
            metric=metric,
            dimensions=dimensions,
            n=n,
            tally=tally,
            epochs=epochs,
            is_open=running,
            late=sum(count for cell, count in self._reports.items() if cell.lateness),
            refusal=refusal,
            reports=reports,
            origins=origins,
            excluded=self.excluded,
            merged_key_reports=self.merged_key_reports,
            labels=self._labels(),
        )

    def _labels(self) -> frozenset[str]:
        """Return what the reports say that they are about, where their values make them say it."""
        names = self._metric.domain.segment
        if not names:
            return frozenset()
        said = (json.loads(cell.segment or "{}") for cell, n in self._reports.items() if n)
        return frozenset(each.get(name) or NOT_SAID for each in said for name in names)

    def _counted(self) -> tuple[Counter[int], Counter[Origin]]:
        """Return the reports by epoch, and those of which something is known by their origin."""
        reports, origins = Counter[int](), Counter[Origin]()
        for cell, n in self._reports.items():
            reports[cell.epoch] += n
            source, segment = split_source(cell.segment)
            if source:
                origins[Origin(source, cell.epoch, segment)] += n
        return reports, origins

    def _add(self) -> None:
        try:
            self._sum.add(self._waiting)
        except TallyOverflowError:
            rule = "leaves more reports than can be added up; take fewer epochs"
            raise QueryError("date_range", rule) from None
        self._waiting, self._room = [], _WAITING


def without_pruned(plan: Plan, storage: TallyStore) -> Plan:
    """Return *plan* without the epochs of which nothing is kept, and with a note on what is gone.

    And with what operators have taken out of answers, as far as it is met.

    Raises: PrunedError: a whole window was deleted.  StorageUnavailableError.
    """
    marks = marks_of(plan, storage)
    readings = tuple(_unpruned(reading, marks) for reading in plan.readings)
    notes = (note for reading in plan.readings for note in _notes(reading, marks))
    excluded = excluded_of(plan, readings, storage.exclusions())
    return replace(
        plan, readings=readings, marks=marks, notes=(*plan.notes, *notes), excluded=excluded
    )


def excluded_of(plan: Plan, readings: Iterable[Reading], records: Mapping[str, bytes]) -> Excluded:
    """Return which exclusions of *records* are met; a version that was asked for stays as it was.

    But for what is deleted, which no version has any more.
    """
    if not records:
        return Excluded()
    wanted = [(reading.metric, reading.epochs) for reading in readings]
    meeting = overlapping(read_all(records), wanted)
    later = tuple(each for each in meeting if plan.is_as_folded and not each.deleted)
    return Excluded(tuple(each for each in meeting if each not in later), later)


def marks_of(plan: Plan, storage: TallyStore) -> Mapping[bytes, int]:
    """Return of each definition that *plan* reads the epoch before which all is pruned, if any."""
    digests = {definition.digest for reading in plan.readings for definition in reading.definitions}
    return storage.pruned(sorted(digests))


def _unpruned(reading: Reading, marks: Mapping[bytes, int]) -> Reading:
    first = reading.epochs[0]
    begun = min(marks.get(definition.digest, first) for definition in reading.definitions)
    epochs = reading.epochs[bisect_left(reading.epochs, begun) :]
    if not epochs:
        metric, (_, last) = reading.metric, reading.window
        when = "" if metric.every == ONCE else f" up to {last}"
        rule = f"what was reported on {metric.address}{when} was deleted by an operator (pruned)"
        raise PrunedError("date_range", f"{rule}; take later days")
    return replace(reading, epochs=epochs)


def _notes(reading: Reading, marks: Mapping[bytes, int]) -> Iterator[Remark]:
    """Yield a remark on each stretch of the window that is pruned."""
    gone = {
        bisect_left(reading.epochs, marks.get(definition.digest, 0))
        for definition in reading.definitions
    }
    name, every = reading.metric.address, reading.metric.every
    for count in sorted(gone - {0}):
        last = epoch_label(every, reading.epochs[count - 1])
        whose = "" if len(gone) == 1 else " under one of its definitions"
        epochs = len(reading.epochs)
        yield remark(Code.PRUNED, name, last=last, whose=whose, count=count, epochs=epochs)
