"""Horizontal bars with whiskers: one value with its interval per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from ..analytics import Row

WIDTH: Final = 640  # user units
ROW: Final = 24  # user units a row
LABEL: Final = 150  # user units left of the axis
VALUE: Final = 130  # user units right of the plot, for the number
_MARGIN: Final = 8


def bars(rows: Sequence[Row], title: str, unit: str) -> str:
    """Return an SVG of *rows*; a row without a number shows its reason instead of a bar.

    Args: unit: "share" is shown as percent; anything else as it is.
    """
    height = ROW * len(rows) + 2 * _MARGIN
    scale = _Scale(rows)
    drawn = "".join(_row(row, i, scale, unit) for i, row in enumerate(rows))
    axis = f'<line class="axis" x1="{LABEL}" x2="{LABEL}" y1="0" y2="{height}"/>'
    label = escape(title, {'"': "&quot;"})
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">'
        f"<title>{escape(title)}</title>{drawn}{axis}</svg>"
    )


def number(value: float, unit: str) -> str:
    """Return *value* as people read it: percent for shares."""
    return f"{100 * value:.2f} %" if unit == "share" else f"{value:.2f} {unit}"


class _Scale:
    """Maps values to user units; zero is always in view."""

    def __init__(self, rows: Sequence[Row]) -> None:
        ends = [end for row in rows for end in (row.ci_low, row.ci_high) if end is not None]
        self.low = min([0.0, *ends])
        self.high = max([0.0, *ends]) or 1.0

    def x(self, value: float) -> float:
        plot = WIDTH - LABEL - VALUE
        return round(LABEL + plot * (value - self.low) / (self.high - self.low), 2)


def _row(row: Row, index: int, scale: _Scale, unit: str) -> str:
    middle = _MARGIN + index * ROW + ROW / 2
    label = (
        f'<text class="label" x="{LABEL - 8}" y="{middle}" text-anchor="end">'
        f"{escape(row.item)}</text>"
    )
    if row.value is None or row.ci_low is None or row.ci_high is None:
        reason = escape(row.reason or "")
        return f'{label}<text class="reason" x="{LABEL + 8}" y="{middle}">{reason}</text>'
    zero, end = scale.x(0.0), scale.x(row.value)
    low, high = scale.x(row.ci_low), scale.x(row.ci_high)
    text = f"{number(row.value, unit)} ± {number((row.ci_high - row.ci_low) / 2, unit)}"
    return (
        f"{label}"
        f'<rect class="bar" x="{min(zero, end)}" y="{middle - 8}"'
        f' width="{abs(end - zero):.2f}" height="16"/>'
        f'<line class="whisker" x1="{low}" x2="{high}" y1="{middle}" y2="{middle}"/>'
        f'<line class="whisker" x1="{low}" x2="{low}" y1="{middle - 5}" y2="{middle + 5}"/>'
        f'<line class="whisker" x1="{high}" x2="{high}" y1="{middle - 5}" y2="{middle + 5}"/>'
        f'<text class="number" x="{WIDTH - VALUE + 8}" y="{middle}">{escape(text)}</text>'
    )
