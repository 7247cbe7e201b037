"""Which chart the rows of a verb deserve.  A verb that is not named here is told by its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ..analytics.rows import SHARE, Row, units_of
from .bars import bars_picture
from .buckets import cell_of
from .cdf import cdf_picture
from .difference import NO_CHANGE, difference_picture
from .dots import dots_picture
from .frame import DEFAULT, Face, Picture, finish, stacked
from .grid import grid_picture
from .heat import heat_picture
from .histogram import histogram_picture
from .labels import TIME, varying
from .line import line_picture
from .palette import SERIES

Kind: TypeAlias = Callable[[Sequence[Row], str, Face], Picture]
_ORDERED: Final = frozenset({"adoption", "funnel", "range", "retention"})  # rows have an order
_DIFFERENCES: Final = frozenset({"compare", "lift"})
_SHAPES: Final[dict[str, Kind]] = {"cdf": cdf_picture, "histogram": histogram_picture}
_MANY: Final = 4  # values of both dimensions from which a two-way table is read better as cells


def chart_of(verb: str, rows: Sequence[Row], title: str, face: Face = DEFAULT) -> str:
    """Return an SVG of the *rows* that *verb* answered.

    Numbers of different units share no scale: they are drawn below one another.
    """
    pictures = pictures_of(verb, rows, title, face)
    return finish(pictures[0], face) if len(pictures) == 1 else stacked(title, pictures, face)


def pictures_of(verb: str, rows: Sequence[Row], title: str, face: Face) -> list[Picture]:
    """Return the pictures of *rows*: one a unit, differences apart from what they compare."""
    found = []
    for unit in units_of(rows):
        some = [row for row in rows if row.unit == unit]
        compared = [row for row in some if _is_difference(verb, row)]
        plain = [row for row in some if not _is_difference(verb, row)]
        if plain:
            found.append(_kind(verb, plain)(plain, title, face))
        if compared:
            found.append(difference_picture(compared, title, face))
    return found or [bars_picture(rows, title, face)]


def _is_difference(verb: str, row: Row) -> bool:
    told = row.p_value is not None or row.fakes_to_flip is not None
    return verb in _DIFFERENCES and (told or NO_CHANGE in (row.note or ""))


def _kind(verb: str, rows: Sequence[Row]) -> Kind:
    names = varying(rows)
    if TIME in names:
        return line_picture
    if verb in _SHAPES and len(names) <= 1:
        return _SHAPES[verb]
    if verb == "map" and len(names) <= 1 and all(cell_of(row.item) for row in rows):
        return _grid
    if len(names) >= 2:
        return heat_picture if verb == "crosstab" or _is_wide(rows, names) else dots_picture
    if rows[0].unit != SHARE:
        return dots_picture
    return _in_order if verb in _ORDERED else _ranked


def _is_wide(rows: Sequence[Row], names: Sequence[str]) -> bool:
    counts = [len({row.dimensions.get(name) for row in rows}) for name in names]
    return min(counts) >= _MANY or max(counts) * min(counts) > SERIES * _MANY


def _grid(rows: Sequence[Row], title: str, face: Face) -> Picture:
    return grid_picture(rows, title, face)


def _ranked(rows: Sequence[Row], title: str, face: Face) -> Picture:
    return bars_picture(rows, title, face, ranked=True)


def _in_order(rows: Sequence[Row], title: str, face: Face) -> Picture:
    return bars_picture(rows, title, face, ranked=False)
