"""The mean of the numbers of the devices that reported, in their unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from client_sdk.domains import KeyValueDomain, NumberDomain
from client_sdk.metric import Metric

from ... import estimate
from ...estimate import Estimate
from ..items.tables import refused_rows, rows_of
from ..rows import Findings, Row
from ..slices import Asked, Slice
from ..verb import Verb


def answer(slices: Sequence[Slice], asked: Asked) -> Findings:
    """Answer with one row a slice."""
    return Findings(tuple(row for one in slices for row in _rows(one, asked.alpha)))


def _rows(one: Slice, alpha: float) -> list[Row]:
    if one.refusal is not None:
        return refused_rows(one, [{}], alpha, unit_of(one.metric))
    return rows_of(one, [{}], [mean_of(one, alpha)], alpha, unit_of(one.metric))


def mean_of(one: Slice, alpha: float) -> Estimate:
    """Return the mean of a slice with n > 0.  Raises InvalidTallyError."""
    domain: Any = one.metric.domain
    return estimate.mean(one.metric.mechanism, domain, one.tally, one.n, alpha)


def unit_of(metric: Metric) -> str:
    """Return the unit of the numbers of *metric*."""
    assert isinstance(metric.domain, NumberDomain)  # noqa: S101 - see refusal
    return metric.domain.unit


def refusal(metric: Metric) -> str | None:
    """Answer metrics of numbers."""
    if isinstance(metric.domain, NumberDomain):
        return None
    if isinstance(metric.domain, KeyValueDomain):
        return "has numbers by key; ask for key_values"
    return "has items, no numbers; ask for frequency or top_k"


VERB = Verb(answer, refusal, combines=(NumberDomain,))
