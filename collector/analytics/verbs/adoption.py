"""How far each value of a public dimension, such as an app version, has spread over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct

from ...core.errors import QueryError
from ...estimation.estimate import Estimate
from ..comparing.numbers import askable, estimates_of, items_of, others, refusal
from ..rows import SHARE, TIME, Findings, Row, empty_row, row_of, with_item
from ..verb import Slice, Verb, VerbQuery, sampled, spread_of_share

EXACT: Final = "exact: counted in the clear; of devices, if each reports as often"
DRAWN: Final = "counted in the clear among the devices drawn; the interval is of all"
_Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=100)]


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Which dimension, if several were asked for; the item whose share is wanted in each value.

    Without an item, rows are the shares of reports, which no noise was added to.
    """

    dimension: _Name | None = None
    item: _Name | None = None


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row a value and stretch of time: its share of the reports of that stretch.

    A dimension is sent in the clear, so the share is exact, and its interval is a point.  With an
    item, the row is the share of the item among the reports of the value, pointwise.

    Raises: QueryError: ``dimensions``, ``options.dimension`` or ``options.item``.
    """
    if not slices:
        return Findings(())
    options: Options = query.options
    name = _dimension(slices[0], options.dimension)
    if options.item is not None:
        (item,) = items_of(slices[0].metric, options.item, 1)
        return Findings(tuple(_estimated(part, item, query.alpha) for part in askable(slices)))
    totals = _totals(slices, name)
    return Findings(
        tuple(_counted(parts, totals, name, query.alpha) for parts in alike(slices)),
        facts={"exact": all(part.metric.sample.share >= 1 for part in slices)},
    )


def alike(slices: Sequence[Slice]) -> Iterator[tuple[Slice, ...]]:
    """Yield the slices of the same dimensions: one for each definition of a metric."""
    groups: dict[tuple[tuple[str, str], ...], list[Slice]] = {}
    for part in slices:
        groups.setdefault(tuple(part.dimensions.items()), []).append(part)
    yield from map(tuple, groups.values())


def _dimension(part: Slice, choice: str | None) -> str:
    """Return the dimension whose values spread.  Raises QueryError."""
    names = tuple(name for name in part.dimensions if name != TIME)
    if not names:
        raise QueryError("dimensions: must hold the dimension whose values spread")
    if choice is None and len(names) == 1:
        return names[0]
    if choice not in names:
        listed = ", ".join(names)
        raise QueryError(f"options.dimension: must be one of the dimensions asked: {listed}")
    return choice


def _totals(slices: Sequence[Slice], name: str) -> Mapping[tuple[str, ...], int]:
    """Return the reports by the values of all dimensions but *name*."""
    totals: dict[tuple[str, ...], int] = {}
    for part in slices:
        group = tuple(others(part, name).values())
        totals[group] = totals.get(group, 0) + part.n
    return totals


def _counted(
    parts: Sequence[Slice], totals: Mapping[tuple[str, ...], int], name: str, alpha: float
) -> Row:
    """Return the share of reports of slices of the same dimensions."""
    first, n = parts[0], sum(part.n for part in parts)
    is_open = any(part.is_open for part in parts)
    total = totals[tuple(others(first, name).values())]
    share = n / total
    point = Estimate(share, 0.0, share, share)
    if first.metric.sample.share < 1:
        whole = replace(first, n=total)
        (point,) = sampled(whole, [point], alpha, spread=spread_of_share)
        more = {"is_open": is_open, "note": DRAWN}
    else:
        more = {"simultaneous": True, "is_open": is_open, "note": EXACT}
    return row_of(first.dimensions, point, n, alpha, SHARE, **more)


def _estimated(part: Slice, item: str, alpha: float) -> Row:
    name, unit = with_item(part.dimensions, item), part.metric.domain.unit
    if part.refusal is not None:
        return empty_row(name, part.n, alpha, unit, part.refusal, is_open=part.is_open)
    estimate = estimates_of(part, alpha)[item]
    return row_of(name, estimate, part.n, alpha, unit, is_open=part.is_open)


VERB = Verb(
    answer,
    refusal,
    Options,
    needs_time=True,
    estimates=False,
    counts=lambda options: options.item is None,
    joins=True,
)
