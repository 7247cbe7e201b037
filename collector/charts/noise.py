"""What noise alone could show: the interval of an estimate whose truth is zero, of one or many."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

from ..analytics.rows import Row
from .number import numbers_of

_FEWEST: Final = 3  # rows: of one row alone nothing is known about zero


def noise_of(rows: Sequence[Row]) -> float | None:
    """Return the half-width of the band around 0, or None if rows of different n share none.

    The noise of a share hardly depends on it, so that of the row nearest to zero is taken.
    """
    numbered = [(row.n, found) for row in rows if (found := numbers_of(row))]
    if len(numbered) < _FEWEST or len({n for n, _ in numbered}) > 1:
        return None
    return min((abs(found.value), found.half_width) for _, found in numbered)[1] or None


def widening(rows: Sequence[Row]) -> float:
    """Return how many times as long the intervals of *rows* must be to hold all at once.

    Of rows that are sorted or picked nothing less holds.  1 if they do already.

    Source: Bonferroni, under any dependence; errors taken as normal.
    """
    single = [row for row in rows if numbers_of(row) and not row.simultaneous]
    factors = (_quantile(row.alpha / len(single)) / _quantile(row.alpha) for row in single)
    return max(factors, default=1.0)


def _quantile(alpha: float) -> float:
    """Return what a normal error exceeds, up or down, with *alpha*; ends of (0, 1) are cut off."""
    return -NormalDist().inv_cdf(min(max(alpha, 1e-300), 0.999) / 2)


def median_half_width(rows: Sequence[Row]) -> float | None:
    """Return the half-width in the middle of those of *rows*, or None if none has a number."""
    halves = sorted(found.half_width for row in rows if (found := numbers_of(row)))
    return (halves[len(halves) // 2] or None) if halves else None
