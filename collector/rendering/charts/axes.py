"""Axes and columns: lines, ticks and labels that never run into one another.

Columns are the labels on the left of a chart and the numbers in words on its right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ...analytics.rows import Row
from ..letters import one_line, width_of
from ..numbers import margin, tick_labels, value_of
from .frame import PAD, ChartOptions, text
from .marks import Marker, rectangle, stroke, strokes
from .scale import Linear, nice_ticks
from .svg import SMALL, TEXT, Drawn, Element, Placed, group

FOOT: Final = 20  # user units below a plot, for tick labels
_APART: Final = 10  # user units between labels at least
_ROOM: Final = 84  # user units that any label may take; its neighbours are then left out
_OVERHANG: Final = 20  # user units that a label may stand out at either end
_LABELS: Final = 0.34  # of the width at most, for labels
_VALUES, _AFTER = 0.36, 0.3  # of the width at most, for numbers and for what follows them
_NARROWEST: Final = 30  # user units of the plot, however long the texts are
_GAP: Final = 10  # user units between columns
_EDGE: Final = 12  # user units at the sides of a narrow chart's plot, for labels that stand out
_INDENT: Final = 6  # user units, of words within the plot
FINGER: Final = 44  # user units, which are pixels on a phone: what a finger can point at
_ABOVE: Final = 18  # user units that a line is higher with its label above its mark
_OWN_LINE: Final = 16  # user units more, if the label has a line to itself
_TEXT_HIGH: Final = 16  # user units of clear ground behind a line of text
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
) -> list[Drawn]:
    """Return grid lines from *top* to *foot* and their labels below; a stronger line at zero."""
    places = [scale.at(tick) for tick in ticks]
    grid = [(x, top, x, foot) for tick, x in zip(ticks, places, strict=True) if tick]
    drawn: list[Drawn] = [strokes(grid, "grid")]
    drawn += [stroke(scale.at(0), top, scale.at(0), foot, "axis")] if 0 in ticks else []
    return drawn + labels_below(places, tick_labels(ticks, unit), foot, scale)


def labels_below(
    places: Sequence[float], labels: Sequence[str], foot: float, scale: Linear, wider: float = 1.0
) -> list[Drawn]:
    """Return the labels that fit, middles below *places*, kept near the ends of *scale*.

    Args: wider: how many times wider a page may draw them, whose style then leaves some out.
    """
    drawn: list[Drawn] = []
    free = float("-inf")
    apart = (scale.end - scale.start) / max(len(places), 1)
    room = min(max(apart - _APART, _ROOM), scale.end - scale.start)
    for x, label in zip(places, labels, strict=True):
        half = min(width_of(one_line(label), SMALL), room) / 2 / wider
        middle = min(max(x, scale.start - _OVERHANG + half), scale.end + _OVERHANG - half)
        if middle - half >= free:
            name = text(label, middle, foot + FOOT / 2 + 2, "tick", room=room)
            drawn.append(Placed(x, name))
            free = middle + half + _APART / wider
    return [group(drawn, text_anchor="middle", class_="dense" if wider > 1 else None)]


def left_axis(
    ticks: Sequence[float], scale: Linear, unit: str, left: float, right: float
) -> list[Drawn]:
    """Return grid lines from *left* to *right* and their labels to the left."""
    places = [scale.at(tick) for tick in ticks]
    grid = [(left, y, right, y) for tick, y in zip(ticks, places, strict=True) if tick]
    drawn: list[Drawn] = [strokes(grid, "grid")]
    drawn += [stroke(left, scale.at(0), right, scale.at(0), "axis")] if 0 in ticks else []
    labels = zip(places, tick_labels(ticks, unit), strict=True)
    texts = [text(label, left - 6, y, "tick") for y, label in labels]
    return [*drawn, Placed(left, group(texts, text_anchor="end"))]


def short_ticks(places: Iterable[float], foot: float) -> Element:
    """Return short lines at *places* below a plot that ends at *foot*."""
    return strokes([(place, foot, place, foot + 4) for place in places], "axis")


def left_width(ticks: Sequence[float], unit: str) -> float:
    """Return the room that the labels of a left axis need."""
    return max(width_of(label, SMALL) for label in tick_labels(ticks, unit)) + 8


@dataclass(frozen=True)
class Columns:
    """Where labels end, the plot begins and ends, and values end, in user units.

    In a narrow chart labels and numbers stand above the marks, which have its whole width; a line
    is then as high as a finger needs.
    """

    label: float
    start: float
    end: float
    value: float
    marker: Marker
    options: ChartOptions
    unit: str
    signed: bool = False
    stacked: float = 0.0  # user units from labels down to numbers, if one line has no room for both

    @classmethod
    def of(
        cls,
        rows: Sequence[Row],
        labels: Sequence[str],
        options: ChartOptions,
        unit: str,
        signed: bool = False,
        least: float = 0.0,
    ) -> Columns:
        """Return the columns in which all *labels* and the numbers of *rows* have room.

        Args: least: user units that the column of numbers has at least.
        """
        marker = Marker.of(options, rows, unit)
        named = max([_BOLD * label_width(label) for label in labels] or [0.0])
        values = [value_of(row, unit, signed, marker.least) for row in rows]
        widest = max([_BOLD * label_width(value) for value in values] or [0.0])
        after = max([label_width(margin(row, unit, marker.least)) for row in rows] or [0.0])
        value = options.width - PAD - (min(after, _AFTER * options.width) + 5 if after else 0)
        numbers = max(min(widest, _VALUES * options.width) + options.width - PAD - value, least)
        room = options.width - PAD - numbers - _GAP  # where labels end if numbers follow
        is_stacked = options.is_narrow and PAD + max(map(label_width, labels), default=0.0) > room
        beside = options.width - PAD if is_stacked else room
        label = beside if options.is_narrow else PAD + min(named, _LABELS * options.width)
        start = PAD + _EDGE if options.is_narrow else label + _GAP
        end = options.width - PAD - _EDGE if options.is_narrow else room - _GAP
        return cls(
            label=label,
            start=start,
            end=max(end, start + _NARROWEST),
            value=value,
            marker=marker,
            options=options,
            unit=unit,
            signed=signed,
            stacked=_OWN_LINE if is_stacked else 0.0,
        )

    def high(self, usual: float) -> float:
        """Return how high a line is that is *usual* where all stands side by side."""
        return max(usual + _ABOVE + self.stacked, FINGER) if self.options.is_narrow else usual

    @property
    def rise(self) -> float:
        """How far labels stand above the middle of a line."""
        return (_ABOVE + self.stacked) / 2 if self.options.is_narrow else 0.0

    @property
    def sink(self) -> float:
        """How far marks stand below the middle of a line."""
        return self.rise

    def ground(self, y: float) -> Iterator[Element]:
        """Yield what keeps lines of the plot out of label and numbers of the line at *y*.

        A line through a minus would make a plus of it.
        """
        yield from self.ground_of_text(y - self.rise, self.stacked)

    def ground_of_text(self, y: float, more: float = 0.0) -> Iterator[Element]:
        """Yield the ground of the text whose middle is at *y*, and of what is *more* below it."""
        if self.options.is_narrow:
            left = PAD + 1.0  # within the outline of a link
            width, high = self.options.width - 2 * left, _TEXT_HIGH + more
            yield rectangle(left, y - _TEXT_HIGH / 2, width, high, "paper")

    def line(self, row: Row, y: float, high: float, drawn: Iterable[Drawn]) -> Iterator[Drawn]:
        """Yield what is *drawn* of the line of *row*, which a link makes one target."""
        ends = (PAD, self.options.width - PAD) if self.options.is_narrow else self.plot
        box = rectangle(ends[0], y - high / 2, ends[1] - ends[0], high, "hover")
        yield from self.options.linked(row, drawn, box)

    def scale(self, low: float, high: float) -> tuple[tuple[float, ...], Linear]:
        """Return ticks from at most *low* to at least *high*, and the scale between the ends."""
        ticks = fitted_ticks(low, high, self.unit, self.end - self.start)
        return ticks, Linear(ticks[0], ticks[-1], self.start, self.end)

    @property
    def plot(self) -> tuple[float, float]:
        """Where the plot begins and ends."""
        return self.start, self.end

    def name(self, label: str, y: float, style: str = "label") -> Placed:
        """Return the label of a line."""
        room = self.label - PAD
        if self.options.is_narrow:
            return Placed(self.start, text(label, PAD, y - self.rise, style, room=room))
        return Placed(self.start, text(label, self.label, y, style, "end", room))

    def numbers(self, row: Row, y: float, style: str = "value") -> Iterator[Placed]:
        """Yield the number of *row* and what stands after it."""
        least, y = self.marker.least, y - self.rise + self.stacked
        room = _VALUES * self.options.width
        number = value_of(row, self.unit, self.signed, least)
        yield Placed(self.end, text(number, self.value, y, style, "end", room))
        after = margin(row, self.unit, least)
        if after:
            room = self.options.width - PAD - self.value
            yield Placed(self.end, text(after, self.value + 5, y, "margin", room=room))

    def words(self, said: str, y: float, brief: str = "") -> Placed:
        """Return words in place of a number, *brief* ones if there is no room for all."""
        left = PAD if self.options.is_narrow else self.start + _INDENT
        room = self.options.width - PAD - left
        shown = brief if brief and label_width(said) > room else said
        return Placed(self.start, text(shown, left, y + self.sink, "reason", room=room))


def label_width(label: str) -> float:
    """Return how wide *label* is."""
    return width_of(one_line(label), TEXT)
