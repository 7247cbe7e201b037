"""Quantiles of numbers: below which number a given part of the devices lies."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct

from ...core.errors import QueryError
from ..answer import MONOTONE, quantiles_at, with_notes
from ..distribution import refusal
from ..rows import Findings, Row
from ..verb import Asked, Slice, Verb, named, refused_rows, rows_of

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


def answer(slices: Sequence[Slice], asked: Asked) -> Findings:
    """Answer with a row a level of each slice, "p50" for 0.5, in the order asked for.

    Intervals hold whatever the population is, or if it is as smooth or as whole as the metric's
    ``shape`` says; they need not be symmetric.

    Raises: QueryError: ``options.levels``: a level is given twice.
    """
    options: Options = asked.options
    if len(set(options.levels)) < len(options.levels):
        raise QueryError("options.levels: must be different")
    comparisons = len(slices) * len(options.levels) if options.simultaneous else 1
    return Findings(
        tuple(row for part in slices for row in _rows(part, asked, asked.alpha / comparisons))
    )


def _rows(one: Slice, asked: Asked, alpha: float) -> list[Row]:
    levels: tuple[float, ...] = asked.options.levels
    names, unit = named([name_of(level) for level in levels]), one.metric.domain.unit
    simultaneous = asked.options.simultaneous
    if one.refusal is not None:
        return refused_rows(one, names, asked.alpha, unit, simultaneous=simultaneous)
    rising = sorted(levels)
    found = quantiles_at(one.metric, one.tally, one.n, rising, alpha)
    by_level = dict(zip(rising, found, strict=True))
    estimates = [by_level[level] for level in levels]
    rows = rows_of(
        one,
        names,
        estimates,
        asked.alpha,
        unit,
        postprocess=MONOTONE,
        simultaneous=simultaneous,
    )
    return [with_notes(row, one.metric) for row in rows]


def name_of(level: float) -> str:
    """Return what the quantile of *level* is called: "p99.9" for 0.999."""
    return f"p{(Decimal(repr(level)) * 100).normalize():f}"


VERB = Verb(answer, refusal, Options, most_slices=400)
