"""What rows and units are called in a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ..analytics.rows import AGAINST, ITEM, MEASURE, RELATIVE, SHARE, Row
from .number import POINTS

_WORDS: Final = {
    SHARE: "share of devices",
    POINTS: "percentage points",
    RELATIVE: "relative to the control",
}


def unit_words(unit: str) -> str:
    """Return what the numbers of an axis are."""
    return _WORDS.get(unit, unit)


def label_of(row: Row, without: Iterable[str] = ()) -> str:
    """Return the dimensions of *row* as one label, the item last."""
    left_out = {ITEM, MEASURE, *without}
    parts = [_part(name, value) for name, value in row.dimensions.items() if name not in left_out]
    item = "" if ITEM in without else row.dimensions.get(ITEM, "")
    return " · ".join(part for part in (*parts, item) if part)


def named(
    rows: Sequence[Row], without: Iterable[str] = (), unsaid: Iterable[str] = ()
) -> tuple[list[str], str]:
    """Return the labels of *rows* by what they differ in, and what all have in common.

    Args: without: dimensions left out of the labels.  unsaid: of what is common.
    """
    left_out = {*without, *(constant(rows) if len(rows) > 1 else ())}
    shared = [name for name in constant(rows) if len(rows) > 1 or name == MEASURE]
    said = [name for name in shared if name not in unsaid]
    common = " · ".join(_part(name, rows[0].dimensions[name]) for name in said)
    return [label_of(row, left_out) for row in rows], common


def varying(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the dimensions in which *rows* differ, in order."""
    names = dict.fromkeys(name for row in rows for name in row.dimensions)
    return tuple(name for name in names if len({row.dimensions.get(name) for row in rows}) > 1)


def constant(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the dimensions that all *rows* share with one value."""
    names = dict.fromkeys(name for row in rows for name in row.dimensions)
    differing = varying(rows)
    return tuple(name for name in names if name not in differing)


def _part(name: str, value: str) -> str:
    return f"against {value}" if name == AGAINST and value else value
