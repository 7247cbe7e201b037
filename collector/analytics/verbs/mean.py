"""The mean of the numbers of the devices that reported, in their unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from client_sdk.registry.encodings import VectorEncoding
from client_sdk.registry.metric import Metric

from ...estimation import estimate
from ...estimation.estimate import Estimate
from ..rows import Findings, Row
from ..verb import Offer, Slice, Verb, VerbQuery, always, refused_rows, rows_of, sampled


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with one row a slice."""
    return Findings(tuple(row for part in slices for row in _rows(part, query.alpha)))


def _rows(part: Slice, alpha: float) -> list[Row]:
    if part.refusal is not None:
        return refused_rows(part, [{}], alpha, part.metric.domain.unit)
    return rows_of(part, [{}], [mean_of(part, alpha)], alpha, part.metric.domain.unit)


def mean_of(part: Slice, alpha: float) -> Estimate:
    """Return the mean of a slice with n > 0.  Raises InvalidTallyError."""
    return sampled(part, [mean_of_reports(part, alpha)], alpha)[0]


def mean_of_reports(part: Slice, alpha: float) -> Estimate:
    """Return the mean of the devices that reported, whatever a panel drew."""
    domain: Any = part.metric.domain
    return estimate.mean(part.metric.mechanism, domain, part.tally, part.n, alpha)


def refusal(metric: Metric) -> str | None:
    """Answer metrics of numbers."""
    if metric.domain.grid:
        return None
    if metric.domain.numbers:
        return "has numbers by key; ask for key_values"
    if metric.domain.encodes is VectorEncoding:
        return "has vectors; ask for vector"
    return "has items, no numbers; ask for frequency or top_k"


VERB = Verb(
    answer,
    refusal,
    combines=always,
    is_bounded=True,
    title="Mean",
    offer=Offer("How much on average?", 100, typed="average mean avg typical"),
)
