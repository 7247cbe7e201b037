"""From the store to slices: tallies of a window, merged over shards, epochs and lateness.

Small groups.  A slice below ``min_reports`` has no number.  Nor can any answers about segments of
one stretch of time tell by their difference what fewer than FLOOR reports said: segments with fewer
are left out of whatever is filtered or grouped, and also of the whole if they are so few together.
So every number rests on some of the same parts, each of FLOOR reports at least.  Every report is
deniable on its own; this keeps a crowd around each number besides.

Not guarded: stretches of time against each other.  Two windows, or a window and its days, tell by
their difference the tally of single epochs, however few reported in them.  Nor is any count hidden:
the reports of a slice are told, also of one without a number.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, TypeAlias

from client_sdk.errors import InvalidTallyError
from client_sdk.mechanisms import MAX_REPORTS
from client_sdk.metric import Metric

from ..analytics.need import shortage
from ..analytics.rows import TIME
from ..analytics.slices import FLOOR, Slice
from ..errors import QueryError, TallyOverflowError
from ..storage.protocols import Storage
from ..storage.values import Cell, Tallies
from ..tally import merge, reports_in
from .plan import Plan, Reading

NOT_SAID: Final = "(not said)"  # the value of a dimension that a device did not tell
Group: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[str | None, str]  # a stretch of time, None for all of it, and a segment
Cells: TypeAlias = list[tuple[Cell, list[bytes]]]


def slices_of(
    plan: Plan, reading: Reading, metric: Metric, storage: Storage, notes: list[str] | None = None
) -> list[Slice]:
    """Return the slices of one definition of a metric, in the order of time and vocabulary.

    Without groups there is always one slice, be it of no reports.

    Args:   notes: takes a sentence on reports that were left out.
    Raises: StorageUnavailableError.  InvalidTallyError: a stored tally cannot have been folded.
            QueryError: more reports than can be added up.
    """
    places = _places(reading, storage.tallies(metric.digest, reading.epochs, reading.version))
    small, totals = _small_segments(plan, places)
    if small and notes is not None:
        few = sum(_reports(places[place]) for place in small)
        rule = f"of segments with fewer than {FLOOR} are left out"
        notes.append(f"{metric.name}: {few} reports {rule}")
    grouped: dict[Group, Cells] = defaultdict(list)
    for place, cells in places.items():
        stretch, segment = place
        values: Mapping[str, str | None] = json.loads(segment) if segment else {}
        if place not in small and all(
            values.get(name) in taken for name, taken in plan.filters.items()
        ):
            grouped[_group(plan, stretch, values)] += cells
    if not plan.dimensions:
        grouped.setdefault((), [])
    merged = [
        _slice(dict(zip(plan.dimensions, group, strict=True)), cells, metric, reading)
        for group, cells in sorted(grouped.items(), key=lambda one: _order(plan, metric, one[0]))
    ]
    return list(guarded(merged, metric, totals))


def _places(reading: Reading, found: Tallies) -> dict[Place, Cells]:
    """Return what was *found* by stretch of time and segment."""
    places: dict[Place, Cells] = defaultdict(list)
    label = cache(reading.label) if reading.label else None
    for cell, vectors in found.items():
        places[label(cell.epoch) if label else None, cell.segment].append((cell, vectors))
    return places


def _small_segments(
    plan: Plan, places: Mapping[Place, Cells]
) -> tuple[set[Place], Counter[str | None]]:
    """Return which segments of which stretch are left out, and the reports of each whole."""
    totals: Counter[str | None] = Counter()
    few: dict[str | None, dict[Place, int]] = defaultdict(dict)
    for place, cells in places.items() if any(segment for _, segment in places) else ():
        n = _reports(cells)
        totals[place[0]] += n
        if 0 < n < FLOOR:
            few[place[0]][place] = n
    small: set[Place] = set()
    for stretch, found in few.items():
        together = sum(found.values())
        is_of_whole = together >= FLOOR or together == totals[stretch]
        if not is_of_whole:
            totals[stretch] -= together
        if plan.filters or plan.groups or not is_of_whole:
            small |= found.keys()
    return small, totals


def _reports(cells: Cells) -> int:
    return reports_in([vector for _, vectors in cells for vector in vectors])


def _group(plan: Plan, stretch: str | None, values: Mapping[str, str | None]) -> Group:
    return tuple(
        stretch if name == TIME and stretch is not None else values.get(name) or NOT_SAID
        for name in plan.dimensions
    )


def _order(plan: Plan, metric: Metric, group: Group) -> tuple[Any, ...]:
    """Return where a group stands: time as it runs, values as they are declared."""
    places: list[Any] = []
    for name, value in zip(plan.dimensions, group, strict=True):
        declared = metric.segments.get(name, ())
        last = len(declared)
        place: Any = value if name == TIME else declared.index(value) if value in declared else last
        places.append(place)
    return tuple(places)


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
        late_n, _ = merge(late, size)
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
    return Slice(metric, dimensions, n, tally, epochs, running, late_n)


def guarded(
    slices: Sequence[Slice], metric: Metric, totals: Mapping[str | None, int]
) -> Iterator[Slice]:
    """Yield *slices* with the whole of each, and the reason of those that may have no number.

    Args: totals: reports of the whole of each stretch of time, None for all of it.
    """
    for one in slices:
        reason = shortage(metric, one.n) if one.n < metric.min_reports else None
        yield replace(one, refusal=reason, whole=totals.get(one.dimensions.get(TIME)))
