"""How many reports there are: counted, so exact."""

from __future__ import annotations

from collections.abc import Sequence

from client_sdk.registry.metric import Metric
from collector.analytics.rows import Findings, row_of
from collector.analytics.verb import Offer, Slice, Verb, VerbQuery
from collector.estimation.estimate import Estimate


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with one row a slice."""
    counts = [Estimate(part.n, 0.0, part.n, part.n) for part in slices]
    rows = [
        row_of(part.dimensions, count, part.n, query.alpha, "reports")
        for part, count in zip(slices, counts, strict=True)
    ]
    return Findings(tuple(rows))


def refusal(metric: Metric) -> str | None:
    """Answer every metric."""
    return None


VERB = Verb(answer, refusal, estimates=False, offer=Offer("How many reports came?", 230))
