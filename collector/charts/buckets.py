"""Items that stand for numbers: the edges of a bucket, a threshold, a cell of a grid."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from math import isclose
from typing import Final

_NUMBER: Final = r"[-\u2212+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_BETWEEN: Final = r"\s*(?:\.\.\.?|…|–|—|-|to|,|;|/)\s*"
_EDGES: Final = re.compile(rf"[\[(]?\s*({_NUMBER}){_BETWEEN}({_NUMBER})\s*[\])]?(?:\s*\D*)?")
_ALONE: Final = re.compile(rf"\D*?({_NUMBER})(?:\s*\D*)?")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def edges_of(item: str) -> tuple[float, float] | None:
    """Return the ends of the bucket named *item*, such as "10–20", or None if it names none."""
    found = _EDGES.fullmatch(_THOUSANDS.sub("", item.strip()))
    if not found:
        return None
    low, high = (_number(part) for part in found.groups())
    return (low, high) if low < high else None


def threshold_of(item: str) -> float | None:
    """Return the number in *item*, such as "≤ 20 ms", or the upper end of a bucket, or None."""
    edges = edges_of(item)
    if edges:
        return edges[1]
    found = _ALONE.fullmatch(_THOUSANDS.sub("", item.strip()))
    return _number(found[1]) if found else None


def adjoining(items: Sequence[str]) -> tuple[tuple[float, float], ...] | None:
    """Return the edges of *items* if each bucket begins where the one before ends, else None."""
    found = [edges_of(item) for item in items]
    edges = tuple(pair for pair in found if pair)
    if not edges or len(edges) < len(found):
        return None
    whole = all(isclose(a[1], b[0], rel_tol=1e-6, abs_tol=1e-9) for a, b in pairwise(edges))
    return edges if whole else None


def cell_of(item: str) -> tuple[int, int] | None:
    """Return row and column of a cell named "row,column", or None."""
    row, comma, column = item.partition(",")
    if not comma or not (row.strip().isdecimal() and column.strip().isdecimal()):
        return None
    return int(row), int(column)


def _number(text: str) -> float:
    return float(text.replace("\u2212", "-").replace("_", ""))
