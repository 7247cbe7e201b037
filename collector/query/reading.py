"""From the store to slices: tallies of a window, merged over shards, epochs and lateness.

Small groups.  A slice below ``min_reports`` has no number.  Nor may two answers about one window
differ by fewer than FLOOR reports: segments with fewer are left out of whatever is filtered or
grouped, and a slice that lacks so few of the whole is refused.  Where the groups without a number
are so few together, the smallest group with one loses it, too.  Every report is deniable on its
own; this keeps a crowd around each number besides.
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
from ..analytics.slices import Slice
from ..errors import QueryError, TallyOverflowError
from ..storage.protocols import Storage
from ..storage.values import Cell, Tallies
from ..tally import merge, reports_in
from .plan import Plan, Reading

NOT_SAID: Final = "(not said)"  # the value of a dimension that a device did not tell
FLOOR: Final = 100  # reports that any difference of two answers must hold, if it holds any
Group: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[str | None, str]  # a stretch of time, None for all of it, and a segment
Cells: TypeAlias = list[tuple[Cell, list[bytes]]]


def slices_of(plan: Plan, reading: Reading, metric: Metric, storage: Storage) -> list[Slice]:
    """Return the slices of one definition of a metric, in the order of time and vocabulary.

    Without groups there is always one slice, be it of no reports.

    Raises: StorageUnavailableError.  InvalidTallyError: a stored tally cannot have been folded.
            QueryError: more reports than can be added up.
    """
    places = _places(reading, storage.tallies(metric.digest, reading.epochs, reading.version))
    small, totals = _small_segments(plan, places)
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
    """Return which segments of which stretch must not be told apart, and the reports of each."""
    totals: Counter[str | None] = Counter()
    if not plan.filters and not plan.groups:
        return set(), totals
    small = set()
    for place, cells in places.items():
        n = reports_in([vector for _, vectors in cells for vector in vectors])
        totals[place[0]] += n
        if 0 < n < FLOOR:
            small.add(place)
    return small, totals


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
    """Yield *slices* with the reason of each that may have no number.

    Args: totals: reports of the whole of each stretch of time, None for all of it.
    """
    beside: dict[str | None, list[Slice]] = defaultdict(list)
    for one in slices:
        beside[one.dimensions.get(TIME)].append(one)
    hidden = {
        id(one)
        for stretch, group in beside.items()
        for one in _to_hide(group, metric.min_reports, totals.get(stretch))
    }
    for one in slices:
        rest = totals.get(one.dimensions.get(TIME), one.n) - one.n
        if one.n < metric.min_reports:
            yield replace(one, refusal=shortage(metric, one.n))
        elif 0 < rest < FLOOR or id(one) in hidden:
            reason = f"beside it are fewer than {FLOOR} reports, which the difference would tell"
            yield replace(one, refusal=reason)
        else:
            yield one


def _to_hide(group: Sequence[Slice], least: int, total: int | None) -> list[Slice]:
    """Return what must be hidden so that all that has no number is FLOOR together, or nothing.

    The whole less every number beside each other would tell it otherwise.

    Args: total: reports of the whole, if it holds more than the *group*.
    """
    told = sorted((one for one in group if one.n >= least), key=lambda one: one.n)
    whole = sum(one.n for one in group) if total is None else total
    rest = whole - sum(one.n for one in told)
    return told[:1] if 0 < rest < FLOOR else []
