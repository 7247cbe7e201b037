"""A release: whole counts, columns that tell what they are, and records that follow them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_sdk.registry import Registry
from collector.analytics.verb import Slice, VerbQuery, load
from collector.core.errors import QueryError
from collector.query.release.release import (
    MAX_RECORDS,
    Part,
    apportioned,
    parts_of,
    records,
    table,
)
from tests.support.crowds.releases import slice_of, values_of
from tests.support.device.registries import TWO_LAYER, file_with

ALPHA: Final = 0.05
DEVICES: Final = 600
RELEASED: Final = ("page", "dark", "plan", "age", "wait", "place", "tools")
DRAWN: Final = RELEASED[:-1]
FALSE_ALARM_Z: Final = 6.2  # a normal is beyond it, either side, with a chance below 1e-9


def parts(name: str, devices: int = DEVICES) -> tuple[Part, ...]:
    """Return the histogram of one slice of the metric *name*."""
    return parts_of([slice_of(name, values_of(name, devices))], ALPHA)


def test_a_histogram_of_repeated_noise_has_the_intervals_of_the_answer() -> None:
    """The same responses in each of four epochs: errors as in ``frequency``, twice those of one."""
    metric = Registry.from_text(file_with(TWO_LAYER)).metric("m")
    tally = np.full(metric.mechanism.tally_size, 900 // metric.mechanism.tally_size)
    once, four = (Slice(metric, {}, 900, tally, tuple(range(epochs))) for epochs in (1, 4))

    (part,), (alone,) = (parts_of([one], ALPHA) for one in (four, once))

    rows = load("frequency").answer([four], VerbQuery(ALPHA)).rows
    assert [(e.ci_low, e.ci_high) for e in part.estimates] == [(r.ci_low, r.ci_high) for r in rows]
    assert part.estimates[0].std_error == pytest.approx(2 * alone.estimates[0].std_error)


def test_of_a_set_every_count_is_consistent_on_its_own() -> None:
    """A device may hold many items, so counts need not sum to the reports."""
    (part,) = parts("tools")

    assert part.counts.min() >= 0
    assert part.counts.max() <= DEVICES


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("page", ["page"]),
        ("dark", ["dark"]),
        ("plan", ["system", "plan"]),
        ("age", ["age_from", "age_to"]),
        ("wait", ["wait_from", "wait_to"]),
        ("place", ["longitude_from", "longitude_to", "latitude_from", "latitude_to"]),
        ("tools", ["tools"]),
    ],
)
def test_the_columns_of_a_histogram_tell_what_a_row_is_of(name: str, columns: list[str]) -> None:
    """Labels, both answers of a pair, or the ends of a cell; items have their intervals."""
    of_items = ["unbiased", "ci_low", "ci_high", "std_error"] if name not in ("age", "wait") else []

    found = table(parts(name))

    assert list(found) == [*columns, "count", "share", *of_items]
    assert {len(values) for values in found.values()} == {len(found["count"])}


def test_the_cells_of_numbers_hold_every_number_of_the_grid_once() -> None:
    """Each begins a step after the one before ends, from the lowest to the highest."""
    for name, step in (("age", 1), ("wait", 0.01)):
        found = table(parts(name))
        lows, highs = found[f"{name}_from"], found[f"{name}_to"]

        assert (lows[0], highs[-1]) == ((17, 90) if name == "age" else (0, 10))
        assert np.subtract(lows[1:], highs[:-1]) == pytest.approx(step)
        assert np.all(np.subtract(highs, lows) >= 0)


def test_dimensions_come_first_and_repeat_for_each_cell() -> None:
    """A column a dimension, in the order asked."""
    slices = [slice_of("page", values_of("page", 300), platform=p) for p in ("linux", "mac")]

    found = table(parts_of(slices, ALPHA))

    assert list(found)[:2] == ["platform", "page"]
    assert found["platform"] == ["linux"] * 3 + ["mac"] * 3


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any), st.integers(0, 200), st.data()
)
def test_each_cell_gets_its_part_of_the_records_rounded_up_or_down(
    counts: list[int], size: int, data: st.DataObject
) -> None:
    """Less than one record away from its part, and all records are there."""
    start = data.draw(st.integers(0, sum(counts) - 1))

    found = apportioned(np.array(counts), size, start).tolist()

    assert sum(found) == size
    assert all(
        abs(given - Fraction(size * count, sum(counts))) < 1
        for given, count in zip(found, counts, strict=True)
    )


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any), st.integers(0, 20))
def test_the_expected_records_of_a_cell_are_exactly_its_part(counts: list[int], size: int) -> None:
    """Over all starts, without chance: so small cells are not rounded away for good."""
    total = sum(counts)

    found = sum(apportioned(np.array(counts), size, start) for start in range(total))

    assert found.tolist() == [size * count for count in counts]


@pytest.mark.parametrize("name", DRAWN)
def test_as_many_records_as_reports_have_the_counts_of_the_histogram(name: str) -> None:
    """Nothing is left to chance but the order, and the place within a cell."""
    released = parts(name)

    drawn = records(released, DEVICES, seed=1)

    assert Counter(cells_of(drawn, released)) == Counter(
        {i: n for i, n in enumerate(released[0].counts.tolist()) if n}
    )


def cells_of(drawn: Any, released: tuple[Part, ...]) -> list[int]:
    """Return the cell of the histogram into which each record falls."""
    ends = {name: values for name, values in table(released).items() if name.endswith("_to")}
    if not ends:
        told = list(zip(*(table(released)[name] for name in drawn), strict=True))
        return [told.index(record) for record in zip(*drawn.values(), strict=True)]
    starts = [table(released)[name.replace("_to", "_from")] for name in ends]
    cells = list(zip(*starts, *ends.values(), strict=True))
    rows = zip(*drawn.values(), strict=True)
    return [next(i for i, cell in enumerate(cells) if within(row, cell)) for row in rows]


def within(row: tuple[float, ...], cell: tuple[float, ...]) -> bool:
    axes = len(row)
    return all(cell[axis] <= number <= cell[axes + axis] for axis, number in enumerate(row))


def test_records_of_numbers_lie_on_the_grid() -> None:
    """A device could have held each: whole years are int, hundredths of a second are decimals."""
    ages, waits = (records(parts(n), 2_000, 3)[n] for n in ("age", "wait"))

    assert {type(age) for age in ages} == {int}
    assert all(round(wait, 2) == wait and 0 <= wait <= 10 for wait in waits)


def test_numbers_within_a_cell_are_equally_likely() -> None:
    """The mean place within the cells is the middle, within 6.2 standard errors; floor is not."""
    released = parts("wait", 5_000)
    found = table(released)
    lows, highs = np.array(found["wait_from"]), np.array(found["wait_to"])

    waits = np.array(records(released, 5_000, 5)["wait"])

    cells = np.searchsorted(lows, waits + 1e-9) - 1
    places = (waits - lows[cells]) / (highs - lows)[cells]
    reach = FALSE_ALARM_Z * sqrt(
        0.14 / places.size
    )  # the variance of 4 points, 5/36, or more of them
    assert (highs - lows).min() * 100 >= 2.9
    assert abs(places.mean() - 0.5) < reach
    assert abs(np.zeros_like(places).mean() - 0.5) > reach


def test_places_lie_within_the_cells_that_hold_them() -> None:
    """Two of the six cells were held, so nearly all places are there."""
    drawn = records(parts("place"), DEVICES, 7)
    inside = [
        (x < 10 and y < 47 + 8 / 3) or (x > 10 and y > 47 + 16 / 3)
        for x, y in zip(drawn["longitude"], drawn["latitude"], strict=True)
    ]

    assert np.mean(inside) > 0.8
    assert len(set(drawn["longitude"])) > DEVICES / 2


def test_records_keep_the_parts_of_the_segments() -> None:
    """A platform with three times the reports has three times the records."""
    linux = slice_of("page", values_of("page", 600), platform="linux")
    mac = slice_of("page", values_of("page", 200), platform="mac")

    drawn = records(parts_of([linux, mac], ALPHA), 400, 11)

    assert Counter(drawn["platform"]) == {"linux": 300, "mac": 100}


def test_nothing_is_released_of_a_slice_without_reports() -> None:
    """Nor of any other slice beside it."""
    good = slice_of("page", values_of("page", 300), platform="mac")

    with pytest.raises(QueryError, match=r"^metric=page of mac: no reports;"):
        parts_of([good, replace(good, n=0)], ALPHA)


@pytest.mark.parametrize("size", [0, -1, MAX_RECORDS + 1])
def test_a_number_of_records_beyond_reason_is_refused(size: int) -> None:
    """Nothing is drawn for it."""
    with pytest.raises(QueryError, match=r"^synthetic: must be from 1 to"):
        records(parts("dark"), size, 1)


def test_a_dimension_named_like_a_column_is_refused() -> None:
    """Two columns of one name cannot both be read."""
    slices = [slice_of("plan", values_of("plan", 300), system="mac")]

    with pytest.raises(QueryError, match=r"^columns: system would be there twice"):
        records(parts_of(slices, ALPHA), 10, 1)
