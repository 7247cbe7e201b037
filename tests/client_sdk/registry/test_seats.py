"""Seats of a panel: what any seven dates cost at most, and files whose seats cost more."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client_sdk.core.errors import InvalidParameterError, RegistryError
from client_sdk.registry import Registry
from client_sdk.registry.compiled import checksum_of
from client_sdk.registry.seats import WHOLE, Seat, dearest_week
from collector.planning.compilation import compiled
from tests.support.device.panels import kept, panel, registry, weekly

STEP: Final = WHOLE >> 3
lengths = st.integers(1, 8)
prices = st.lists(st.integers(0, 9), min_size=7, max_size=7)


@given(st.lists(st.tuples(lengths, prices), min_size=1, max_size=8))
@settings(max_examples=200, deadline=None)
def test_the_dearest_week_is_that_of_every_point_and_every_pair_of_parts(
    line: list[tuple[int, list[int]]],
) -> None:
    """By brute force: all points where something changes, all ways to part seven dates."""
    seats, end = [], 0
    for length, _ in line:
        seats.append(Seat(end * STEP, (end + length) * STEP, "7d"))
        end += length
    samples = [
        [costs for seat, (_, costs) in zip(seats, line, strict=True) if seat.holds(point * STEP)]
        for point in range(8)
    ]

    def dearest(dates: int) -> int:
        return max(sum(costs[dates - 1] for costs in sample) for sample in samples)

    parts = [dearest(dates) + dearest(7 - dates) for dates in range(1, 7)]
    assert dearest_week(seats, [costs for _, costs in line]) == max(dearest(7), *parts)


kinds = st.tuples(
    st.sampled_from(["0.1", "0.5", "1", "2"]),
    st.sampled_from(["1h", "1d", "7d", "28d", "once", "permanent"]),
    st.integers(1, 4),
    st.booleans(),
)


def metric_of(name: str, kind: tuple[str, str, int, bool]) -> str:
    epsilon, every, weight, outside = kind
    if every == "permanent":
        return kept(name, epsilon)
    return weekly(name, "panel = false" if outside else f"weight = {weight}", epsilon, every)


@given(st.lists(kinds, min_size=1, max_size=8), st.sampled_from(["4", "8", "40", "400"]))
@settings(max_examples=60, deadline=None)
def test_whatever_is_compiled_is_loaded_with_the_seats_that_were_drawn(
    metrics: list[tuple[str, str, int, bool]], week: str
) -> None:
    of = registry(*(metric_of(f"m_{i}", kind) for i, kind in enumerate(metrics)), week=week)
    try:
        drawn = panel(of)
    except InvalidParameterError:
        return

    assert Registry.from_text(compiled(of)).seats == drawn.seats


def _seats(document: dict[str, Any]) -> list[list[Any]]:
    return list(document["seats"].values())


def _wider(document: dict[str, Any]) -> None:
    for seat in _seats(document):
        if seat[2] == "7d":
            seat[1] += WHOLE // 4


@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        (lambda d: d.update(panel_week=d["panel_week"] // 2), "must cost at most panel_week="),
        (_wider, "must cost at most panel_week="),
        (lambda d: [seat.__setitem__(2, "life") for seat in _seats(d)], "must be for life if"),
        (lambda d: [seat.__setitem__(2, "28d") for seat in _seats(d)], "must be for life if"),
    ],
)
def test_seats_that_could_pass_the_week_are_refused_by_their_field(
    edit: Callable[[dict[str, Any]], None], rule: str
) -> None:
    of = registry(
        *(weekly(f"m_{i}") for i in range(8)),
        kept("same"),
        weekly("always", "panel = false", "0.5"),
    )
    document = json.loads(compiled(of))
    edit(document)
    document["checksum"] = checksum_of(document)

    with pytest.raises(RegistryError) as refusal:
        Registry.from_text(json.dumps(document))

    (problem,) = refusal.value.problems
    assert problem.startswith(f"seats: {rule}")
