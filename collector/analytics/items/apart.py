"""The table of two answers that were collected apart: its margins, and bounds of its cells.  Pure.

Whether the same devices gave both answers is not in the reports, and no analysis brings it back.
With shares a and b of the two answers, the share of both lies between max(0, a + b - 1) and
min(a, b), and may be anywhere between: so a row has these bounds and no number.

Source: Fréchet, Annales de l'Université de Lyon 1951: the bounds, which cannot be improved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...estimation.estimate import Estimate, shares
from ..repeats import widened
from ..rows import ALL, SHARE, Row, empty_row
from ..slices import Slice
from .tables import refused_rows, rows_of

APART: Final = "the two were collected apart, so no more than bounds of both together is known"


def bounded(one: Slice, other: Slice, alpha: float, tables: int = 0) -> list[Row]:
    """Return a row for each item of *one* with each of *other*, then those of both margins.

    The bounds of a cell hold with 1 - *alpha*, as both its margins do with half of it.

    Args: tables: whose intervals are to hold at once with those of this one; 0: each for itself.
    """
    first, second = one.metric.name, other.metric.name
    cells = [{first: x, second: y} for x in _labels(one) for y in _labels(other)]
    rows = [{first: x, second: ALL} for x in _labels(one)]
    columns = [{first: ALL, second: y} for y in _labels(other)]
    refusal = one.refusal or other.refusal
    if refusal is not None:
        names: Sequence[Mapping[str, str]] = [*cells, *rows, *columns]
        return refused_rows(one, names, alpha, reason=refusal, simultaneous=tables > 0)
    margins = (len(rows) + len(columns)) * tables
    inside = [_shares(part, alpha / (margins or 2)) for part in (one, other)]
    beside = [_shares(part, alpha / (margins or 1)) for part in (one, other)]
    n, is_open = min(one.n, other.n), one.is_open or other.is_open
    more = {"simultaneous": tables > 0, "is_open": is_open}
    ends = [_between(a, b) for a in inside[0] for b in inside[1]]
    return [
        *(
            empty_row({**one.dimensions, **name}, n, alpha, SHARE, APART, ends=end, **more)
            for name, end in zip(cells, ends, strict=True)
        ),
        *rows_of(one, rows, beside[0], alpha, simultaneous=tables > 0),
        *rows_of(other, columns, beside[1], alpha, simultaneous=tables > 0),
    ]


def _between(a: Estimate, b: Estimate) -> tuple[float, float]:
    """Return the bounds of what is in both shares, wherever these are in their intervals."""
    low = max(0.0, a.ci_low + b.ci_low - 1)
    return low, max(low, min(1.0, a.ci_high, b.ci_high))


def _shares(one: Slice, alpha: float) -> list[Estimate]:
    return widened(one, shares(one.metric.mechanism, one.tally, one.n, alpha))


def _labels(one: Slice) -> tuple[str, ...]:
    return one.metric.domain.labels
