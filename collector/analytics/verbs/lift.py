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
from ..comparing.numbers import DRAWN, Population, askable, items_of, refusal
from ..rows import MEASURE, RELATIVE, SHARE, TIME, Findings, Row, empty_row, row_of, with_item
from ..verb import Slice, Verb, VerbQuery

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


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with two rows an item of each arm: its difference from the control, and that in parts.

    Intervals hold together over all arms and items; p-values, one for both rows, are corrected
    for them.  Facts tell what difference these reports can show, and how many would show this one.

    Raises: QueryError: ``options.dimension``, ``options.control`` or ``options.item``.
    """
    if not slices:
        return Findings((), facts={"comparisons": 0, "power": []})
    slices, options = askable(slices), query.options
    metric, by = slices[0].metric, options.dimension
    if by not in slices[0].dimensions or by == TIME:
        raise QueryError("options.dimension: must be a dimension asked for, other than time")
    require_value(slices, by, options.control, "options.control")
    items = items_of(metric, options.item, MOST_ITEMS)
    pairs = pairs_of(slices, by, options.control)
    comparisons = compared(pairs, items, options.population, query.alpha)
    results = iter(comparisons)
    rows = [
        row
        for pair in pairs
        for item in items
        for row in (
            _refused(pair, item, query.alpha) if pair.refusal else _rows(next(results), query.alpha)
        )
    ]
    facts = {
        "comparisons": len(comparisons),
        "population": options.population,
        "power": [_power(comparison) for comparison in comparisons[:MOST_FACTS]],
    }
    return Findings(tuple(rows), tuple(map(_sentence, _unseen(comparisons))), facts)


def _rows(comparison: Comparison, alpha: float) -> Iterator[Row]:
    row = difference_row(comparison, alpha)
    yield replace(row, dimensions={**row.dimensions, MEASURE: DIFFERENCE})
    if not _has_parts(comparison.metric):
        return
    name = {**row.dimensions, MEASURE: LIFT}
    ratio = lift(comparison.first, comparison.second, comparison.level)
    more: dict[str, Any] = {"simultaneous": True, "is_open": row.is_open}
    if ratio is None:
        yield empty_row(name, row.n, alpha, RELATIVE, _NO_BASE, **more)
    else:
        more |= {"p_value": row.p_value, "fakes_to_flip": row.fakes_to_flip, "note": row.note}
        yield row_of(name, ratio, row.n, alpha, RELATIVE, **more)


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


def _power(comparison: Comparison) -> dict[str, Any]:
    """Return what can be seen at the level of one interval."""
    n, difference = comparison.first.n + comparison.second.n, comparison.difference
    return {
        "dimensions": with_item(comparison.pair.dimensions, comparison.item),
        "control": comparison.second.value,
        "treated": comparison.first.value,
        "power": POWER,
        "smallest_seen": smallest_seen(difference.std_error, comparison.level),
        "reports": n,
        "reports_needed": reports_needed(difference, n, comparison.level),
    }


def _unseen(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons that show nothing; of many items, none is told in words."""
    return (
        [comparison for comparison in comparisons if covers_zero(comparison.difference)]
        if len(comparisons) <= MOST_TOLD
        else []
    )


def _sentence(comparison: Comparison) -> str:
    power, metric = _power(comparison), comparison.metric
    scale, ending = (100, "points") if metric.domain.unit == SHARE else (1, metric.domain.unit)
    needed = power["reports_needed"]
    rest = f"; to show one as seen here takes about {needed:,} reports" if needed else ""
    what = ", ".join(power["dimensions"].values())
    return (
        f"{metric.address}: {what}: {power['reports']:,} reports show a difference of "
        f"{scale * power['smallest_seen']:.3g} {ending} with {100 * POWER:g} % power{rest}"
    )


VERB = Verb(answer, refusal, Options, estimates=False, joins=True, merges_small=False)
