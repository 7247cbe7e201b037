"""What an experiment changed: each arm against the control, and how many reports would show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Annotated, Any, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from client_sdk.core.epoch import DAY, LENGTHS, ONCE
from client_sdk.registry.metric import Metric

from ...core.errors import QueryError
from ...core.remarks import Code, Remark, remark
from ...core.text_tables import in_digits
from ..comparing.arms import are_arms, arms_of, control_of
from ..comparing.differences import (
    MOST_ITEMS,
    POWER,
    Comparison,
    Pair,
    compared,
    covers_zero,
    difference_row,
    epochs_needed,
    lift,
    pairs_of,
    refused_row,
    reports_needed,
    require_value,
    smallest_seen,
)
from ..comparing.mix import of_pairs
from ..comparing.numbers import (
    DRAWN,
    NEW,
    Population,
    askable,
    items_of,
    refusal,
    taken_for_granted,
)
from ..rows import (
    MEASURE,
    RELATIVE,
    SHARE,
    TIME,
    Chart,
    Findings,
    Row,
    empty_row,
    row_of,
    with_item,
)
from ..sums import averages
from ..verb import MOST_FACTS, Name, Offer, Slice, Verb, VerbQuery

DIFFERENCE, LIFT = "difference", "lift"
_MOST_TOLD: Final = 4  # comparisons, if there are more, none is told in words
_MORE_DEVICES: Final = (
    "more devices: running longer is not enough, as each may repeat itself; if none reports twice, "
    f'ask with population "{NEW}"'
)


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """The dimension whose values are the arms, the arm that is the control, and what is measured.

    Left out, they are the dimension asked for and its arm with the name of a control, or the first.
    With ``population`` left as drawn, devices were put into arms by chance; with "new" each epoch
    has other devices.  ``effect`` is the
    difference to be found, in the unit of the metric, a share of 0.02 for 2 points: how long the
    experiment must run is told for it, or if left out for the difference that is seen.
    """

    dimension: Name | None = None
    control: Name | None = None
    item: Name | None = None
    population: Population = DRAWN
    effect: Annotated[float, Meta(gt=0, le=1e15)] | None = None


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
    if by is None or by not in slices[0].dimensions or by == TIME:
        raise QueryError("options.dimension", "must be a dimension asked for, other than time")
    require_value(slices, by, options.control or "", "options.control")
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
        "power": [_power(comparison, options) for comparison in comparisons[:MOST_FACTS]],
    }
    by_chance = are_arms(by, metric.segments.get(by, ()))
    warnings = (
        remark(Code.LOOK_ONCE if by_chance else Code.NOT_DRAWN, group=by.replace("_", " ")),
        *of_pairs(pairs),
        *taken_for_granted(slices, options.population),
        *_settling(_unseen(comparisons, options), options),
    )
    return Findings(tuple(rows), warnings, facts)


def _rows(comparison: Comparison, alpha: float) -> Iterator[Row]:
    row = difference_row(comparison, alpha)
    yield replace(row, dimensions={**row.dimensions, MEASURE: DIFFERENCE})
    if not _has_parts(comparison.metric):
        return
    name = {**row.dimensions, MEASURE: LIFT}
    ratio = lift(comparison.first, comparison.second, comparison.level)
    more: dict[str, Any] = {"simultaneous": True, "is_open": row.is_open}
    if ratio is None:
        yield empty_row(name, row.n, alpha, RELATIVE, remark(Code.NO_BASE), **more)
    else:
        more |= {"p_value": row.p_value, "fakes_to_flip": row.fakes_to_flip, "notes": row.notes}
        yield row_of(name, ratio, row.n, alpha, RELATIVE, **more)


def _refused(pair: Pair, item: str, alpha: float) -> Iterator[Row]:
    row, metric = refused_row(pair, item, alpha), pair.first.metric
    measures = {DIFFERENCE: metric.domain.unit} | ({LIFT: RELATIVE} if _has_parts(metric) else {})
    for measure, unit in measures.items():
        yield replace(row, dimensions={**row.dimensions, MEASURE: measure}, unit=unit)


def _has_parts(metric: Metric) -> bool:
    """Return whether a part of a number means anything: 20 degrees are not twice 10."""
    return metric.domain.least >= 0


def _power(comparison: Comparison, options: Options) -> dict[str, Any]:
    """Return what can be seen at the level of one interval, and how long the effect takes."""
    n, difference = comparison.first.n + comparison.second.n, comparison.difference
    level, item = comparison.level, comparison.item
    effect = options.effect or abs(difference.value)
    epochs = epochs_needed(comparison.pair, item, effect, level, options.population)
    seconds = LENGTHS.get(comparison.metric.every, DAY)
    return {
        "dimensions": with_item(comparison.pair.dimensions, item),
        "control": comparison.second.value,
        "treated": comparison.first.value,
        "power": POWER,
        "smallest_seen": smallest_seen(difference.std_error, level),
        "effect": effect,
        "reports": n,
        "reports_needed": reports_needed(difference.std_error, effect, n, level),
        "days_needed": None if epochs is None else ceil(epochs * seconds / DAY),
    }


def _unseen(comparisons: Sequence[Comparison], options: Options) -> list[Comparison]:
    """Return the comparisons to tell in words: of many items none, else those that show nothing.

    Where an effect is named, all.
    """
    if len(comparisons) > _MOST_TOLD:
        return []
    return [c for c in comparisons if options.effect or covers_zero(c.difference)]


def _settling(comparisons: Sequence[Comparison], options: Options) -> Iterator[Remark]:
    """Yield in one sentence what it takes to settle each of *comparisons*, where anything does."""
    powers = [_power(comparison, options) for comparison in comparisons]
    takes = [power for power in powers if power["reports_needed"]]
    if not takes:
        return
    metric, aim = comparisons[0].metric, "a difference of this size"
    if options.effect:
        scale, ending = (100, "points") if metric.domain.unit == SHARE else (1, metric.domain.unit)
        aim = f"{in_digits(scale * options.effect)} {ending}"
    places = [power["dimensions"] for power in powers]
    telling = [name for name in places[0] if len({place[name] for place in places}) > 1]
    each = ", ".join(_needed(power, telling) for power in takes)
    is_repeated = metric.every != ONCE and not all(power["days_needed"] for power in takes)
    more = f", so {_MORE_DEVICES}" if is_repeated else ""
    yield remark(Code.TO_SETTLE, metric.address, aim=aim, times=10 * POWER, each=f"{each}{more}")


def _needed(power: Mapping[str, Any], telling: Sequence[str]) -> str:
    """Return the reports that a difference takes, in two digits, and the days if they are known.

    Args: telling: the dimensions that name it among others.
    """
    reports, days = in_digits(power["reports_needed"], 2), power["days_needed"]
    long = (
        f" ({days:,} {'day' if days == 1 else 'days'} at this rate: look once, when they are over)"
        if days
        else ""
    )
    name = " ".join(power["dimensions"][each] for each in telling)
    return f"{reports} reports{long}" + (f" for {name}" if name else "")


def _defaults(
    metric: Metric, options: Mapping[str, Any], dimensions: Sequence[str]
) -> Mapping[str, Any]:
    """Return the dimension that is likely drawn by lot, and the control among its values."""
    if not dimensions:
        return {}
    arms = arms_of(metric)
    own = next((name for name in dimensions if name in arms), dimensions[0])
    own = options.get("dimension", own)
    held = {"control": control_of(metric.segments[own])} if own in metric.segments else {}
    return {"dimension": own, **held}


VERB = Verb(
    answer,
    refusal,
    Options,
    estimates=False,
    combines=averages,
    unites=True,
    joins=True,
    merges_small=False,
    needs_segment=True,
    about=arms_of,
    defaults=_defaults,
    chart=Chart.DIFFERENCES,
    offer=Offer(
        "What did the experiment change?",
        190,
        has_sense=lambda metric: bool(arms_of(metric)),  # groups that no lot drew are none
        typed="lift experiment ab effect treatment uplift arm variant winner win test",
    ),
)
