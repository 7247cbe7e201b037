"""What a row and a unit are called in a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ..analytics.rows import ITEM, SHARE, Row
from .number import POINTS

TIME: Final = "time"
_WORDS: Final = {SHARE: "share of devices", POINTS: "percentage points"}


def unit_words(unit: str) -> str:
    """Return what the numbers of an axis are."""
    return _WORDS.get(unit, unit)


def label_of(row: Row, without: Iterable[str] = ()) -> str:
    """Return the dimensions of *row* as one label, the item last."""
    left_out = set(without)
    parts = [value for name, value in row.dimensions.items() if name not in {ITEM, *left_out}]
    item = row.dimensions.get(ITEM)
    return " · ".join([*parts, *([item] if item is not None and ITEM not in left_out else [])])


def varying(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the dimensions in which *rows* differ, in order."""
    names = dict.fromkeys(name for row in rows for name in row.dimensions)
    return tuple(name for name in names if len({row.dimensions.get(name) for row in rows}) > 1)


def constant(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the dimensions that all *rows* share with one value."""
    names = dict.fromkeys(name for row in rows for name in row.dimensions)
    return tuple(name for name in names if name not in varying(rows))
