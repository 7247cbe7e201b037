"""From the store to slices: tallies of a window, merged over shards, epochs and lateness.

Whatever was not asked to be told apart is merged here: a slice holds every report of its group, in
however many segments they came.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeAlias

from client_sdk.errors import InvalidTallyError
from client_sdk.mechanisms import MAX_REPORTS
from client_sdk.metric import Metric

from ..analytics.rows import TIME
from ..analytics.sizes import too_few
from ..analytics.slices import NOT_SAID, Slice, in_order
from ..errors import QueryError, TallyOverflowError
from ..storage.protocols import Storage
from ..storage.values import Cell
from ..tally import merge, reports_in
from .plan import Plan, Reading

Group: TypeAlias = tuple[str, ...]
Cells: TypeAlias = list[tuple[Cell, list[bytes]]]


def slices_of(plan: Plan, reading: Reading, metric: Metric, storage: Storage) -> list[Slice]:
    """Return the slices of one definition of a metric, in the order of time and vocabulary.

    Without groups there is always one slice, be it of no reports.  One with too few reports is
    refused.

    Raises: StorageUnavailableError.  InvalidTallyError: a stored tally cannot have been folded.
            QueryError: more reports than can be added up.
    """
    label = cache(reading.label) if reading.label else None
    values_of = cache(_values)
    kept = (plan.marks or {}).get(metric.digest, reading.epochs[0])
    epochs = reading.epochs[bisect_left(reading.epochs, kept) :]
    grouped: dict[Group, Cells] = defaultdict(list)
    found = storage.tallies(metric.digest, epochs, reading.version)
    for cell, vectors in found.items():
        values = values_of(cell.segment)
        if all(values.get(name) in taken for name, taken in plan.filters.items()):
            stretch = label(cell.epoch) if label else None
            grouped[_group(plan, stretch, values)].append((cell, vectors))
    if not plan.dimensions:
        grouped.setdefault((), [])
    return in_order(
        _slice(dict(zip(plan.dimensions, group, strict=True)), cells, metric, reading)
        for group, cells in grouped.items()
    )


def _values(segment: str) -> Mapping[str, str | None]:
    """Return what the canonical text of a segment says of each dimension."""
    values: Mapping[str, str | None] = json.loads(segment) if segment else {}
    return values


def _group(plan: Plan, stretch: str | None, values: Mapping[str, str | None]) -> Group:
    return tuple(
        stretch if name == TIME and stretch is not None else values.get(name) or NOT_SAID
        for name in plan.dimensions
    )


def _slice(
    dimensions: Mapping[str, str],
    cells: Sequence[tuple[Cell, list[bytes]]],
    metric: Metric,
    reading: Reading,
) -> Slice:
    vectors = [vector for _, shards in cells for vector in shards]
    late = [vector for cell, shards in cells if cell.lateness for vector in shards]
    size = metric.mechanism.tally_size
    try:
        n, tally = merge(vectors, size)
        late_n = reports_in(late)
    except TallyOverflowError:
        rule = "leaves more reports than can be added up; take fewer epochs"
        raise QueryError(f"date_range: {rule}") from None
    if n < 0:
        raise InvalidTallyError(f"metric={metric.name}: n={n}: must not be negative")
    if n > MAX_REPORTS:
        rule = f"leaves {n} reports, must be at most {MAX_REPORTS}; take fewer epochs"
        raise QueryError(f"date_range: {rule}")
    epochs = tuple(sorted({cell.epoch for cell, _ in cells}))
    running = reading.is_open and reading.epochs[-1] in epochs
    return Slice(metric, dimensions, n, tally, epochs, running, late_n, too_few(metric, n))
