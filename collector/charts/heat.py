"""Two-way tables: colour is the value, opacity its certainty, and the value is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from ..analytics.rows import ALL, SHARE, Row
from .columns import label_width
from .frame import DEFAULT, PAD, Face, Note, Picture, finish, nothing, subtitle_of, text
from .labels import constant, unit_words, varying
from .letters import one_line, shortened, width_of
from .marks import mark, rectangle
from .number import Numbers, number, numbers_of, range_of, reading
from .ramp import Ramp, cell, legend_height, opacity_of
from .remarks import remarks
from .style import SMALL, TEXT, ink_on, paint
from .svg import Element, element, group

_HIGH: Final = 30  # user units a row of cells
_WIDEST: Final = 96  # user units a cell
_NARROWEST: Final = 19  # user units, so that slanted labels do not touch
_SLANT: Final = 40  # degrees, of labels too long for their column
_SLANTED: Final = 100  # user units of a slanted label at most
_MOST_CELLS: Final = 240  # more would weigh more than the page
_TITLED: Final = 100  # cells; fewer also carry a title each
_BLANK: Final = "–"


def heat(rows: Sequence[Row], title: str, face: Face = DEFAULT) -> str:
    """Return an SVG of *rows* by the two dimensions in which they differ."""
    return finish(heat_picture(rows, title, face), face)


def heat_picture(rows: Sequence[Row], title: str, face: Face) -> Picture:
    """Return the cells of *rows*, which share a unit; a third dimension joins the first."""
    names = varying(rows)
    if len(names) < 2 or not any(map(numbers_of, rows)):
        return nothing(title, rows, face)
    table = _table(rows, names, face)
    ramp = Ramp.of([row for row in rows if numbers_of(row) and not _is_margin(row)] or rows)
    cells = group(_cells(table, ramp), text_anchor="middle", font_size=str(SMALL))
    body: list[Element] = [*_heads(table), cells]
    foot = table.top + _HIGH * len(table.downs) + 8.0
    body += ramp.legend(foot, face.width)
    fixed = " · ".join(rows[0].dimensions[name] for name in constant(rows))
    words = f"{unit_words(rows[0].unit)} by {' and '.join(names)}"
    return Picture(
        title=title,
        subtitle=subtitle_of(rows, words, fixed),
        description=_described(rows, names),
        body=tuple(body),
        height=foot + legend_height(face.width),
        notes=(*_notes(table), *remarks(rows)),
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


def _table(rows: Sequence[Row], names: Sequence[str], face: Face) -> _Table:
    placed = {}
    for row in rows:
        down = " · ".join(row.dimensions.get(name, "") for name in names[:-1])
        placed[down, row.dimensions.get(names[-1], "")] = row
    downs = tuple(dict.fromkeys(down for down, _ in placed))
    acrosses = tuple(dict.fromkeys(across for _, across in placed))
    left = PAD + min(max(map(label_width, downs)), 0.3 * face.width) + 8
    room = face.width - PAD - left
    most = int(room / _NARROWEST)
    shown = acrosses[:most]
    wide = min(room / len(shown), _WIDEST)
    widest = max(map(label_width, shown))
    slanted = widest > wide - 4
    if slanted:  # the last label leans out to the right
        wide = min((room - 0.77 * min(widest, _SLANTED)) / len(shown), wide)
    top = 12.0 + (0.65 * min(widest, _SLANTED) if slanted else 10)
    kept = downs[: min(face.most_rows, max(_MOST_CELLS // len(shown), 1))]
    left_out = len(downs) - len(kept), len(acrosses) - len(shown)
    return _Table(
        rows=placed,
        downs=kept,
        acrosses=shown,
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


def _cells(table: _Table, ramp: Ramp) -> Iterator[Element]:
    form = _form(table)
    told = len(table.downs) * len(table.acrosses) <= _TITLED
    for i, down in enumerate(table.downs):
        for j, across in enumerate(table.acrosses):
            row = table.rows.get((down, across))
            x, y = table.left + table.wide * j + 1, table.top + _HIGH * i + 1
            if row is not None:
                shapes = _cell(row, x, y, table.wide - 2, None if _is_margin(row) else ramp, form)
                yield mark(row, f"{down} · {across}", *shapes, told=told)


_Form: TypeAlias = Callable[[Row, Numbers], str]
# How a number is printed, from the fullest: all cells of a table have the same form.
_FORMS: Final[tuple[_Form, ...]] = (
    lambda row, found: reading(row),
    lambda row, found: number(found.value, row.unit, found.half_width),
    lambda row, found: number(found.value, row.unit, found.half_width).partition(" ")[0],
    lambda row, found: number(found.value, row.unit, max(found.half_width, 0.02)).partition(" ")[0],
)


def _form(table: _Table) -> _Form | None:
    """Return the fullest form that fits into all cells, or None."""
    shown = [row for key, row in table.rows.items() if key[0] in table.downs]
    numbered = [(row, found) for row in shown if (found := numbers_of(row))]
    room = table.wide - 4
    forms = _FORMS if shown[0].unit == SHARE else _FORMS[:-1]
    for form in forms:
        if all(width_of(form(row, found), SMALL) <= room for row, found in numbered):
            return form
    return None


def _cell(
    row: Row, x: float, y: float, wide: float, ramp: Ramp | None, form: _Form | None
) -> Iterator[Element]:
    found = numbers_of(row)
    if found is None:
        yield rectangle(x, y, wide, _HIGH - 2, "empty")
        shown = range_of(row)
        if not 0 < width_of(shown, SMALL) <= wide - 2:
            shown = _BLANK
        yield text(shown, x + wide / 2, y + _HIGH / 2 - 1, "tick", "middle")
        return
    if ramp is None:
        yield rectangle(x, y, wide, _HIGH - 2, "margin-cell")
        if form:
            yield text(form(row, found), x + wide / 2, y + _HIGH / 2 - 1, "tick", "middle")
        return
    step, opacity = ramp.step(found.value), opacity_of(row)
    yield cell(x, y, wide, _HIGH - 2, step, opacity)
    if form:
        place = x + wide / 2, y + _HIGH / 2 + 3
        yield element("text", form(row, found), x=place[0], y=place[1], **ink_on(step, opacity))


def _is_margin(row: Row) -> bool:
    """Return whether a cell is a sum over a row or a column: it has a number, but no colour."""
    return ALL in row.dimensions.values()


def _notes(table: _Table) -> Iterator[Note]:
    downs, acrosses = table.left_out
    if downs:
        yield Note(f"and {downs:,} more below")
    if acrosses:
        yield Note(f"and {acrosses:,} more to the right")


def _described(rows: Sequence[Row], names: Sequence[str]) -> str:
    numbered = [row for row in rows if numbers_of(row)]
    inside = [row for row in numbered if not _is_margin(row)] or numbered
    top = max(inside, key=lambda row: row.value or 0.0)
    where = ", ".join(top.dimensions.get(name, "") for name in names)
    return (
        f"Heat map of {len(rows)} cells by {', '.join(names)}. Greatest: {where}: {reading(top)}."
    )
