"""The share of the devices that hold each key, and the mean of the numbers of each key."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from client_sdk.registry.metric import Metric
from client_sdk.registry.types.items import MEAN_OF

from ...core.errors import QueryError
from ..rows import Findings
from ..verb import OF_BOTH, Offer, Slice, Verb, VerbQuery
from . import estimate


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys that are wanted; all of them where none are named."""

    keys: list[str] = msgspec.field(default_factory=list)


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with two rows a key of each slice: its share, and its mean in the unit of the numbers.

    A mean is that of the holders, by Fieller's interval; a key that perhaps nobody holds has none.
    Intervals are pointwise.

    Raises: QueryError: ``options.keys``: no key of the metric.
    """
    for part in slices:
        domain = part.metric.domain
        for place, key in enumerate(query.options.keys):
            if key not in domain.labels:
                rule = f"must be one of the {domain.size} keys of {part.metric.address}"
                raise QueryError(f"options.keys.{place}", rule)
    findings = estimate.answer(slices, query)
    if not query.options.keys:
        return findings
    names = {name for key in query.options.keys for name in (key, MEAN_OF + key)}
    return Findings(tuple(row for row in findings.rows if row.item in names))


def refusal(metric: Metric) -> str | None:
    """Answer metrics of keys with numbers."""
    if metric.domain.numbers and metric.domain.labels:
        return None
    return "has no keys; ask for frequency or mean, or declare a metric of the type key_value"


VERB = Verb(
    answer,
    refusal,
    Options,
    holds=lambda _metric, _options: OF_BOTH,
    title="Share of devices and average per key",
    offer=Offer("How many have each, and how much of it?", 60, typed="each average mean"),
)
