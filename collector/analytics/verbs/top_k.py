"""The items with the largest shares, or the smallest, and between which ranks each of them is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import replace

from ...core.remarks import Code, Remark, remark
from ...estimation.arrays import Floats, Ints
from ...estimation.estimate import Estimate
from ...estimation.shrinkage import is_misleading, shrunken
from ..rows import Findings, Row
from ..verb import Offer, Slice, Verb, VerbQuery, is_plain, named, refused_rows, rows_of
from .frequency import refusal, shares_of


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """How many items of each slice, and from which end."""

    k: Annotated[int, Meta(ge=1, le=10_000)] = 10
    order: Literal["most", "least"] = "most"


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with the first k items of each slice, by their unbiased shares.

    The k are picked from all items, so the intervals hold at once, with 1 - alpha, for all items of
    all slices, whether shown or not.  An item is between two ranks: it ranks behind those whose
    interval lies wholly on the other side of its own, and behind no others for sure.

    What is picked for its size owes some of it to noise.  Where that is more than a little, the row
    has a likelier share beside, and a warning says by how much those shown mislead together.
    """
    rows: list[Row] = []
    warnings: list[Remark] = []
    facts: list[dict[str, object]] = []
    comparisons = sum(len(part.metric.domain.labels) for part in slices if part.refusal is None)
    for part in slices:
        if part.refusal is not None:
            # Which items are first is not told, so the rows are the first as they are declared.
            names = named(part.metric.domain.labels[: query.options.k])
            rows += refused_rows(part, names, query.alpha, simultaneous=True)
            continue
        estimates = shares_of(part, query.alpha / comparisons)  # Bonferroni: under any dependence
        picked, fact = _picked(part, estimates, query)
        rows += picked
        warnings += _misleading(part, picked, query.options.order)
        facts.append({"dimensions": dict(part.dimensions), **fact})
    return Findings(tuple(rows), tuple(warnings), facts={"slices": facts})


def _misleading(part: Slice, rows: Sequence[Row], order: str) -> Iterator[Remark]:
    """Yield how far the shares of *rows* that have a likelier one beside are off together."""
    beside = [(row.value, row.shrunken) for row in rows if row.shrunken is not None]
    if not beside:
        return
    values, likelier = (sum(share or 0.0 for share in each) for each in zip(*beside, strict=True))
    off, end = ("overstated", "largest") if order == "most" else ("understated", "smallest")
    yield remark(
        Code.PICKED,
        part.metric.address,
        ", ".join(part.dimensions.values()),
        misleading=len(beside),
        shown=len(rows),
        off=off,
        end=end,
        items=len(part.metric.domain.labels),
        values=100 * values,
        likelier=100 * likelier,
    )


def _picked(
    part: Slice, estimates: Sequence[Estimate], query: VerbQuery
) -> tuple[list[Row], dict[str, object]]:
    """Return the rows of the first items, and what is known of all."""
    labels, options = part.metric.domain.labels, query.options
    low, high = (
        np.array([getattr(item, end) for item in estimates]) for end in ("ci_low", "ci_high")
    )
    sign = -1 if options.order == "most" else 1
    order = np.argsort([sign * item.value for item in estimates], kind="stable")[: options.k]
    best, worst = ranks(low, high, options.order)
    unsure = low <= 0
    rows = []
    likelier = shrunken(estimates, order.tolist())
    for place, likely in zip(order.tolist(), likelier, strict=True):
        notes = [rank_of(int(best[place]), int(worst[place]), len(labels))]
        if unsure[place]:
            notes.append(remark(Code.PERHAPS_ZERO))
        names = named([labels[place]])
        estimate = estimates[place]
        (row,) = rows_of(part, names, [estimate], query.alpha, simultaneous=True, notes=notes)
        misleads = is_misleading(estimate, likely, largest=sign < 0)
        rows.append(replace(row, shrunken=likely) if misleads else row)
    fact = {
        "items": len(labels),
        "not_distinguishable_from_zero": int(unsure.sum()),
        "ranks": {labels[i]: [int(best[i]), int(worst[i])] for i in order.tolist()},
        "sure": _sure(best, worst, order.size),
    }
    return rows, fact


def ranks(low: Floats, high: Floats, order: str = "most") -> tuple[Ints, Ints]:
    """Return the best and the worst rank, from 1, that each interval leaves open.

    Args: low, high: limits that hold at once, shape (items,).
    """
    if order == "least":
        low, high = -high, -low
    ahead = low.size - np.searchsorted(np.sort(low), high, side="right")
    behind = np.searchsorted(np.sort(high), low, side="left")
    return 1 + ahead, low.size - behind


def rank_of(best: int, worst: int, count: int) -> Remark:
    """Return between which ranks an item is; none if these are two thirds of *count* or more."""
    if worst > best and 3 * (worst - best + 1) > 2 * count:
        return remark(Code.UNRANKED)
    ranks = f"between {best} and {worst}" if worst > best else f"{best}"
    return remark(Code.RANK, ranks=f"{ranks} of {count}")


def _sure(best: Ints, worst: Ints, k: int) -> int:
    """Return how many items are among the first k for sure."""
    return int((worst <= k).sum())


VERB = Verb(
    answer,
    refusal,
    Options,
    is_bounded=True,
    title="The 20 most common",
    panel={"k": 20},
    offer=Offer(
        "Which are most common?",
        10,
        is_usual=lambda metric: is_plain(metric) and not metric.domain.boolean,
        typed="top most least common popular favourite favorite rank commonest",
    ),
)
