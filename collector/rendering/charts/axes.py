"""Axes and columns: lines, ticks and labels that never run into one another.

Columns are the labels on the left of a chart and the numbers in words on its right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...analytics.rows import Row
from ..numbers import margin, one_line, tick_labels, value_of, width_of
from .frame import PAD, Face, text
from .marks import stroke
from .scale import Linear, nice_ticks
from .svg import SMALL, TEXT, Element

FOOT: Final = 20  # user units below a plot, for tick labels
_APART: Final = 10  # user units between labels at least
_ROOM: Final = 84  # user units that any label may take; others beside it are then left out
_OVERHANG: Final = 20  # user units that a label may stand out at either end
_LABELS: Final = 0.34  # of the width at most, for labels
_VALUES, _AFTER = 0.36, 0.3  # of the width at most, for numbers and for what follows them
_NARROWEST: Final = 30  # user units of the plot, however long the texts are
_GAP: Final = 10  # user units between columns
_INDENT: Final = 6  # user units, of words within the plot
_BOLD: Final = 1.06  # how much wider bold digits are


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


@dataclass(frozen=True)
class Columns:
    """Where labels end, the plot begins and ends, and values end, in user units."""

    label: float
    start: float
    end: float
    value: float
    width: float
    unit: str
    signed: bool = False

    @classmethod
    def of(
        cls,
        rows: Sequence[Row],
        labels: Sequence[str],
        face: Face,
        unit: str,
        signed: bool = False,
        least: float = 0.0,
    ) -> Columns:
        """Return the columns in which all *labels* and the numbers of *rows* have room.

        Args: least: user units that the column of numbers has at least.
        """
        named = max([_BOLD * label_width(label) for label in labels] or [0.0])
        values = [value_of(row, unit, signed) for row in rows]
        widest = max([_BOLD * label_width(value) for value in values] or [0.0])
        after = max([label_width(margin(row, unit)) for row in rows] or [0.0])
        label = PAD + min(named, _LABELS * face.width)
        value = face.width - PAD - (min(after, _AFTER * face.width) + 5 if after else 0)
        numbers = max(min(widest, _VALUES * face.width) + face.width - PAD - value, least)
        start = label + _GAP
        end = max(face.width - PAD - numbers - 2 * _GAP, start + _NARROWEST)
        return cls(
            label=label,
            start=start,
            end=end,
            value=value,
            width=face.width,
            unit=unit,
            signed=signed,
        )

    def scale(self, low: float, high: float) -> tuple[tuple[float, ...], Linear]:
        """Return ticks from at most *low* to at least *high*, and the scale between the ends."""
        ticks = fitted_ticks(low, high, self.unit, self.end - self.start)
        return ticks, Linear(ticks[0], ticks[-1], self.start, self.end)

    def name(self, label: str, y: float, look: str = "label") -> Element:
        """Return the label of a line."""
        return text(label, self.label, y, look, "end", self.label - PAD)

    def numbers(self, row: Row, y: float, look: str = "value") -> Iterator[Element]:
        """Yield the number of *row* and what stands after it."""
        room = _VALUES * self.width
        yield text(value_of(row, self.unit, self.signed), self.value, y, look, "end", room)
        after = margin(row, self.unit)
        if after:
            yield text(after, self.value + 5, y, "margin", room=self.width - PAD - self.value)

    def words(self, said: str, y: float, brief: str = "") -> Element:
        """Return words in place of a number, *brief* ones if there is no room for all."""
        left = self.start + _INDENT
        room = self.width - PAD - left
        shown = brief if brief and label_width(said) > room else said
        return text(shown, left, y, "reason", room=room)


def label_width(label: str) -> float:
    """Return how wide *label* is."""
    return width_of(one_line(label), TEXT)
