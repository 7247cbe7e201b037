"""What a treatment changes: each arm of an experiment against its control, and what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta, Struct

from client_sdk.registry.metric import Metric

from ...core.errors import QueryError
from ..comparing.differences import (
    MOST_ITEMS,
    POWER,
    Comparison,
    Pair,
    compared,
    covers_zero,
    difference_row,
    is_open,
    lift,
    pairs_of,
    reports_needed,
    require_value,
    smallest_seen,
)
from ..comparing.measure import DRAWN, Population, askable, items_of, refusal
from ..rows import MEASURE, RELATIVE, SHARE, TIME, Findings, Row, empty_row, row_of, with_item
from ..verb import Asked, Slice, Verb

DIFFERENCE, LIFT = "difference", "lift"
MOST_FACTS: Final = 1_000  # comparisons whose power is told
MOST_TOLD: Final = 4  # comparisons, if there are more, none is told in words
_NO_BASE: Final = "the control's number may be 0, so that no part of it can be told"
_Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=100)]


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """The dimension whose values are the arms, the arm that is the control, and what is measured.

    With ``population`` left as drawn, devices were put into arms by chance.
    """

    dimension: _Name
    control: _Name
    item: _Name | None = None
    population: Population = DRAWN


def answer(slices: Sequence[Slice], asked: Asked) -> Findings:
    """Answer with two rows an item of each arm: its difference from the control, and that in parts.

    Intervals hold together over all arms and items; p-values, one for both rows, are corrected
    for them.  Facts tell what difference these reports can show, and how many would show this one.

    Raises: QueryError: ``options.dimension``, ``options.control`` or ``options.item``.
    """
    if not slices:
        return Findings((), facts={"comparisons": 0, "power": []})
    slices, options = askable(slices), asked.options
    metric, by = slices[0].metric, options.dimension
    if by not in slices[0].dimensions or by == TIME:
        raise QueryError("options.dimension: must be a dimension asked for, other than time")
    require_value(slices, by, options.control, "options.control")
    items = items_of(metric, options.item, MOST_ITEMS)
    pairs = pairs_of(slices, by, options.control)
    found = compared(pairs, items, options.population, asked.alpha)
    results = iter(found)
    rows = [
        row
        for pair in pairs
        for item in items
        for row in (
            _refused(pair, item, asked.alpha) if pair.refusal else _rows(next(results), asked.alpha)
        )
    ]
    facts = {
        "comparisons": len(found),
        "population": options.population,
        "power": [_power(one) for one in found[:MOST_FACTS]],
    }
    return Findings(tuple(rows), tuple(map(_sentence, _unseen(found))), facts)


def _rows(one: Comparison, alpha: float) -> Iterator[Row]:
    row = difference_row(one, alpha)
    yield replace(row, dimensions={**row.dimensions, MEASURE: DIFFERENCE})
    if not _has_parts(one.metric):
        return
    name = {**row.dimensions, MEASURE: LIFT}
    found = lift(one.first, one.second, one.level)
    more: dict[str, Any] = {"simultaneous": True, "is_open": row.is_open}
    if found is None:
        yield empty_row(name, row.n, alpha, RELATIVE, _NO_BASE, **more)
    else:
        more |= {"p_value": row.p_value, "fakes_to_flip": row.fakes_to_flip, "note": row.note}
        yield row_of(name, found, row.n, alpha, RELATIVE, **more)


def _refused(pair: Pair, item: str, alpha: float) -> Iterator[Row]:
    metric, is_growing = pair.first.metric, is_open(pair)
    measures = {DIFFERENCE: metric.domain.unit} | ({LIFT: RELATIVE} if _has_parts(metric) else {})
    for measure, unit in measures.items():
        name = {**with_item(pair.dimensions, item), MEASURE: measure}
        reason = pair.refusal or ""
        yield empty_row(name, pair.first.n, alpha, unit, reason, is_open=is_growing)


def _has_parts(metric: Metric) -> bool:
    """Return whether a part of a number means anything: 20 degrees are not twice 10."""
    return metric.domain.grid is None or metric.domain.grid.minimum >= 0


def _power(one: Comparison) -> dict[str, Any]:
    """Return what can be seen at the level of one interval."""
    n, found = one.first.n + one.second.n, one.difference
    return {
        "dimensions": with_item(one.pair.dimensions, one.item),
        "control": one.second.value,
        "treated": one.first.value,
        "power": POWER,
        "smallest_seen": smallest_seen(found.std_error, one.level),
        "reports": n,
        "reports_needed": reports_needed(found, n, one.level),
    }


def _unseen(found: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons that show nothing; of many items, none is told in words."""
    return [one for one in found if covers_zero(one.difference)] if len(found) <= MOST_TOLD else []


def _sentence(one: Comparison) -> str:
    told, metric = _power(one), one.metric
    scale, ending = (100, "points") if metric.domain.unit == SHARE else (1, metric.domain.unit)
    needed = told["reports_needed"]
    rest = f"; to show one as seen here takes about {needed:,} reports" if needed else ""
    what = ", ".join(told["dimensions"].values())
    return (
        f"{metric.name}: {what}: {told['reports']:,} reports show a difference of "
        f"{scale * told['smallest_seen']:.3g} {ending} with {100 * POWER:g} % power{rest}"
    )


VERB = Verb(answer, refusal, Options, estimates=False, joins=True, merges_small=False)
