"""The metric's own question: shares of items, mean and quantiles of numbers, of each slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from client_sdk.registry.kinds import Domain
from client_sdk.registry.metric import Metric

from ..answer import answer_rows
from ..rows import Findings
from ..verb import Slice, Verb, VerbQuery


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


VERB = Verb(answer, refusal, combines=_combines)
