"""The number that stands for a metric where there is room for one: how it is asked, and its row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from client_sdk.registry.metric import COUNT, Metric

from ..analytics.answer import MEAN
from ..analytics.rows import ALL, MEASURE, SHARE, TIME, Row
from ..analytics.verb import ACTIVES, AVERAGED, ESTIMATE, TOP, load


def question(metric: Metric, most: int) -> tuple[str, dict[str, object]]:
    """Return verb and options: the greatest of items needs intervals that hold at once.

    Args: most: items of a list.
    """
    domain = metric.domain
    if metric.show == COUNT:
        return ACTIVES, dict(AVERAGED)
    if domain.compared:
        return domain.verb, {}
    if len(domain.answer_items()) > 1 and domain.unit == SHARE and not domain.numbers:
        return TOP, {"k": most}
    if not is_listed(metric):
        # To look for common strings takes too long; to look one up counts reports.
        return domain.verb, {"candidates": [""]}
    return ESTIMATE, {}


def is_listed(metric: Metric) -> bool:
    """Return whether its own question has an answer without a search for strings."""
    return load(ESTIMATE).refusal(metric) is None


def headline(metric: Metric, rows: Sequence[Row]) -> Row | None:
    """Return the row of the number: the mean, the last step, or the greatest of the items."""
    if metric.domain.compared:
        measure = rows[0].dimensions[MEASURE] if metric.domain.largest else None
        members = [row for row in rows if measure in (None, row.dimensions[MEASURE])]
        return members[-1] if members else None
    if metric.domain.grid:
        return next((row for row in rows if row.item == MEAN), None)
    shares = [row for row in rows if row.unit == rows[0].unit]
    return greatest(shares) or (rows[0] if rows else None)


def latest(rows: Sequence[Row]) -> list[Row]:
    """Return the counts of stretches that are over, in their order; the running one if it is alone.

    Rows of all stretches together are left out.
    """
    each = [row for row in rows if row.dimensions.get(TIME) != ALL]
    return [row for row in each if not row.is_open] or each


def greatest(rows: Iterable[Row]) -> Row | None:
    """Return the row with the greatest number, None if none has one."""
    numbered = [row for row in rows if row.value is not None]
    return max(numbered, key=lambda row: row.value or 0.0, default=None)
