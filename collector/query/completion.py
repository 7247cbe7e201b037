"""What a question leaves open: the dimension that it is about, the arms, the period before.

Pages, commands and programs get the same, and an answer repeats the question with it.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import structs

from client_sdk.core.epoch import ONCE
from client_sdk.registry.metric import Metric

from ..analytics.comparing import arms
from .request import Query
from .window import PREVIOUS

COMPARE, LIFT, ADOPTION, SEGMENTS = "compare", "lift", "adoption", "segments"
NEEDS_SEGMENT: Final = frozenset({SEGMENTS, LIFT, ADOPTION})  # one dimension is what they are about
SPREADING: Final = frozenset({"version", "release", "build"})
_RANGE: Final = "range"


def completed(query: Query, metric: Metric) -> Query:
    """Return *query*, whose first metric is *metric*, with what was left out."""
    dimensions, against = list(query.dimensions), query.against
    chosen = [name for name in dimensions if name in metric.segments]
    if query.verb in NEEDS_SEGMENT and not chosen and metric.segments:
        chosen = [str(query.options.get("dimension") or dimension_of(query.verb, metric))]
        dimensions += chosen
    if query.verb == COMPARE and not dimensions and against is None:
        by = query.options.get("by")
        if by in metric.segments or (metric.every == ONCE and metric.segments):
            dimensions = [str(by or dimension_of(query.verb, metric))]
        elif metric.every != ONCE:
            against = PREVIOUS
    options = dict(query.options)
    if query.verb == LIFT and chosen:
        own = options.setdefault("dimension", _likely(arms_of(metric), chosen))
        if own in metric.segments:
            options.setdefault("control", control_of(metric, own))
    if query.verb == _RANGE and not {"low", "high", "ranges"} & options.keys():
        options |= _middle(metric)
    return structs.replace(query, dimensions=dimensions, against=against, options=options)


def arms_of(metric: Metric) -> list[str]:
    """Return the dimensions into whose values a lot puts devices, as far as their names tell."""
    return [name for name, values in metric.segments.items() if arms.are_arms(name, values)]


def dimension_of(verb: str, metric: Metric) -> str:
    """Return the dimension that *verb* is about if none is chosen."""
    names = list(metric.segments)
    likely = {LIFT: arms_of(metric), ADOPTION: [name for name in names if name in SPREADING]}
    return _likely(likely.get(verb, []), names)


def control_of(metric: Metric, dimension: str) -> str:
    """Return the arm that others are held against if none is chosen."""
    values = metric.segments[dimension]
    return arms.control_of(values) or values[0]


def _likely(likely: list[str], names: list[str]) -> str:
    """Return the first of *names* that is *likely*, or else the first; "" of none."""
    return next((name for name in names if name in likely), names[0] if names else "")


def _middle(metric: Metric) -> dict[str, Any]:
    """Return the upper half of the numbers, or the lower half of the items."""
    grid = metric.domain.grid
    if grid is None:
        labels = metric.domain.labels
        return {"high": labels[(metric.domain.size - 1) // 2]} if labels else {}
    middle = grid.minimum + (grid.size - 1) // 2 * grid.step
    return {"low": float(middle)}
