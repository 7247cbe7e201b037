"""The metric's own question: shares of items, mean and quantiles of numbers, of each slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from client_sdk.registry.domain import Domain
from client_sdk.registry.metric import Metric

from ..answer import answer_rows, quantile_items
from ..rows import Findings
from ..verb import OF_ALL, OF_BOTH, Devices, Offer, Slice, Verb, VerbQuery, never


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with all that one report tells.  Intervals are pointwise."""
    return Findings(tuple(row for part in slices for row in answer_rows(part, query.alpha)))


def refusal(metric: Metric) -> str | None:
    """Answer every metric whose answers have a list: not strings."""
    if metric.domain.labels or metric.domain.grid:
        return None
    return "has strings that nobody listed; ask for heavy_hitters"


def _combines(domain: Domain, options: Any) -> bool:
    """Return whether all rows are averages over reports: quantiles and means of keys are none."""
    return not domain.numbers


def _holds(metric: Metric, _: Any) -> Devices:
    """Return that quantiles and means of keys, where there are any, are of those that answered."""
    has_both = quantile_items(metric) or (metric.domain.numbers and metric.domain.labels)
    return OF_BOTH if has_both else OF_ALL


VERB = Verb(
    answer,
    refusal,
    combines=_combines,
    holds=_holds,
    is_bounded=True,
    title="Share of devices",
    offer=Offer("All of it in one table", 240, is_usual=never, typed="table everything raw"),
)
