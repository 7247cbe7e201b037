"""What several questions of one page read and add up, done once for all of them.

Nothing here outlives the page, so it answers what the store answers: a page is of one moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from client_sdk.registry.metric import Metric

from ..analytics.poisoning.findings import suspicions
from ..analytics.verb import Slice
from ..core.cells import Cell
from ..estimation.tally import merge_cells
from ..storage.protocols import TallyStore
from ..storage.values import Index
from .plan import Plan, Reading
from .reading import slices_of

MOST_KEPT: Final = 1_000_000  # counters of one reading, added up over shards: 8 MB


class Once:
    """The tallies of a store, each read once, but for those that are too many to be kept."""

    def __init__(self, storage: TallyStore) -> None:
        """Read from *storage*."""
        self._storage, self.shards = storage, storage.shards
        self._indexes: dict[tuple[bytes, Iterable[int], int | None], Index] = {}
        self._vectors: dict[int, Sequence[tuple[Cell, bytes]]] = {}  # by the identity of an index
        self._slices: dict[tuple[Any, ...], list[Slice]] = {}
        self._suspicions: dict[int, tuple[str, ...]] = {}  # by the identity of such slices

    def pruned(self, metrics: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return what the store does, each time: an epoch may be pruned at any moment."""
        return self._storage.pruned(metrics)

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        """Return what the store does."""
        place = metric, epochs, latest
        if place not in self._indexes:
            self._indexes[place] = self._storage.index(metric, epochs, latest)
        return self._indexes[place]

    def vectors(self, index: Index, width: int) -> Iterable[tuple[Cell, bytes]]:
        """Yield what the store does; of what is kept the shards of a cell are added up."""
        if len(index.cells) * width > MOST_KEPT:
            return self._storage.vectors(index, width)
        if id(index) not in self._vectors:
            self._vectors[id(index)] = merge_cells(self._storage.vectors(index, width), width - 1)
        return self._vectors[id(index)]

    def slices(self, plan: Plan, reading: Reading, metric: Metric) -> list[Slice]:
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
        )
        if place not in self._slices:
            self._slices[place] = slices_of(plan, reading, metric, self)
        return self._slices[place]

    def suspicions(self, slices: list[Slice]) -> tuple[str, ...]:
        """Return what ``suspicions`` does of what ``slices`` returned."""
        if id(slices) not in self._suspicions:
            self._suspicions[id(slices)] = tuple(suspicions(slices))
        return self._suspicions[id(slices)]
