"""The metric's own question: shares of items, mean and quantiles of numbers, of each slice."""

from __future__ import annotations

from collections.abc import Sequence

from client_sdk.domains import ItemDomain
from client_sdk.metric import Metric
from client_sdk.text_domain import TextDomain

from ..answer import answer_rows
from ..rows import Findings
from ..slices import Asked, Slice
from ..verb import Verb


def answer(slices: Sequence[Slice], asked: Asked) -> Findings:
    """Answer with all that one report tells.  Intervals are pointwise."""
    return Findings(tuple(row for one in slices for row in answer_rows(one, asked.alpha)))


def refusal(metric: Metric) -> str | None:
    """Answer every metric whose answers have a list: not strings."""
    if isinstance(metric.domain, TextDomain):
        return "has strings that nobody listed; ask for heavy_hitters"
    return None


VERB = Verb(answer, refusal, combines=(ItemDomain,))
