"""What questions are answered from: the tallies of a store, read once for all of a page.

Each page reads the store anew, so it answers what the store answers: a page is of one moment.  What
outlives it are answers, kept by the plan and by every tally that they rest on, bit for bit.  So one
report more makes another answer, as does whatever else changes a tally; and who asks again while
nothing has changed waits for the store alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from typing import Any, Final, TypeVar

import msgspec

from client_sdk.core.dataclass import field_names
from client_sdk.registry.metric import Metric

from ..analytics.poisoning.findings import suspicions
from ..analytics.verb import Slice
from ..core.cells import Cell
from ..core.errors import StorageUnavailableError
from ..core.remarks import Remark
from ..estimation.tally import merge_cells
from ..storage.protocols import TallyStore
from ..storage.values import Index
from .cache import Cache, packed
from .gate import LARGE, Gate, require_affordable
from .plan import Plan, Reading
from .reading import (
    excluded_of,
    index_of,
    marks_of,
    naming,
    slices_of,
)

T = TypeVar("T", bound=msgspec.Struct)
MOST_KEPT: Final = 1_000_000  # counters of one reading, added up over shards: 8 MB
_IN_MEMORY: Final = (
    6  # bytes of objects that a byte of their encoding stands for; measured: 2 to 5.3
)
_IN_DIGEST: Final = frozenset({"domain", "mechanism", "policy", "otherwise"})
_FACTS: Final = tuple(name for name in field_names(Metric) if name not in _IN_DIGEST)
# What follows from the query, or is told otherwise.
_OF_QUERY: Final = frozenset({"verb", "options", "readings", "marks", "definitions", "label"})
_OF_PLAN, _OF_READING = (
    tuple(each.name for each in fields(part) if each.name not in _OF_QUERY)
    for part in (Plan, Reading)
)


class Reader:
    """The tallies of a store as one moment has them, for one question or for all of a page."""

    def __init__(
        self, storage: TallyStore, gate: Gate | None = None, answers: Cache[Any] | None = None
    ) -> None:
        """Read from *storage*.

        Args: gate: at which large questions wait for others; without one they do not.
              answers: of questions that are asked again.  With them, tallies are kept, too, but for
                those that are too many.
        """
        self._storage, self.shards = storage, storage.shards
        self._gate, self._needs_place, self._question = gate or Gate(), False, ExitStack()
        self._answers, self._most = answers, 0 if answers is None else MOST_KEPT
        self._marks: dict[bytes, int | None] = {}  # of pruning, as they were after what was read
        self._excluded: Mapping[str, bytes] | None = None
        self._excluded_now: Mapping[str, bytes] | None = None  # as the marks of pruning
        self._indexes: dict[tuple[bytes, Iterable[int], int | None], Index] = {}
        self._vectors: dict[int, Sequence[tuple[Cell, bytes]]] = {}  # by the identity of an index
        self._contents: dict[int, bytes] = {}  # of such vectors
        self._slices: dict[tuple[object, ...], Sequence[Slice]] = {}
        self._suspicions: dict[int, tuple[Remark, ...]] = {}  # by the identity of such slices

    def pruned(self, metrics: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return what the store does, which is asked again once more was read of it.

        What was read before stands as it was: an epoch is marked before anything of it goes.
        """
        if not self._marks.keys() >= set(metrics):
            marks, self._excluded_now = self._storage.pruned(metrics), None
            self._marks |= {metric: marks.get(metric) for metric in metrics}
        known = ((metric, self._marks[metric]) for metric in metrics)
        return {metric: mark for metric, mark in known if mark is not None}

    def exclusions(self) -> Mapping[str, bytes]:
        """Return what the store did at first: a page is of one moment."""
        if self._excluded is None:
            self._excluded = self._storage.exclusions()
        return self._excluded

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        """Return what the store does."""
        place = metric, epochs, latest
        if place not in self._indexes:
            self._marks.clear()
            self._indexes[place] = self._storage.index(metric, epochs, latest)
        return self._indexes[place]

    def vectors(self, index: Index, width: int) -> Iterable[tuple[Cell, bytes]]:
        """Yield what the store does; of what is kept the shards of a cell are added up."""
        if id(index) in self._vectors:
            return self._vectors[id(index)]
        self._marks.clear()
        self.hold(index.tallies * width)
        vectors = self._storage.vectors(index, width)
        if len(index.cells) * width > self._most:
            return vectors
        self._vectors[id(index)] = merge_cells(vectors, width - 1)
        return self._vectors[id(index)]

    @contextmanager
    def question(self) -> Iterator[None]:
        """Keep a place that is taken within for as long: an answer costs more than its reading."""
        with ExitStack() as self._question:
            self._needs_place = True
            try:
                yield
            finally:
                self._needs_place = False

    def hold(self, price: int) -> None:
        """Wait for a place for the question being answered, if its *price* is large.

        Args:   price: in counters.
        Raises: BusyError: too many others wait for one, or it took too long.
        """
        if price >= LARGE and self._needs_place:
            self._question.enter_context(self._gate.place())
            self._needs_place = False

    def answer(self, plan: Plan, variant: object, work: Callable[[], T]) -> T:
        """Return what *work* does, or did for the same plan and tallies.

        Args:   variant: what the answer depends on beside both.
        Raises: as ``slices_of`` and *work*.
        """
        if self._answers is None:
            return work()
        key = self._key(plan, variant)
        answer: T | None = self._answers.get(key)
        if answer is not None:
            self.require_unpruned(plan)
            return answer
        answer = work()
        if key is not None and (whole := packed(answer)) is not None:
            self._answers.put(key, answer, _IN_MEMORY * len(whole))
        return answer

    def _key(self, plan: Plan, variant: object) -> bytes | None:
        """Return what an answer is kept by, None where it rests on more than is kept.

        It is all that a plan has, and of a metric its digest and what is not in that; so what is
        added to one of them is heeded, or where it cannot be packed no answer is kept.
        """
        marks = sorted((plan.marks or {}).items())
        parts: list[object] = [variant, marks, [getattr(plan, name) for name in _OF_PLAN]]
        for reading in plan.readings:
            parts.append([getattr(reading, name) for name in _OF_READING])
            for metric in reading.definitions:
                with naming(reading.metric):
                    contents = self._contents_of(plan, reading, metric)
                if contents is None:
                    return None
                parts.append([metric.digest, [getattr(metric, name) for name in _FACTS], contents])
        whole = packed(parts)
        return None if whole is None else hashlib.sha256(whole).digest()

    def _contents_of(self, plan: Plan, reading: Reading, metric: Metric) -> bytes | None:
        """Return a digest of all that is stored of a definition in the window."""
        index, width = index_of(plan, reading, metric, self), metric.mechanism.tally_size + 1
        if len(index.cells) * width > self._most:
            return None
        if id(index) not in self._contents:
            require_affordable(index.tallies, 0, width)
            parts = list(self.vectors(index, width))
            names = packed((index.cells, [(cell, len(vector)) for cell, vector in parts]))
            if names is None:
                return None
            digest = hashlib.sha256(names)
            digest.update(b"".join([vector for _, vector in parts]))
            self._contents[id(index)] = digest.digest()
        return self._contents[id(index)]

    def slices(self, plan: Plan, reading: Reading, metric: Metric) -> Sequence[Slice]:
        """Return what ``slices_of`` does; questions of the same slices share them.

        What verbs and checks work out of a slice, they keep with it.
        """
        place = (
            metric.digest,
            reading.epochs,
            reading.version,
            (plan.marks or {}).get(metric.digest),
            tuple(plan.query.dimensions),  # with the stretch of time; "time" may be understood
            plan.dimensions,
            plan.query.against,
            frozenset(plan.filters.items()),
            plan.sources,
            plan.keys,
            plan.excluded,
        )
        if place not in self._slices:
            self._slices[place] = slices_of(plan, reading, metric, self)
        return self._slices[place]

    def suspicions(self, slices: Sequence[Slice]) -> tuple[Remark, ...]:
        """Return what ``suspicions`` does of what ``slices`` returned."""
        if id(slices) not in self._suspicions:
            self._suspicions[id(slices)] = tuple(suspicions(slices))
        return self._suspicions[id(slices)]

    def require_unpruned(self, plan: Plan) -> None:
        """Raise StorageUnavailableError if what *plan* reads was pruned while it was read.

        An epoch is marked, and what is deleted of a key recorded, before anything of it goes.
        """
        is_same = marks_of(plan, self) == plan.marks
        if self._excluded_now is None:
            self._excluded_now = self._storage.exclusions()
        now = excluded_of(plan, plan.readings, self._excluded_now)
        gone = {each for each in now.applied if each.deleted}
        if not (is_same and gone <= set(plan.excluded.applied)):
            raise StorageUnavailableError("store: is being pruned; ask again")
