"""Two-way tables: colour is the value, opacity its certainty, and the value is printed.

Values are steps of a ramp of colours; a legend explains both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ...analytics.rows import ALL, FAIR, GOOD, POOR, SHARE, Row
from ..letters import one_line, shortened, width_of
from ..numbers import (
    POINTS,
    Numbers,
    margin,
    number,
    numbers_of,
    plus_minus,
    range_of,
    reading,
    span,
    tick_labels,
    unit_of,
    value_of,
)
from .axes import label_width
from .frame import (
    PAD,
    ChartOptions,
    Note,
    Picture,
    constant,
    nothing,
    remarks,
    subtitle_of,
    text,
    unit_words,
    varying,
)
from .marks import Marker, rectangle
from .scale import nice_ticks
from .svg import CERTAINTY, SMALL, STEPS, TEXT, Element, element, group, ink_on, paint

_LINE: Final = 34  # user units
_ONE_LINE: Final = 500  # user units in which the whole legend has room
_BOX: Final = 22  # user units
_WORDS: Final = {GOOD: "sure", FAIR: "fair", POOR: "poor"}
_HIGH: Final = 30  # user units a row of cells
_WIDEST: Final = 96  # user units a cell
_NARROWEST: Final = 19  # user units, so that slanted labels do not touch
_SLANT: Final = 40  # degrees, of labels too long for their column
_SLANTED: Final = 100  # user units of a slanted label at most
_MOST_CELLS: Final = 240  # more would weigh more than the page
_TITLED: Final = 36  # cells; fewer also carry a title each
_BLANK: Final = "–"
_BETWEEN: Final = 12  # user units between the lines of a cell
_Form: TypeAlias = Callable[[Row, Numbers, float | None], tuple[str, ...]]
# How a number is printed, from the fullest: all cells of a table have the same form, of one line
# or two.  Where intervals have no room, a note gives their width.
_WHOLE: Final[tuple[_Form, ...]] = (
    lambda row, numbers, least: (reading(row, least=least),),
    lambda row, numbers, least: (value_of(row, least=least), margin(row, least=least)),
    lambda row, numbers, least: (
        value_of(row, least=least).partition(" ")[0],
        margin(row, least=least),
    ),
)
_CUT: Final[tuple[_Form, ...]] = (
    lambda row, numbers, least: (value_of(row, least=least),),
    lambda row, numbers, least: (value_of(row, least=least).partition(" ")[0],),
    lambda row, numbers, least: (_without_unit(row, numbers, 0.02),),
)


@dataclass(frozen=True)
class Ramp:
    """Which values are which step."""

    low: float
    high: float
    unit: str

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Ramp:
        """Return the ramp over the values of *rows*, from zero for shares."""
        values = [numbers.value for row in rows if (numbers := numbers_of(row))]
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


def heat_picture(rows: Sequence[Row], title: str, options: ChartOptions) -> Picture:
    """Return the cells of *rows*, which share a unit; a third dimension joins the first."""
    names = varying(rows)
    if len(names) < 2 or not any(map(numbers_of, rows)):
        return nothing(title, rows, options)
    table = _table(rows, names, options)
    ramp = Ramp.of([row for row in rows if numbers_of(row) and not _is_margin(row)] or rows)
    marker = Marker.of(options, list(table.rows.values()))
    form = _form(table, marker.least)
    drawn = _cells(table, ramp, marker, form)
    cells = group(drawn, text_anchor="middle", font_size=str(SMALL))
    body: list[Element] = [*_heads(table), cells]
    foot = table.top + _HIGH * len(table.downs) + 8.0
    body += ramp.legend(foot, options.width)
    fixed = " · ".join(rows[0].dimensions[name] for name in constant(rows))
    words = f"{unit_words(rows[0].unit)} by {' and '.join(names)}"
    return Picture(
        title=title,
        subtitle=subtitle_of(rows, words, fixed),
        description=_described(rows, names),
        body=tuple(body),
        height=foot + legend_height(options.width),
        notes=(*_notes(table, form), *remarks(rows)),
    )


@dataclass(frozen=True)
class _Table:
    """The cells by labels, and where they are in user units."""

    rows: dict[tuple[str, str], Row]
    downs: tuple[str, ...]
    acrosses: tuple[str, ...]
    left: float
    top: float
    wide: float
    slanted: bool
    left_out: tuple[int, int]


def _table(rows: Sequence[Row], names: Sequence[str], options: ChartOptions) -> _Table:
    placed = {}
    for row in rows:
        down = " · ".join(row.dimensions.get(name, "") for name in names[:-1])
        placed[down, row.dimensions.get(names[-1], "")] = row
    downs = tuple(dict.fromkeys(down for down, _ in placed))
    acrosses = tuple(dict.fromkeys(across for _, across in placed))
    left = PAD + min(max(map(label_width, downs)), 0.3 * options.width) + 8
    room = options.width - PAD - left
    most = int(room / _NARROWEST)
    columns = acrosses[:most]
    wide = min(room / len(columns), _WIDEST)
    widest = max(map(label_width, columns))
    slanted = widest > wide - 4
    if slanted:  # the last label leans out to the right
        wide = min((room - 0.77 * min(widest, _SLANTED)) / len(columns), wide)
    top = 12.0 + (0.65 * min(widest, _SLANTED) if slanted else 10)
    lines = downs[: min(options.most_rows, max(_MOST_CELLS // len(columns), 1))]
    left_out = len(downs) - len(lines), len(acrosses) - len(columns)
    return _Table(
        rows=placed,
        downs=lines,
        acrosses=columns,
        left=left,
        top=top,
        wide=wide,
        slanted=slanted,
        left_out=left_out,
    )


def _heads(table: _Table) -> Iterator[Element]:
    for i, across in enumerate(table.acrosses):
        x, y = table.left + table.wide * (i + 0.5), table.top - 8
        if table.slanted:
            yield _leaning(across, x, y)
        else:
            yield text(across, x, y, "label", "middle", table.wide - 2)
    for i, down in enumerate(table.downs):
        y = table.top + _HIGH * (i + 0.5)
        yield text(down, table.left - 8, y, "label", "end", table.left - 8 - PAD)


def _leaning(label: str, x: float, y: float) -> Element:
    shown, whole = shortened(label, TEXT, _SLANTED), one_line(label)
    return element(
        "text",
        shown,
        element("title", whole) if shown != whole else None,
        transform=f"translate({x:.1f},{y + 4:.1f}) rotate(-{_SLANT})",
        **paint("label"),
    )


def _cells(table: _Table, ramp: Ramp, marker: Marker, form: _Form | None) -> Iterator[Element]:
    titled = len(table.downs) * len(table.acrosses) <= _TITLED
    for i, down in enumerate(table.downs):
        for j, across in enumerate(table.acrosses):
            row = table.rows.get((down, across))
            x, y = table.left + table.wide * j + 1, table.top + _HIGH * i + 1
            if row is not None:
                own = None if _is_margin(row) else ramp
                shapes = _cell(row, x, y, table.wide - 2, own, form, marker.least)
                yield marker.mark(row, f"{down} · {across}", *shapes, titled=titled)


def _without_unit(row: Row, numbers: Numbers, least: float = 0.0) -> str:
    """Return the number of *row*, with digits as if its half-width were *least* at least."""
    return number(numbers.value, row.unit, max(numbers.half_width, least)).partition(" ")[0]


def _form(table: _Table, least: float | None) -> _Form | None:
    """Return the fullest form that fits into all cells, or None.

    Args: least: the half-width that chooses the digits of all cells.
    """
    rows = [row for key, row in table.rows.items() if key[0] in table.downs]
    numbered = [(row, numbers) for row in rows if (numbers := numbers_of(row))]
    room = table.wide - 4
    cut = _CUT if rows[0].unit == SHARE else _CUT[:-1]
    for form in (*_WHOLE, *cut):
        lines = (line for entry in numbered for line in form(*entry, least))
        if all(width_of(line, SMALL) <= room for line in lines):
            return form
    return None


def _cell(
    row: Row,
    x: float,
    y: float,
    wide: float,
    ramp: Ramp | None,
    form: _Form | None,
    least: float | None,
) -> Iterator[Element]:
    numbers = numbers_of(row)
    if numbers is None:
        yield rectangle(x, y, wide, _HIGH - 2, "empty")
        words = range_of(row)
        if not 0 < width_of(words, SMALL) <= wide - 2:
            words = _BLANK
        yield text(words, x + wide / 2, y + _HIGH / 2 - 1, "tick", "middle")
        return
    if ramp is None:
        yield rectangle(x, y, wide, _HIGH - 2, "margin-cell")
        for line, middle in _lines(form, row, numbers, least):
            yield text(line, x + wide / 2, y + middle - 4, "tick", "middle")
        return
    step, opacity = ramp.step(numbers.value), opacity_of(row)
    yield cell(x, y, wide, _HIGH - 2, step, opacity)
    for line, foot in _lines(form, row, numbers, least):
        yield element("text", line, x=x + wide / 2, y=y + foot, **ink_on(step, opacity))


def _lines(
    form: _Form | None, row: Row, numbers: Numbers, least: float | None
) -> Iterator[tuple[str, float]]:
    """Yield what is printed in a cell, and the foot of each line in it, in user units."""
    lines = [line for line in form(row, numbers, least) if line] if form else []
    first = _HIGH / 2 + 3 - _BETWEEN * (len(lines) - 1) / 2
    for i, line in enumerate(lines):
        yield line, first + _BETWEEN * i


def _is_margin(row: Row) -> bool:
    """Return whether a cell is a sum over a row or a column: it has a number, but no colour."""
    return ALL in row.dimensions.values()


def _notes(table: _Table, form: _Form | None) -> Iterator[Note]:
    rows = [row for row in table.rows.values() if numbers_of(row)]
    if form not in _WHOLE:
        yield Note(_widths(rows))
    downs, acrosses = table.left_out
    if downs:
        yield Note(f"and {downs:,} more below")
    if acrosses:
        yield Note(f"and {acrosses:,} more to the right")


def _widths(rows: Sequence[Row]) -> str:
    """Return how wide the intervals of *rows* are: "Intervals of ± 3 to 5 points"."""
    halves = [(row, (n.high - n.low) / 2) for row in rows if (n := numbers_of(row))]
    ends = [max(halves, key=lambda pair: sign * pair[1]) for sign in (-1, 1)]
    least, most = (plus_minus(half, unit_of(row)) for row, half in ends)
    among = least if least == most else f"{least} to {most.removeprefix('± ')}"
    unit = POINTS if rows[0].unit == SHARE else one_line(rows[0].unit)
    return f"Intervals of {among} {unit}".rstrip() + "; the table has each"


def _described(rows: Sequence[Row], names: Sequence[str]) -> str:
    numbered = [row for row in rows if numbers_of(row)]
    inside = [row for row in numbered if not _is_margin(row)] or numbered
    top = max(inside, key=lambda row: row.value or 0.0)
    where = ", ".join(top.dimensions.get(name, "") for name in names)
    return (
        f"Heat map of {len(rows)} cells by {', '.join(names)}. Greatest: {where}: {reading(top)}."
    )
