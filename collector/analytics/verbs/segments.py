"""One number in every segment, and how it stands out from the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from ...estimation.significance import each_of
from ..comparing.measure import askable, estimates_of, items_of, refusal
from ..comparing.pooling import POOLED, pooled
from ..rows import RAW, TIME, Findings, Row, empty_row, row_of, with_item
from ..sizes import TOGETHER
from ..slices import OTHER, Asked, Slice
from ..verb import Verb

_BIASED: Final = "drawn towards the mean of all segments; the interval is of the raw number"


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """The item whose share is wanted; none is needed of a boolean or a number."""

    item: Annotated[str, Meta(min_length=1, max_length=100)] | None = None


def answer(slices: Sequence[Slice], asked: Asked) -> Findings:
    """Answer with a row a segment; intervals hold together over all, as they are to be compared.

    With postprocess "pooled" each number is drawn towards the mean of its stretch of time.

    Raises: QueryError: ``options.item``.
    """
    if not slices:
        return Findings(())
    (item,) = items_of(slices[0].metric, asked.options.item, 1)
    slices = askable(slices)
    groups: dict[str, list[Slice]] = {}
    for one in slices:
        groups.setdefault(one.dimensions.get(TIME, ""), []).append(one)
    shown = sum(one.refusal is None for one in slices)
    level = each_of(asked.alpha, shown)
    rows: list[Row] = []
    facts = []
    for group in groups.values():
        found = [_row(one, item, level, asked.alpha) for one in group]
        if asked.postprocess == POOLED:
            found, fact = _pool(found)
            facts += [{"time": group[0].dimensions.get(TIME), **fact}] if fact else []
        rows += found
    return Findings(tuple(rows), facts={"segments": shown, "pooling": facts})


def _row(one: Slice, item: str, level: float, alpha: float) -> Row:
    name, unit = with_item(one.dimensions, item), one.metric.domain.unit
    if one.refusal is not None:
        return empty_row(name, one.n, alpha, unit, one.refusal, is_open=one.is_open)
    note = TOGETHER if OTHER in one.dimensions.values() else None
    more: dict[str, Any] = {"simultaneous": True, "is_open": one.is_open, "note": note}
    return row_of(name, estimates_of(one, level)[item], one.n, alpha, unit, **more)


def _pool(rows: Sequence[Row]) -> tuple[list[Row], dict[str, Any] | None]:
    """Return *rows* with their numbers drawn together, and what is known of all of them."""
    known = {i: row for i, row in enumerate(rows) if row.value is not None and row.std_error}
    found = pooled(
        [row.value or 0.0 for row in known.values()],
        [(row.std_error or 0.0) ** 2 for row in known.values()],
    )
    if found is None:
        return list(rows), None
    moved = dict(zip(known, found.values, strict=True))
    result = [
        replace(row, value=moved[i], raw=row.value, postprocess=POOLED, note=_noted(row))
        if i in moved
        else row
        for i, row in enumerate(rows)
    ]
    return result, {"mean": found.mean, "between": found.between**0.5, "segments": len(known)}


def _noted(row: Row) -> str:
    return "; ".join(filter(None, (row.note, _BIASED)))


VERB = Verb(answer, refusal, Options, postprocess=(RAW, POOLED), joins=True)
