"""Rows as people are shown them: no share above 100 %, no count below 0, no funnel that rises.

Debiased numbers are unbiased, and so some are of what cannot be.  Files, tables of a page and the
API keep these.  Charts, tiles and prose show the nearest possible value, and say that it is one.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from ..analytics.monotone import isotonic, weights_of
from ..analytics.rows import (
    DEVICES,
    ITEM,
    MEASURE,
    POSSIBLE,
    RAW,
    REACHED,
    RELATIVE,
    SHARE,
    Chart,
    Row,
)
from .numbers import POINTS, Numbers, numbers_of, unit_of

_ENDS: Final = MappingProxyType(
    {SHARE: (0.0, 1.0), POINTS: (-1.0, 1.0), RELATIVE: (-1.0, inf), DEVICES: (0.0, inf)}
)


def possible(rows: Iterable[Row], kind: Chart = Chart.ROWS) -> list[Row]:
    """Return *rows* with the nearest possible numbers, as their chart shows them.

    Steps of a funnel that more devices reached than the one before are pooled, weighted by their
    variances.  A curve is drawn as never falling, which needs its raw numbers.
    """
    shown = list(rows)
    if kind == Chart.CURVE:
        return shown
    if kind == Chart.STEPS:
        shown = _falling(shown)
    return [
        _moved(row, nearest(numbers, unit_of(row))) if (numbers := numbers_of(row)) else row
        for row in shown
    ]


def nearest(numbers: Numbers, unit: str) -> Numbers:
    """Return *numbers* cut off at what is possible in *unit*.

    An interval that would be cut off to less than half its length, or to a point, keeps half of it
    from the end on: where all of it is impossible, nothing is known better for it.
    """
    least, most = _ENDS.get(unit, (-inf, inf))
    value, low, high = (min(max(number, least), most) for number in numbers)
    half = numbers.half_width
    if numbers.low < least:
        high = min(max(high, low + half), most)
    if numbers.high > most:
        low = max(min(low, high - half), least)
    return Numbers(value, low, high)


def _falling(rows: Sequence[Row]) -> list[Row]:
    """Return *rows* with no more devices that reached a step than reached the one before."""
    shown, groups = list(rows), dict[tuple[tuple[str, str], ...], list[int]]()
    for place, row in enumerate(rows):
        if row.dimensions.get(MEASURE) == REACHED and numbers_of(row):
            group = tuple((k, v) for k, v in row.dimensions.items() if k != ITEM)
            groups.setdefault(group, []).append(place)
    for places in groups.values():
        values = [-(rows[place].value or 0.0) for place in places]
        weights = weights_of([rows[place].std_error or 0.0 for place in places])
        for place, value in zip(places, isotonic(values, weights, -inf, inf), strict=True):
            low, high = rows[place].ci_low or 0.0, rows[place].ci_high or 0.0
            shown[place] = _moved(rows[place], Numbers(-value, min(low, -value), max(high, -value)))
    return shown


def _moved(row: Row, numbers: Numbers) -> Row:
    """Return *row* with *numbers*, and what it was if its value is another."""
    value, low, high = numbers
    if (value, low, high) == (row.value, row.ci_low, row.ci_high):
        return row
    if value == row.value:
        return replace(row, ci_low=low, ci_high=high)
    raw = row.value if row.raw is None else row.raw
    kind = POSSIBLE if row.postprocess == RAW else row.postprocess
    return replace(row, value=value, ci_low=low, ci_high=high, raw=raw, postprocess=kind)
