"""Quantiles of numbers: below which number a given part of the devices lies."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any

from msgspec import Meta, Struct

from ...core.errors import QueryError
from ..answer import MONOTONE, quantiles_at, with_notes
from ..distribution import refusal
from ..rows import Chart, Findings, Row
from ..verb import Offer, Slice, Verb, VerbQuery, named, of_answered, refused_rows, rows_of

Level = Annotated[float, Meta(gt=0, lt=1)]


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Which quantiles, and whether their intervals are to hold at once."""

    levels: Annotated[tuple[Level, ...], Meta(min_length=1, max_length=100)] = (
        0.5,
        0.9,
        0.95,
        0.99,
    )
    simultaneous: bool = False


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row a level of each slice, "p50" for 0.5, in the order asked for.

    Intervals hold whatever the population is, or if it is as smooth or as whole as the metric's
    ``shape`` says; they need not be symmetric.

    Raises: QueryError: ``options.levels``: a level is given twice.
    """
    options: Options = query.options
    if len(set(options.levels)) < len(options.levels):
        raise QueryError("options.levels", "must be different")
    comparisons = len(slices) * len(options.levels) if options.simultaneous else 0
    return Findings(
        tuple(
            row
            for part in slices
            for row in quantile_rows(part, options.levels, query.alpha, comparisons)
        )
    )


def quantile_rows(
    part: Slice, levels: Sequence[float], alpha: float, comparisons: int = 0
) -> list[Row]:
    """Return a row for each of *levels*, which differ, or the reason of the slice in each.

    Args: comparisons: intervals that are to hold at once; 0: each for itself.
    """
    names, unit = named([name_of(level) for level in levels]), part.metric.domain.unit
    simultaneous = comparisons > 0
    if part.refusal is not None:
        return refused_rows(part, names, alpha, unit, simultaneous=simultaneous)
    rising, each = sorted(levels), alpha / max(comparisons, 1)
    quantiles = quantiles_at(part.metric, part.tally, part.n, rising, each)
    by_level = dict(zip(rising, quantiles, strict=True))
    estimates = [by_level[level] for level in levels]
    more: dict[str, Any] = {"postprocess": MONOTONE, "simultaneous": simultaneous}
    return [
        with_notes(row, part.metric) for row in rows_of(part, names, estimates, alpha, unit, **more)
    ]


def name_of(level: float) -> str:
    """Return what the quantile of *level* is called: "p99.9" for 0.999."""
    return f"p{(Decimal(repr(level)) * 100).normalize():f}"


VERB = Verb(
    answer,
    refusal,
    Options,
    most_slices=400,
    holds=of_answered,
    chart=Chart.QUANTILES,
    offer=Offer(
        "What are median and p95?",
        130,
        typed="median med percentile quantile slowest tail",
    ),
)
