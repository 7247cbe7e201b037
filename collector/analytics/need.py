"""Whether a number is precise enough for the decision that it is for.  Pure.

A registry may declare the half-width of the 95 % interval that a metric's decision needs.  Where
an estimate has not got it, there is no number but the reason and the reports that are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from client_sdk.registry.metric import Metric

from ..estimation.estimate import normal_quantile
from ..estimation.precision import ALPHA, in_words, scale_of, still_needed, wished
from .rows import Row, empty_row


def shortage(metric: Metric, n: int) -> str:
    """Return why *n* reports, fewer than ``min_reports``, give no number, and what is missing."""
    return f"not enough reports: {n} of at least {metric.min_reports} needed; {_missing(metric, n)}"


def guard(rows: Sequence[Row], metric: Metric) -> tuple[Row, ...]:
    """Return *rows* of estimates of *metric*, without the numbers that miss its declared need.

    Differences, and rows in another unit than that of the need, stay as they are.
    """
    if metric.need is None:
        return tuple(rows)
    need, unit = float(metric.need), scale_of(metric).unit
    return tuple(
        _refused(row, metric, need)
        if row.unit == unit and row.p_value is None and _half_width(row) > need
        else row
        for row in rows
    )


def _half_width(row: Row) -> float:
    """Return the half-width of the 95 % interval, whatever level the row has; 0 of no number."""
    return normal_quantile(ALPHA) * (row.std_error or 0.0)


def _refused(row: Row, metric: Metric, need: float) -> Row:
    """Return the reason in place of the number."""
    found = _half_width(row)
    part = found / scale_of(metric).whole
    planned = still_needed(metric, row.n)
    missing = None if planned is None else max(planned, ceil(row.n * (found / need) ** 2) - row.n)
    reason = f"not precise enough: {in_words(metric, part)}; {_missing(metric, row.n, missing)}"
    return empty_row(
        dimensions=row.dimensions,
        n=row.n,
        alpha=row.alpha,
        unit=row.unit,
        reason=reason,
        simultaneous=row.simultaneous,
        is_open=row.is_open,
        note=row.note,
    )


def _missing(metric: Metric, n: int, more: int | None = None) -> str:
    """Return how many *more* reports the need takes, or those that the plan says."""
    wish = in_words(metric, wished(metric))
    missing = still_needed(metric, n) if more is None else more
    if missing is None:
        return f"no number of reports gives {wish}"
    return f"{wish} takes {missing:,} more"
