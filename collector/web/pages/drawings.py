"""The charts of a page: each drawn for a wide column and for a phone; a style shows one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from ...analytics.rows import Row
from ...rendering.charts import Before, Face, Mark, chart_of

WIDTH: Final = 540  # user units: about the pixels of a panel, so that its letters are of its size
NARROW_WIDTH: Final = 320  # user units: the pixels of a panel on a phone of 360
_NARROW: Final = "-n"  # after the prefix of ids
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
