"""Rows of one slice, item by item: numbers, or the reason why the slice has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...estimation.estimate import Estimate
from ..rows import ITEM, RAW, SHARE, Row, empty_row, row_of
from ..slices import Slice


def rows_of(
    one: Slice,
    names: Sequence[Mapping[str, str]],
    estimates: Sequence[Estimate],
    alpha: float,
    unit: str = SHARE,
    *,
    simultaneous: bool = False,
    note: str | None = None,
    postprocess: str = RAW,
) -> list[Row]:
    """Return a row of a slice that may have numbers for each of *names*.

    Args: names: dimensions within the slice.  note, postprocess: of every row.
    """
    return [
        row_of(
            {**one.dimensions, **name},
            found,
            one.n,
            alpha,
            unit,
            is_open=one.is_open,
            simultaneous=simultaneous,
            note=note,
            postprocess=postprocess,
        )
        for name, found in zip(names, estimates, strict=True)
    ]


def refused_rows(
    one: Slice,
    names: Sequence[Mapping[str, str]],
    alpha: float,
    unit: str = SHARE,
    *,
    reason: str | None = None,
    simultaneous: bool = False,
) -> list[Row]:
    """Return rows without numbers, with the reason of the slice or another *reason*."""
    why = reason or one.refusal or ""
    kind: dict[str, Any] = {"is_open": one.is_open, "simultaneous": simultaneous}
    return [
        empty_row({**one.dimensions, **name}, one.n, alpha, unit, why, **kind) for name in names
    ]


def named(items: Sequence[str]) -> list[Mapping[str, str]]:
    """Return the dimensions of *items* within a slice."""
    return [{ITEM: item} for item in items]
