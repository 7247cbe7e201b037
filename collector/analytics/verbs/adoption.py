"""How far each value of a public dimension, such as an app version, has spread over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sqrt
from sys import maxsize
from typing import Final, TypeAlias

from msgspec import Struct

from client_sdk.registry.metric import Metric

from ...core.errors import QueryError
from ...core.remarks import Code, remark
from ...estimation.estimate import Estimate
from ..comparing.numbers import askable, items_of, number_rows, others, refusal
from ..rows import SHARE, TIME, Chart, Findings, Row, row_of
from ..verb import (
    Name,
    Offer,
    Slice,
    Verb,
    VerbQuery,
    alike,
    devices_of,
    draw_law,
    spread_of_share,
    with_draw,
)

_SPREADING: Final = frozenset({"version", "release", "build"})


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Which dimension, if several were asked for; the item whose share is wanted in each value.

    Without an item, rows are the shares of reports, which no noise was added to.
    """

    dimension: Name | None = None
    item: Name | None = None


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
    for part in slices:
        if reason := part.metric.sample.why_no_totals:
            raise QueryError("metrics", f"{part.metric.address} {reason}; name an item")
    totals = _totals(slices, name)
    return Findings(
        tuple(_counted(parts, totals, name, query.alpha) for parts in alike(slices)),
        facts={"exact": all(part.metric.sample.share >= 1 for part in slices)},
    )


def _dimension(part: Slice, choice: str | None) -> str:
    """Return the dimension whose values spread.  Raises QueryError."""
    names = tuple(name for name in part.dimensions if name != TIME)
    if not names:
        raise QueryError("dimensions", "must hold the dimension whose values spread")
    if choice is None and len(names) == 1:
        return names[0]
    if choice not in names:
        listed = ", ".join(names)
        raise QueryError("options.dimension", f"must be one of the dimensions asked: {listed}")
    return choice


_Totals: TypeAlias = Mapping[tuple[str, ...], Mapping[bytes, Slice]]


def _totals(slices: Sequence[Slice], name: str) -> _Totals:
    """Return by the values of all dimensions but *name* the reports under each definition."""
    totals: dict[tuple[str, ...], dict[bytes, Slice]] = {}
    for part in slices:
        group = totals.setdefault(tuple(others(part, name).values()), {})
        digest, whole = part.metric.digest, part
        if (before := group.get(digest)) is not None:
            epochs = tuple({*before.epochs, *part.epochs})
            whole = replace(part, n=before.n + part.n, epochs=epochs)
        group[digest] = whole
    return totals


def _counted(parts: Sequence[Slice], totals: _Totals, name: str, alpha: float) -> Row:
    """Return the share of the devices that reports of slices of the same dimensions stand for.

    Each definition has a draw of its own, of its own part of the devices.

    Derived: with the share f of those of a definition, a part w of all, the error of the share s is
    the sum of w^2 times that of f and of (f - s)^2: which part w is, is chance too.
    """
    first, wholes = parts[0], totals[tuple(others(parts[0], name).values())]
    devices = sum(map(devices_of, wholes.values()))
    share = sum(map(devices_of, parts)) / devices
    point = Estimate(share, 0.0, share, share)
    more: dict[str, object] = {"is_open": any(part.is_open for part in parts)}
    own = {part.metric.digest: part.n for part in parts}
    laws = [
        (draw_law(whole) * (devices_of(whole) / devices) ** 2, own.get(digest, 0) / whole.n - share)
        for digest, whole in wholes.items()
    ]
    if any(law for law, _ in laws):

        def error(number: float) -> float:
            parts = (law * (spread_of_share(number + apart) + apart**2) for law, apart in laws)
            return sqrt(sum(parts))

        point = with_draw(point, alpha, error)
        more["notes"] = (remark(Code.OF_DRAWN),)
    else:
        more |= {"simultaneous": True, "notes": (remark(Code.EXACT), remark(Code.IF_ALIKE))}
    n = sum(part.n for part in parts)
    return row_of(first.dimensions, point, n, alpha, SHARE, **more)


def _estimated(part: Slice, item: str, alpha: float) -> Row:
    (row,) = number_rows(part, [item], alpha, alpha)
    return row


def _spreading(metric: Metric) -> list[str]:
    """Return the dimensions whose values follow one another."""
    return [name for name in metric.segments if name in _SPREADING]


VERB = Verb(
    answer,
    refusal,
    Options,
    needs_time=True,
    estimates=False,
    counts=lambda options: options.item is None,
    joins=True,
    needs_segment=True,
    about=_spreading,
    chart=Chart.ORDERED,
    offer=Offer(
        "How far has each version spread?",
        200,
        is_usual=lambda metric: bool(_spreading(metric)),
        items=maxsize,
        no_item="all reports",
        joins_stretches=True,
        typed="adoption rollout upgraded migrated uptake spread far",
    ),
)
