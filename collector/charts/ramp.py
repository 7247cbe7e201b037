"""Values as steps of the ramp of colours, certainty as opacity, and the legend of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ..analytics.rows import FAIR, GOOD, POOR, SHARE, Row
from .frame import PAD, text
from .marks import rectangle
from .number import numbers_of, tick_labels
from .palette import STEPS
from .scale import nice_ticks, span
from .style import CERTAINTY, paint
from .svg import Element, element

_LINE: Final = 34  # user units
_ONE_LINE: Final = 500  # user units in which the whole legend has room
_BOX: Final = 22  # user units
_WORDS: Final = {GOOD: "sure", FAIR: "fair", POOR: "poor"}


@dataclass(frozen=True)
class Ramp:
    """Which values are which step."""

    low: float
    high: float
    unit: str

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Ramp:
        """Return the ramp over the values of *rows*, from zero for shares."""
        values = [found.value for row in rows if (found := numbers_of(row))]
        unit = rows[0].unit if rows else SHARE
        low, high = span(values)
        ticks = nice_ticks(
            0.0 if unit == SHARE else low, max(high, 0.0 if unit == SHARE else low), 5
        )
        return cls(max(ticks[0], 0.0) if unit == SHARE else ticks[0], ticks[-1], unit)

    def step(self, value: float) -> int:
        """Return the step of *value*, from 1."""
        part = (value - self.low) / (self.high - self.low)
        return 1 + min(int(STEPS * min(max(part, 0.0), 1.0)), STEPS - 1)

    def legend(self, y: float, width: float) -> Iterator[Element]:
        """Yield the legend: the steps with the values of both ends, then what opacity means."""
        low, _, high = tick_labels((self.low, (self.low + self.high) / 2, self.high), self.unit)
        yield text(low, PAD, y + 23, "note")
        for step in range(1, STEPS + 1):
            yield cell(PAD + _BOX * (step - 1), y, _BOX, 13, step, 1.0)
        yield text(high, PAD + _BOX * STEPS, y + 23, "note", "end")
        below = legend_height(width) > _LINE
        x, y = (float(PAD), y + _LINE) if below else (PAD + _BOX * STEPS + 30.0, y)
        for quality, words in _WORDS.items():
            yield cell(x, y, 13, 13, STEPS - 1, CERTAINTY[quality])
            yield text(words, x + 18, y + 6.5, "note")
            x += 62
        yield rectangle(x, y, 13, 13, "empty")
        yield text("no number", x + 18, y + 6.5, "note")


def legend_height(width: float) -> float:
    """Return the height of the legend of a chart of *width*: two lines if it is narrow."""
    return _LINE if width >= _ONE_LINE else _LINE + 22


def cell(x: float, y: float, width: float, height: float, step: int, opacity: float) -> Element:
    """Return a cell of the colour *step*."""
    place = {"x": x, "y": y, "width": width, "height": height}
    return element("rect", **place, **paint(f"cell-{step}"), fill_opacity=faint(opacity))


def faint(opacity: float) -> str | None:
    """Return *opacity* as an attribute, None for a full one."""
    return None if opacity == 1.0 else f"{opacity:g}"


def opacity_of(row: Row) -> float:
    """Return the opacity of *row*: how sure its number is."""
    return CERTAINTY.get(row.quality, CERTAINTY[POOR])
