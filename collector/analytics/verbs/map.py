"""The share of the devices in each cell of a map, or in larger areas made of cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from client_sdk.registry.metric import Metric
from client_sdk.registry.types.places import GridDomain

from ...core.remarks import Code, Remark, remark
from ...estimation.estimate import Estimate
from ..postprocess import OF_PARTS, base_cut, processed
from ..rows import Chart, Findings, Row
from ..sums import Shares
from ..verb import Offer, Slice, Verb, VerbQuery, named, refused_rows, rows_of
from .frequency import shares_of


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """How many rows and columns of cells make one area."""

    coarsen: Annotated[int, Meta(ge=1, le=4_096)] = 1


def answer(slices: Sequence[Slice], query: VerbQuery) -> Findings:
    """Answer with a row an area of each slice: rows from the south, columns from the west.

    Items are "row,column", and facts tell the west, south, east and north end of each.  A map is
    searched by eye for where much is, so all intervals hold at once, and areas that noise alone may
    have filled are marked.
    """
    areas = [_areas_of(part, query.options.coarsen) for part in slices]
    comparisons = sum(map(len, areas))
    rows: list[Row] = []
    for part, cells in zip(slices, areas, strict=True):
        rows += _rows(part, cells, query, query.alpha / comparisons)
    facts = _facts(slices[0], areas[0]) if slices else {}
    return Findings(tuple(rows), facts=facts)


def _rows(
    part: Slice, cells: dict[tuple[int, int], list[int]], query: VerbQuery, level: float
) -> Sequence[Row]:
    names = named([_item(area) for area in cells])
    if part.refusal is not None:
        return refused_rows(part, names, query.alpha, simultaneous=True)
    estimates, bound = _estimates(part, cells, level)
    certain = base_cut([e.value for e in estimates], [e.std_error for e in estimates]) > 0
    rows = []
    for name, estimate, is_kept in zip(names, estimates, certain.tolist(), strict=True):
        notes = bound if is_kept else (remark(Code.NOISE), *bound)
        rows += rows_of(part, [name], [estimate], query.alpha, simultaneous=True, notes=notes)
    return processed(rows, query.postprocess)


def _estimates(
    part: Slice, cells: dict[tuple[int, int], list[int]], alpha: float
) -> tuple[list[Estimate], tuple[Remark, ...]]:
    if len(cells) == part.metric.domain.size:
        return shares_of(part, alpha), ()
    members = np.zeros((len(cells), part.metric.domain.size), dtype=bool)
    for row, items in zip(members, cells.values(), strict=True):
        row[items] = True
    shares = Shares.of_slice(part)
    return shares.groups(members, alpha), shares.notes


def _areas_of(part: Slice, coarsen: int) -> dict[tuple[int, int], list[int]]:
    """Return the items of each area by its row and column."""
    domain, areas = _domain(part), dict[tuple[int, int], list[int]]()
    for item in range(domain.size):
        row, column = domain.place(item)
        areas.setdefault((row // coarsen, column // coarsen), []).append(item)
    return areas


def _facts(part: Slice, cells: dict[tuple[int, int], list[int]]) -> dict[str, object]:
    domain = _domain(part)
    ends = {}
    for area, items in cells.items():
        west, south, *_ = domain.corners(items[0])
        *_, east, north = domain.corners(items[-1])
        ends[_item(area)] = [float(end) for end in (west, south, east, north)]
    return {"cells": ends, "box": [float(end) for end in domain.box]}


def _item(area: tuple[int, int]) -> str:
    return f"{area[0]},{area[1]}"


def _domain(part: Slice) -> GridDomain:
    domain = part.metric.domain
    assert isinstance(domain, GridDomain)  # noqa: S101 - see refusal
    return domain


def refusal(metric: Metric) -> str | None:
    """Answer metrics of places."""
    if isinstance(metric.domain, GridDomain):
        return None
    return (
        "has no places; ask for frequency, mean or histogram, or declare a metric of the type "
        "location"
    )


VERB = Verb(
    answer,
    refusal,
    Options,
    OF_PARTS,
    most_slices=24,
    chart=Chart.MAP,
    title="Where devices are",
    offer=Offer("Where?", 30, typed="map where region country geography heatmap"),
)
