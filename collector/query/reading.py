"""From the store to slices: tallies of a window, merged over shards, epochs, lateness and sources.

A slice holds every report of its group, in however many segments they came: what a query does not
group by is merged here.  What a window has lost because an operator deleted it is said, and never
answered as nothing.

Reading is what a store pays for questions: what waits to be sent counts as its memory, and a full
store takes no uploads.  So a question is priced before it reads, in counters of eight bytes.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
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
from ..core.errors import BusyError, DamagedTallyError, PrunedError, QueryError, TallyOverflowError
from ..estimation.tally import Sum, reports_of
from ..storage.protocols import TallyStore
from ..storage.values import Index
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
    begin = (plan.marks or {}).get(metric.digest, reading.epochs[0])
    epochs = reading.epochs[bisect_left(reading.epochs, begin) :]
    require_few_indexes(len(epochs), storage.shards)
    index = storage.index(metric.digest, epochs, reading.version)
    groups: dict[Cell, Group] = {}
    for cell in index.cells:
        values = values_of(cell.segment)
        if values is not None:
            groups[cell] = _group(plan, label(cell.epoch) if label else None, values)
    keys = set(groups.values()) or (set() if plan.dimensions else {()})
    width = metric.mechanism.tally_size + 1
    require_affordable(index.tallies, len(keys), width)
    totals = {group: _Total(metric) for group in keys}
    for cell, vector in storage.vectors(index, width):
        if cell in groups:
            totals[groups[cell]].take(cell, vector)
    return in_order(
        total.slice(dict(zip(plan.dimensions, group, strict=True)), reading)
        for group, total in totals.items()
    )


@contextmanager
def blaming(*metrics: Metric) -> Iterator[None]:
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

    def __init__(self, metric: Metric) -> None:
        self._metric, self._sum = metric, Sum(metric.mechanism.tally_size)
        self._waiting: list[bytes] = []
        self._room = _WAITING
        self._late = 0
        self._reports = Counter[int]()  # by epoch
        self._origins = Counter[Origin]()

    def take(self, cell: Cell, vector: bytes) -> None:
        """Add the *vector* of a cell."""
        self._waiting.append(vector)
        n = reports_of(vector)
        self._reports[cell.epoch] += n
        source, segment = split_source(cell.segment)
        if source:
            self._origins[Origin(source, cell.epoch, segment)] += n
        self._late += n if cell.lateness else 0
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
            raise QueryError(f"date_range: {rule}")
        epochs = tuple(sorted(self._reports))
        running = reading.is_open and reading.epochs[-1] in epochs
        tally, refusal = self._sum.tally, too_few(metric, n)
        return Slice(
            metric=metric,
            dimensions=dimensions,
            n=n,
            tally=tally,
            epochs=epochs,
            is_open=running,
            late=self._late,
            refusal=refusal,
            reports=self._reports,
            origins=self._origins,
        )

    def _add(self) -> None:
        try:
            self._sum.add(self._waiting)
        except TallyOverflowError:
            rule = "leaves more reports than can be added up; take fewer epochs"
            raise QueryError(f"date_range: {rule}") from None
        self._waiting, self._room = [], _WAITING


def without_pruned(plan: Plan, storage: TallyStore) -> Plan:
    """Return *plan* without the epochs of which nothing is kept, and with a note on what is gone.

    Raises: PrunedError: a whole window was deleted.  StorageUnavailableError.
    """
    marks = marks_of(plan, storage)
    readings = tuple(_unpruned(reading, marks) for reading in plan.readings)
    notes = (note for reading in plan.readings for note in _notes(reading, marks))
    return replace(plan, readings=readings, marks=marks, notes=(*plan.notes, *notes))


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
        raise PrunedError(f"date_range: {rule}; take later days")
    return replace(reading, epochs=epochs)


def _notes(reading: Reading, marks: Mapping[bytes, int]) -> Iterator[str]:
    """Yield a sentence on each stretch of the window that is pruned."""
    gone = {
        bisect_left(reading.epochs, marks.get(definition.digest, 0))
        for definition in reading.definitions
    }
    name, every = reading.metric.address, reading.metric.every
    for count in sorted(gone - {0}):
        last = epoch_label(every, reading.epochs[count - 1])
        whose = "" if len(gone) == 1 else " under one of its definitions"
        what = f"what was reported up to {last}{whose} was deleted by an operator (pruned)"
        yield f"{name}: {what}, {count} of {len(reading.epochs)} epochs of the window"


MOST_READ: Final = 64_000_000  # counters that one question reads: 512 MB in all, a page at a time
MOST_HELD: Final = 4_500_000  # counters of all groups of one question; each takes some 90 bytes
MOST_INDEXES: Final = 300_000  # index sets that one question reads, about a second of a store
LARGE: Final = 1_000_000  # counters from which a question is a large one: 8 MB
AT_ONCE: Final = 2  # large questions that a process answers at once
QUEUE: Final = 4  # that wait for these
_PATIENCE: Final = 10.0  # seconds that one waits


def require_affordable(tallies: int, groups: int, width: int) -> None:
    """Raise QueryError if so many tallies of *width* counters are too much for one question."""
    if tallies * width > MOST_READ:
        rule = f"would read {tallies * width} counters, must be at most {MOST_READ}"
        raise QueryError(f"date_range: {rule}; take a shorter window")
    if groups * width > MOST_HELD:
        rule = f"would give {groups} groups of {width} counters, must be {MOST_HELD // width}"
        raise QueryError(f"dimensions: {rule} at most; take fewer, or a longer stretch of time")


def require_few_indexes(epochs: int, shards: int) -> None:
    """Raise QueryError if so many epochs on so many shards are too many to look at."""
    if epochs * shards > MOST_INDEXES:
        rule = f"leaves {epochs} epochs, must be at most {MOST_INDEXES // shards} in this store"
        raise QueryError(f"date_range: {rule}; take a shorter window")


class _Question(ExitStack):
    """What is given back at the end of a question."""

    has_place = False


_question: Final[ContextVar[_Question | None]] = ContextVar("question", default=None)


@contextmanager
def one_question() -> Iterator[None]:
    """Keep a place that is taken within for as long: an answer costs more than its reading."""
    with _Question() as held:
        token = _question.set(held)
        try:
            yield
        finally:
            _question.reset(token)


class Gate:
    """Tallies of which a few large questions at once may be read; some others wait a little."""

    def __init__(self, storage: TallyStore) -> None:
        """Read from *storage*."""
        self._storage = storage
        self._free = threading.Condition()
        self.reading, self.waiting = 0, 0  # large questions

    @property
    def shards(self) -> int:
        """Number of shards."""
        return self._storage.shards

    def pruned(self, metrics: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return what the store does."""
        return self._storage.pruned(metrics)

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        """Return what the store does."""
        return self._storage.index(metric, epochs, latest)

    def vectors(self, index: Index, width: int) -> Generator[tuple[Cell, bytes], None, None]:
        """Yield what the store does, of a large index once there is a place.

        Raises: BusyError: too many others wait for one, or it took too long.
        """
        if index.tallies * width < LARGE:
            yield from self._storage.vectors(index, width)
            return
        with _Question() as alone:
            question = _question.get() or alone
            if not question.has_place:
                self._take_place()
                question.callback(self._give_back)
                question.has_place = True
            yield from self._storage.vectors(index, width)

    def _give_back(self) -> None:
        with self._free:
            self.reading -= 1
            self._free.notify()

    def _take_place(self) -> None:
        with self._free:
            if self.reading >= AT_ONCE and self.waiting >= QUEUE:
                raise BusyError("questions: too many large ones wait; ask again later, or for less")
            self.waiting += 1
            try:
                if not self._free.wait_for(lambda: self.reading < AT_ONCE, _PATIENCE):
                    raise BusyError("questions: large ones are being answered; ask again later")
                self.reading += 1
            finally:
                self.waiting -= 1
