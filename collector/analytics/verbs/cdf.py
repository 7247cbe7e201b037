"""The share of the devices up to each of several numbers: a cumulative distribution."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Final

from msgspec import Meta, Struct

from ..distribution import Curve, assumption, refusal
from ..postprocess import OF_CURVES, processed
from ..rows import Chart, Findings, Row
from ..verb import (
    Offer,
    Slice,
    Verb,
    VerbQuery,
    named,
    never,
    of_answered,
    refused_rows,
    rows_of,
)
from .histogram import edges_of

STEPS: Final = 40  # between the ends of the range, where no points are named

Point = Annotated[float, Meta(ge=-1e300, le=1e300)]


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Up to which numbers, in the unit of the metric, and whether intervals are to hold at once."""

    points: Annotated[tuple[Point, ...], Meta(max_length=1_000)] = ()
    simultaneous: bool = False


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row a point of each slice, in rising order; the item is the number.

    A point is counted in, and so is the range: what lay beyond an end was counted as that end.
    """
    comparisons = sum(len(_points_of(part, query.options)) for part in slices)
    alpha = query.alpha / max(comparisons, 1) if query.options.simultaneous else query.alpha
    return Findings(tuple(row for part in slices for row in _rows(part, query, alpha)))


def _rows(part: Slice, query: VerbQuery, alpha: float) -> Sequence[Row]:
    points = _points_of(part, query.options)
    names = named([f"{float(point):.12g}" for point in points])
    simultaneous = query.options.simultaneous
    if part.refusal is not None:
        return refused_rows(part, names, query.alpha, simultaneous=simultaneous)
    estimates = Curve.of(part.metric, part.tally, part.n).up_to(points, alpha)
    notes = assumption(part.metric)
    rows = rows_of(part, names, estimates, query.alpha, simultaneous=simultaneous, notes=notes)
    return processed(rows, query.postprocess)


def _points_of(part: Slice, options: Options) -> list[Fraction]:
    """Return the points that are asked for; without any, as many as STEPS between both ends."""
    if options.points:
        return sorted({Fraction(repr(point)) for point in options.points})
    return edges_of(part.metric, STEPS)


VERB = Verb(
    answer,
    refusal,
    Options,
    OF_CURVES,
    most_slices=400,
    holds=of_answered,
    chart=Chart.CURVE,
    offer=Offer(
        "How many lie below each number?",
        220,
        is_usual=never,
        typed="cumulative below under less most",
    ),
)
