"""The share of the devices behind each item, be it a value, a member of a set or a held key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from client_sdk.mechanisms import KeyValueMechanism
from client_sdk.registry.encodings import ItemEncoding, VectorEncoding
from client_sdk.registry.metric import Metric

from ...core.errors import QueryError
from ...estimation.estimate import Estimate, key_shares, shares
from ..postprocess import OF_PARTS, OF_SEVERAL, processed
from ..rows import Findings
from ..sums import Shares
from ..verb import (
    Offer,
    Slice,
    Verb,
    VerbQuery,
    always,
    is_plain,
    named,
    refused_rows,
    rows_of,
    sampled,
    widened,
)


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with one row an item of each slice.  Intervals are pointwise: nothing is picked.

    Facts tell, for single items, what is left of 1 in each slice: nothing but noise, or devices
    that report what no item stands for.

    Raises: QueryError: ``postprocess`` makes one whole of what is none.
    """
    rows, unallocated = [], []
    for part in slices:
        _require_parts(part.metric, query.postprocess)
        names = named(part.metric.domain.labels)
        if part.refusal is not None:
            rows += refused_rows(part, names, query.alpha)
            continue
        raw = rows_of(part, names, shares_of(part, query.alpha), query.alpha)
        rows += processed(raw, query.postprocess)
        if is_whole(part.metric):
            unallocated.append({"dimensions": dict(part.dimensions), **_rest(part, query.alpha)})
    return Findings(tuple(rows), facts={"unallocated": unallocated} if unallocated else {})


def _rest(part: Slice, alpha: float) -> dict[str, object]:
    """Return 1 less the sum of all shares, with its interval."""
    shares = Shares.of_slice(part)
    (whole,) = shares.groups(np.ones((1, shares.values.size), dtype=bool), alpha)
    return {"value": 1 - whole.value, "ci_low": 1 - whole.ci_high, "ci_high": 1 - whole.ci_low}


def _require_parts(metric: Metric, postprocess: str) -> None:
    if postprocess in OF_SEVERAL or is_whole(metric):
        return
    allowed = ", ".join(OF_SEVERAL)
    rule = "a device may hold several items of this metric, so shares do not sum to 1"
    raise QueryError("postprocess", f"must be one of {allowed}: {rule}")


def is_whole(metric: Metric) -> bool:
    """Return whether the shares of the items are parts of one whole."""
    return metric.domain.encodes is ItemEncoding


def shares_of(part: Slice, alpha: float) -> list[Estimate]:
    """Return the share of each item of a slice with n > 0.  Raises InvalidTallyError."""
    mechanism = part.metric.mechanism
    if isinstance(mechanism, KeyValueMechanism):
        return sampled(part, key_shares(mechanism, part.tally, part.n, alpha), alpha)
    return widened(part, shares(mechanism, part.tally, part.n, alpha), alpha)


def refusal(metric: Metric) -> str | None:
    """Answer metrics with declared items."""
    if metric.domain.grid:
        return "has numbers, no items; ask for histogram, quantile or mean"
    if metric.domain.encodes is VectorEncoding:
        return "has vectors, no items; ask for vector"
    if metric.domain.labels:
        return None
    return "has no declared items; ask for heavy_hitters"


VERB = Verb(
    answer,
    refusal,
    postprocess=OF_PARTS,
    combines=always,
    is_bounded=True,
    offer=Offer(
        "How many?",
        90,
        words=lambda metric, _: "" if metric.domain.boolean else "What share has each?",
        # Of other types their own question says it better.
        is_usual=lambda metric: metric.domain.boolean or is_plain(metric),
        typed="share percent percentage rate % proportion fraction part usage",
    ),
)
