"""What a question leaves open: the dimension that it is about, the arms, the period before.

Pages, commands and programs get the same, and an answer repeats the question with it.
"""

from __future__ import annotations

from msgspec import structs

from client_sdk.core.epoch import ONCE
from client_sdk.registry.metric import Metric

from ..analytics.verb import Verb, load
from .request import Query
from .window import PREVIOUS


def completed(query: Query, metric: Metric) -> Query:
    """Return *query*, whose first metric is *metric*, with what was left out."""
    verb, dimensions, against = load(query.verb), list(query.dimensions), query.against
    if verb.needs_segment and metric.segments and not metric.segments.keys() & set(dimensions):
        dimensions.append(str(query.options.get("dimension") or dimension_of(verb, metric)))
    if verb.compares and not dimensions and against is None:
        by = query.options.get("by")
        if by in metric.segments or (metric.every == ONCE and metric.segments):
            dimensions = [str(by or dimension_of(verb, metric))]
        elif metric.every != ONCE:
            against = PREVIOUS
    chosen = [name for name in dimensions if name in metric.segments]
    options = {**verb.defaults(metric, query.options, chosen), **query.options}
    return structs.replace(query, dimensions=dimensions, against=against, options=options)


def dimension_of(verb: Verb, metric: Metric) -> str:
    """Return the dimension of *metric* that *verb* is about if none is chosen; "" of none."""
    return next(iter([*verb.about(metric), *metric.segments]), "")
