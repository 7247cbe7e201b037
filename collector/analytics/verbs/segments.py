"""One number in every segment, and how it stands out from the others.

A number of few reports is far from the others mostly by noise, so with postprocess "pooled" each is
drawn towards the mean of all as far as noise explains it.  How much the true numbers differ is
estimated from how much more the unbiased ones differ than their errors would make them; each is
then moved so as to make the least error over all segments together.  The moved numbers are biased:
a single segment that truly stands out is drawn in, too.  Intervals stay those of the raw numbers.

Source: DerSimonian, Laird, Controlled Clinical Trials 1986, eq. 8: the variance between segments.
    Efron, Morris, JASA 1975: estimates that are drawn towards a common mean, and their risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from client_sdk.registry.metric import Metric

from ...core.remarks import Code, Remark, remark
from ...estimation.arrays import Floats
from ...estimation.significance import each_of
from ..comparing.mix import of_groups
from ..comparing.numbers import askable, items_of, number_rows, refusal, stretches_of
from ..rows import RAW, TIME, Findings, Row
from ..sums import averages
from ..verb import OTHER, Name, Offer, Slice, Verb, VerbQuery

POOLED: Final = "pooled"
LEAST: Final = 3  # segments; of fewer, nothing is known of how much they differ


@dataclass(frozen=True)
class Pool:
    """The moved *values*, their common *mean*, and the variance *between* true numbers."""

    values: tuple[float, ...]
    mean: float
    between: float


def pool_of(values: Sequence[float], variances: Sequence[float]) -> Pool | None:
    """Return *values* with known, positive *variances* drawn together; None of fewer than LEAST."""
    if len(values) < LEAST:
        return None
    raw, errors = np.array(values), np.array(variances)
    between = _between(raw, errors)
    weights = 1 / (errors + between)
    mean = float(weights @ raw / weights.sum())
    moved = mean + between * weights * (raw - mean)
    return Pool(tuple(moved.tolist()), mean, between)


def _between(raw: Floats, errors: Floats) -> float:
    """Return the variance between true numbers, 0 if errors explain all."""
    weights = 1 / errors
    total = weights.sum()
    apart = weights @ (raw - weights @ raw / total) ** 2
    return max(0.0, float((apart - (raw.size - 1)) / (total - (weights @ weights) / total)))


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """The item whose share is wanted; none is needed of a boolean or a number."""

    item: Name | None = None


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row a segment; intervals hold together over all, as they are to be compared.

    With postprocess "pooled" each number is drawn towards the mean of its stretch of time.

    Raises: QueryError: ``options.item``.
    """
    if not slices:
        return Findings(())
    (item,) = items_of(slices[0].metric, query.options.item, 1)
    slices = askable(slices)
    answered = sum(part.refusal is None for part in slices)
    level = each_of(query.alpha, answered)
    rows: list[Row] = []
    facts = []
    for group in stretches_of(slices):
        group_rows = [
            row
            for part in group
            for row in number_rows(
                part, [item], query.alpha, level, _notes(part), simultaneous=True
            )
        ]
        if query.postprocess == POOLED:
            group_rows, fact = _pool(group_rows)
            facts += [{"time": group[0].dimensions.get(TIME), **fact}] if fact else []
        rows += group_rows
    return Findings(tuple(rows), of_groups(slices), {"segments": answered, "pooling": facts})


def _notes(part: Slice) -> tuple[Remark, ...]:
    return (remark(Code.TOGETHER),) if OTHER in part.dimensions.values() else ()


def _pool(rows: Sequence[Row]) -> tuple[list[Row], dict[str, object] | None]:
    """Return *rows* with their numbers drawn together, and what is known of all of them."""
    rows_by_place = {
        i: row for i, row in enumerate(rows) if row.value is not None and row.std_error
    }
    pool = pool_of(
        [row.value or 0.0 for row in rows_by_place.values()],
        [(row.std_error or 0.0) ** 2 for row in rows_by_place.values()],
    )
    if pool is None:
        return list(rows), None
    moved, pooled = dict(zip(rows_by_place, pool.values, strict=True)), remark(Code.POOLED)
    result = [
        replace(row, value=moved[i], raw=row.value, postprocess=POOLED, notes=(*row.notes, pooled))
        if i in moved
        else row
        for i, row in enumerate(rows)
    ]
    return result, {"mean": pool.mean, "between": pool.between**0.5, "segments": len(rows_by_place)}


def _words(metric: Metric, dimension: str) -> str:
    chosen = [dimension] if dimension else metric.segments
    *others, last = (name.replace("_", " ") for name in chosen)
    return f"Does it differ by {', '.join(others)}{' or ' if others else ''}{last}?"


VERB = Verb(
    answer,
    refusal,
    Options,
    postprocess=(RAW, POOLED),
    combines=averages,
    unites=True,
    joins=True,
    needs_segment=True,
    ranks_segments=True,
    offer=Offer(
        "Does it differ between segments?",
        180,
        words=lambda metric, about: _words(metric, about) if metric.segments else "",
        items=1,
        typed="differ segment breakdown split highest lowest best worst",
    ),
)
