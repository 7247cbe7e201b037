"""Places in degrees: words that no sign has to be read in, and coasts where they are."""

from __future__ import annotations

from itertools import chain, pairwise

import pytest

from collector.rendering.coasts import coasts_within
from collector.rendering.places import Box, located, places_of, records_of
from tests.support.sites.gallery import cells

BAY = Box(-5.0, 43.0, 9.0, 51.0)  # France and about it
FACTS = {"cells": {f"{r},{c}": [c, 40 + r, c + 1, 41 + r] for r in range(2) for c in range(2)}}


@pytest.mark.parametrize(
    ("box", "words"),
    [
        (Box(8, 47, 9, 48), "47° to 48° N, 8° to 9° E"),
        (Box(-9, -48, -8, -47), "48° to 47° S, 9° to 8° W"),
        (Box(-0.5, -0.25, 0.5, 0.25), "0.25° S to 0.25° N, 0.5° W to 0.5° E"),
        (Box(0, 0, 0.1, 1 / 3), "0° to 0.333333° N, 0° to 0.1° E"),
        (Box(-1, -1, 0, 0), "1° to 0° S, 1° to 0° W"),
    ],
)
def test_a_place_is_told_with_the_sides_of_the_world(box: Box, words: str) -> None:
    assert box.in_words == words


def test_rows_of_a_map_are_told_by_degrees_and_others_are_left_alone() -> None:
    rows = cells(2, 2, 0.01)

    assert [row.dimensions for row in located(rows, FACTS)][3] == {
        "latitude": "41° to 42° N",
        "longitude": "1° to 2° E",
    }
    assert located(rows, {}) is rows
    assert "longitude" not in records_of(rows, {})[0]


def test_a_record_of_a_map_has_the_middle_and_the_ends_of_its_cell() -> None:
    (record, *_) = records_of(cells(2, 2, 0.01), FACTS)

    assert [record[name] for name in ("longitude", "latitude")] == [0.5, 40.5]
    assert Box(*(record[name] for name in Box._fields)) == places_of(FACTS)["0,0"]
    assert record["value"] is not None


def test_no_point_of_a_coast_lies_outside_the_map() -> None:
    points = list(chain.from_iterable(coasts_within(BAY)))

    assert len(points) > 30
    assert all(BAY.west <= x <= BAY.east and BAY.south <= y <= BAY.north for x, y in points)


@pytest.mark.parametrize(
    ("place", "is_near"),
    [
        ((-4.5, 48.4), True),  # Brest
        ((-1.2, 44.6), True),  # Arcachon
        ((2.35, 48.85), False),  # Paris
        ((4.0, 46.0), False),
    ],
)
def test_coasts_are_where_the_sea_begins(place: tuple[float, float], is_near: bool) -> None:
    """To a quarter of a degree: the outline helps to recognize a map, and measures nothing."""
    x, y = place
    reach = 0.25 if is_near else 0.5
    around = Box(x - reach, y - reach, x + reach, y + reach)

    assert bool(coasts_within(around)) == is_near


def test_the_edges_of_the_source_are_no_coasts() -> None:
    """Neither the 180th meridian nor the foot of Antarctica is drawn."""
    lines = coasts_within(Box(-180, -90, 180, 90))

    for line in lines:
        for (ax, ay), (bx, by) in pairwise(line):
            assert not (abs(ax) > 179.9 and abs(bx) > 179.9)
            assert max(ay, by) > -85
            assert abs(bx - ax) < 20


def test_a_map_at_sea_has_no_coast() -> None:
    assert coasts_within(Box(-40, 20, -30, 30)) == ()
