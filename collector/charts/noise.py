"""What noise alone could show: the interval of an estimate whose truth is zero."""

from __future__ import annotations

from collections.abc import Sequence
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


def median_half_width(rows: Sequence[Row]) -> float | None:
    """Return the half-width in the middle of those of *rows*, or None if none has a number."""
    halves = sorted(found.half_width for row in rows if (found := numbers_of(row)))
    return (halves[len(halves) // 2] or None) if halves else None
