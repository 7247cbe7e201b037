"""Axes: lines, ticks and labels that never run into one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .frame import text
from .letters import one_line, width_of
from .marks import stroke
from .number import tick_labels
from .scale import Linear, nice_ticks
from .style import SMALL
from .svg import Element

FOOT: Final = 20  # user units below a plot, for tick labels
_APART: Final = 10  # user units between labels at least
_ROOM: Final = 84  # user units that any label may take; others beside it are then left out
_OVERHANG: Final = 20  # user units that a label may stand out at either end


def fitted_ticks(low: float, high: float, unit: str, room: float) -> tuple[float, ...]:
    """Return ticks from at most *low* to at least *high* whose labels fit side by side."""
    for most in (8, 7, 6, 5, 4, 3):
        ticks = nice_ticks(low, high, most)
        widest = max(width_of(label, SMALL) for label in tick_labels(ticks, unit))
        if (widest + _APART) * (len(ticks) - 1) <= room:
            break
    return ticks


def bottom_axis(
    ticks: Sequence[float], scale: Linear, unit: str, top: float, foot: float
) -> list[Element]:
    """Return grid lines from *top* to *foot* and their labels below; a stronger line at zero."""
    places = [scale.at(tick) for tick in ticks]
    drawn = [
        stroke(x, top, x, foot, "axis" if tick == 0 else "grid")
        for tick, x in zip(ticks, places, strict=True)
    ]
    return drawn + labels_below(places, tick_labels(ticks, unit), foot, scale)


def labels_below(
    places: Sequence[float], labels: Sequence[str], foot: float, scale: Linear
) -> list[Element]:
    """Return the labels that fit, middles below *places*, kept near the ends of *scale*."""
    drawn, free = [], float("-inf")
    apart = (scale.end - scale.start) / max(len(places), 1)
    room = min(max(apart - _APART, _ROOM), scale.end - scale.start)
    for x, label in zip(places, labels, strict=True):
        half = min(width_of(one_line(label), SMALL), room) / 2
        middle = min(max(x, scale.start - _OVERHANG + half), scale.end + _OVERHANG - half)
        if middle - half >= free:
            drawn.append(text(label, middle, foot + FOOT / 2 + 2, "tick", "middle", room))
            free = middle + half + _APART
    return drawn


def left_axis(
    ticks: Sequence[float], scale: Linear, unit: str, left: float, right: float
) -> list[Element]:
    """Return grid lines from *left* to *right* and their labels to the left."""
    drawn = []
    for tick, label in zip(ticks, tick_labels(ticks, unit), strict=True):
        y = scale.at(tick)
        drawn.append(stroke(left, y, right, y, "axis" if tick == 0 else "grid"))
        drawn.append(text(label, left - 6, y, "tick", "end"))
    return drawn


def left_width(ticks: Sequence[float], unit: str) -> float:
    """Return the room that the labels of a left axis need."""
    return max(width_of(label, SMALL) for label in tick_labels(ticks, unit)) + 8
