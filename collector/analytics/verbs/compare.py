"""The difference between segments or stretches of time, and whether noise alone could make it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...core.errors import QueryError
from ...core.remarks import Code, Remark, remark
from ..comparing.differences import (
    MOST_ITEMS,
    Pair,
    compared,
    difference_row,
    pairs_of,
    refused_row,
    sides,
)
from ..comparing.mix import of_pairs
from ..comparing.numbers import (
    DRAWN,
    Population,
    askable,
    items_of,
    refusal,
    taken_for_granted,
)
from ..rows import TIME, Chart, Findings
from ..sums import averages
from ..verb import MOST_FACTS, Name, Offer, Slice, Verb, VerbQuery


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Along which dimension, against which of its values, one item or all, and for whom it holds.

    ``by`` may be left out where one dimension was asked for.  ``against`` is, of time, "previous"
    or "first"; of another dimension one of its values, or if left out all others together.
    """

    by: Name | None = None
    against: Name | None = None
    item: Name | None = None
    population: Population = DRAWN


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row an item of each pair: the number of the first less that of the second.

    Intervals hold together over all comparisons; p-values are corrected for them.

    Raises: QueryError: ``options.by``, ``options.against`` or ``options.item``.
    """
    if not slices:
        return Findings((), facts={"comparisons": 0, "sides": []})
    options: Options = query.options
    slices = askable(slices)
    items = items_of(slices[0].metric, options.item, MOST_ITEMS)
    by = _dimension(slices[0], options.by)
    pairs = pairs_of(slices, by, options.against)
    in_time = by == TIME and not any(map(_is_apart, pairs))
    comparisons = compared(pairs, items, options.population, query.alpha, in_time=in_time)
    rows = iter([difference_row(comparison, query.alpha) for comparison in comparisons])
    facts = {
        "comparisons": len(comparisons),
        "population": options.population,
        "sides": [sides(comparison) for comparison in comparisons[:MOST_FACTS]],
    }
    return Findings(
        tuple(
            refused_row(pair, item, query.alpha) if pair.refusal else next(rows)
            for pair in pairs
            for item in items
        ),
        (*_warnings(slices, pairs, by), *taken_for_granted(slices, options.population)),
        facts,
    )


def _is_apart(pair: Pair) -> bool:
    """Return whether more time lies between both stretches than either takes.

    Then the devices may be others, whose repeated noise does not cancel out.
    """
    stretches = [range(min(part.epochs), max(part.epochs) + 1)
                 for part in (pair.first, pair.second) if part.epochs]  # fmt: skip
    if len(stretches) < 2:
        return False
    gap = max(each.start for each in stretches) - min(each.stop for each in stretches)
    return gap > max(map(len, stretches))


def _warnings(slices: Sequence[Slice], pairs: Sequence[Pair], by: str) -> tuple[Remark, ...]:
    if not pairs:
        return (_nothing(slices, by),)
    return () if by == TIME else of_pairs(pairs)


def _nothing(slices: Sequence[Slice], by: str) -> Remark:
    """Return why there is no pair: which value alone has reports."""
    value, *others = dict.fromkeys(part.dimensions[by].replace("/", " to ") for part in slices)
    which = "one group" if others else value
    more = "; take another range to compare with" if by == TIME else ""
    return remark(Code.NOTHING_TO_COMPARE, which=which, more=more)


def _dimension(part: Slice, choice: str | None) -> str:
    """Return the dimension to compare along.  Raises QueryError."""
    names = tuple(part.dimensions)
    if not names:
        rule = "must hold what to compare along, such as time:period for the period before"
        raise QueryError("dimensions", rule)
    if choice is None and len(names) == 1:
        return names[0]
    if choice not in names:
        raise QueryError("options.by", f"must be one of the dimensions asked: {', '.join(names)}")
    return choice


VERB = Verb(
    answer,
    refusal,
    Options,
    estimates=False,
    combines=averages,
    unites=True,
    joins=True,
    merges_small=False,
    compares=True,
    chart=Chart.DIFFERENCES,
    offer=Offer(
        "Did it change?",
        160,
        typed="change differ up down increase decrease grow rise fall better worse before after",
    ),
)
