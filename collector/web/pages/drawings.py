"""The charts of a page: each drawn for a wide column and for a phone; a style shows one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from ...analytics.rows import AGAINST, ITEM, MEASURE, TIME, Row, altered
from ...analytics.verbs.actives import DEVICES
from ...rendering.charts import Before, Face, Mark, chart_of
from ...rendering.charts.frame import varying

WIDTH: Final = 540  # user units: about the pixels of a panel, so that its letters are of its size
NARROW_WIDTH: Final = 320  # user units: the pixels of a panel on a phone of 360
_NARROW: Final = "-n"  # after the prefix of ids
WINDOW: Final = "window"
_PAIR: Final = "pair"
_OF_TIME: Final = frozenset({TIME, WINDOW})
Draw = Callable[[Face], str]


def twice(draw: Draw, prefix: str, **face: Any) -> Markup:
    """Return what *draw* draws in both layouts.

    Args: prefix: of ids.  face: further fields of both faces.
    """
    wide = Face(prefix, heading=False, width=WIDTH, look="broad", styled=True, **face)
    narrow = Face(
        prefix + _NARROW,
        heading=False,
        width=NARROW_WIDTH,
        look="narrow",
        styled=True,
        felt=False,
        **face,
    )
    return Markup(draw(wide) + draw(narrow))  # noqa: S704  # both escape


def charts_of(
    verb: str,
    rows: Sequence[Row],
    title: str,
    prefix: str,
    *,
    marks: Sequence[Mark] = (),
    before: Before | None = None,
    facts: Mapping[str, Any] | None = None,
    **face: Any,
) -> Markup:
    """Return the chart of *rows* in both layouts."""

    def draw(own: Face) -> str:
        return chart_of(verb, rows, title, own, facts=facts, marks=marks, before=before)

    return twice(draw, prefix, **face)


def plain_row(row: Row) -> Row:
    """Return *row* without what its panel tells already: its measure, and how it was counted."""
    dimensions = {
        WINDOW if name == TIME and "/" in value else name: value  # two windows make no line
        for name, value in row.dimensions.items()
        if name != MEASURE
    }
    note = None if row.unit == DEVICES else row.note
    if note == row.note and dimensions == row.dimensions:
        return row
    return altered(row, dimensions=dimensions, note=note)


def labelled(rows: Sequence[Row]) -> Sequence[Row]:
    """Return differences with no more in their labels than tells them apart."""
    if not all(AGAINST in row.dimensions for row in rows):
        return rows
    telling = set(varying(rows)) or {ITEM}
    first = rows[0].dimensions if rows else {}
    groups = [name for name in first if name not in (AGAINST, ITEM)]
    if groups and telling == {ITEM} and not _OF_TIME & set(first):  # one group against another
        pair = f"{' · '.join(first[name] for name in groups)} against {first[AGAINST]}"
        items = [{ITEM: row.dimensions[ITEM]} if len(rows) > 1 else {} for row in rows]
        return [
            altered(row, dimensions={_PAIR: pair, **item})
            for row, item in zip(rows, items, strict=True)
        ]
    return [
        altered(row, dimensions={k: v for k, v in row.dimensions.items() if k in telling})
        for row in rows
    ]
