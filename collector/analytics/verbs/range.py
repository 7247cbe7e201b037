"""The share of the devices between two numbers, or between two items in their declared order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import nan
from typing import Annotated, Final

import numpy as np
from msgspec import Meta, Struct

from client_sdk.registry.domain import Domain
from client_sdk.registry.encodings import ItemEncoding
from client_sdk.registry.metric import Metric

from ...core.errors import QueryError
from ...core.remarks import Remark
from ...estimation.estimate import Estimate
from .. import distribution
from ..distribution import Curve, Part
from ..rows import Chart, Findings, Row
from ..sums import Shares
from ..verb import (
    OF_ALL,
    OF_ANSWERED,
    Devices,
    Offer,
    Slice,
    Verb,
    VerbQuery,
    is_plain,
    named,
    refused_rows,
    rows_of,
)

_CONSISTENT: Final = (
    "all ranges are read off one linear estimate: those that adjoin add up exactly, "
    "but where the limit of an interval took the place of an estimate outside of it"
)
FARTHEST: Final = 1e300  # no end lies beyond
End = (
    Annotated[float, Meta(ge=-FARTHEST, le=FARTHEST)] | Annotated[str, Meta(max_length=100)] | None
)


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """From ``low`` to ``high``, both counted in, or several ``ranges``; null: no such end."""

    low: End = None
    high: End = None
    ranges: Annotated[tuple[tuple[End, End], ...], Meta(max_length=1_000)] = ()
    simultaneous: bool = False


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row a range of each slice.

    Raises: QueryError: ``options``: ends of another type, reversed, or unknown items.
    """
    options: Options = query.options
    ranges = list(options.ranges) or [(options.low, options.high)]
    rows: list[Row] = []
    for part in slices:
        names = named([_name(low, high) for low, high in ranges])
        places = [_place(i, low, high, part.metric) for i, (low, high) in enumerate(ranges)]
        if part.refusal is not None:
            rows += refused_rows(part, names, query.alpha, simultaneous=options.simultaneous)
            continue
        comparisons = len(slices) * len(ranges) if options.simultaneous else 1
        estimates, notes = _estimates(part, places, query.alpha / comparisons)
        rows += rows_of(
            part, names, estimates, query.alpha, simultaneous=options.simultaneous, notes=notes
        )
    return Findings(tuple(rows), facts={"ranges": _CONSISTENT})


def _estimates(
    part: Slice, places: Sequence[Part], alpha: float
) -> tuple[list[Estimate], tuple[Remark, ...]]:
    if part.metric.domain.grid:
        curve = Curve.of(part.metric, part.tally, part.n)
        return curve.between(places, alpha, closed=True), distribution.assumption(part.metric)
    members = np.zeros((len(places), part.metric.domain.size), dtype=bool)
    for row, (first, last) in zip(members, places, strict=True):
        row[int(first or 0) : int(last) + 1] = True
    shares = Shares.of_slice(part)
    return shares.groups(members, alpha), shares.notes


def _place(index: int, low: End, high: End, metric: Metric) -> Part:
    """Return the first and the last item, or number; None: from the least number."""
    domain, field = metric.domain, f"options.ranges.{index}"
    if grid := domain.grid:
        first = None if low is None else _number(low, field)
        last = grid.maximum if high is None else _number(high, field)
        if first is not None and first > last:
            raise QueryError(field, "must not begin above its end")
        return first, last
    ends = list(_items(domain, low, high, field))
    if ends[0] > ends[1]:
        raise QueryError(field, "must not begin behind its end, in the declared order")
    return Fraction(ends[0]), Fraction(ends[1])


def _number(end: float | str, field: str) -> Fraction:
    """Return a number, also one that was typed: the metric says what its ends are."""
    try:
        number = float(end)
    except ValueError:
        number = nan
    if not abs(number) <= FARTHEST:
        raise QueryError(field, "must have numbers for ends")
    return Fraction(repr(number))


def _items(domain: Domain, low: End, high: End, field: str) -> Iterator[int]:
    for end, otherwise in ((low, 0), (high, domain.size - 1)):
        if end is not None and end not in domain.labels:
            raise QueryError(field, "must have items of the metric for ends")
        yield otherwise if end is None else domain.labels.index(str(end))


def _name(low: End, high: End) -> str:
    ends = [
        end if isinstance(end, str) else f"{end:.12g}" for end in (low, high) if end is not None
    ]
    if len(ends) == 2:
        return " to ".join(ends)
    return "all" if not ends else f"from {ends[0]}" if high is None else f"up to {ends[0]}"


def refusal(metric: Metric) -> str | None:
    """Answer metrics of numbers whose distribution is told, and of items, one a device."""
    domain = metric.domain
    if not domain.ordered:
        return "has items without an order; ask for crosstab, map or retention"
    if domain.several:
        return "has sets, whose shares do not add up; ask for frequency"
    return None if domain.encodes is ItemEncoding else distribution.refusal(metric)


def _holds(metric: Metric, _: Options) -> Devices:
    return OF_ANSWERED if metric.domain.grid else OF_ALL


def _upper_half(
    metric: Metric, options: Mapping[str, object], _: Sequence[str]
) -> Mapping[str, object]:
    """Return the upper half of the numbers, or the lower half of the items, if no end is given."""
    if {"low", "high", "ranges"} & options.keys():
        return {}
    grid = metric.domain.grid
    if grid is None:
        labels = metric.domain.labels
        return {"high": labels[(metric.domain.size - 1) // 2]} if labels else {}
    middle = grid.minimum + (grid.size - 1) // 2 * grid.step
    return {"low": float(middle)}


VERB = Verb(
    answer,
    refusal,
    Options,
    most_slices=100,
    holds=_holds,
    defaults=_upper_half,
    chart=Chart.ORDERED,
    offer=Offer(
        "How many lie between two limits?",
        150,
        is_usual=is_plain,
        has_sense=lambda metric: metric.domain.grid is not None,  # between items lies no meaning
        typed="between range within",
    ),
)
