"""What is drawn is where its numbers are: read back by the ticks of the axis, not by our scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from collector.analytics.rows import RELATIVE, SHARE, Row
from collector.rendering.charts.scale import log_ticks, ticks
from tests.support.charts import bars, cdf, difference, dots, histogram, line
from tests.support.sites.drawing import of_class, parsed, path_points, tag
from tests.support.sites.gallery import (
    buckets,
    day,
    differences,
    platforms,
    row,
    shares,
    themes_by_platform,
)

Inverse = Callable[[float], float]
ROUNDED = 0.11  # user units: places of ticks and of marks are written to a tenth


def number_in(text: str) -> float:
    """Return what a tick says: percent as parts of one."""
    plain = text.replace("\u2212", "-").replace(",", "")
    return float(plain.removesuffix(" %")) / (100 if plain.endswith("%") else 1)


def axis(picture: str, along: str) -> tuple[Inverse, float]:
    """Return the value at a place along x or y, and values per user unit, from grid lines."""
    root = parsed(picture)
    lines = [e for e in root.iter() if e.get("class") == "axis" and tag(e) == "line"]
    places = [float(e.get(f"{along}1", 0)) for e in lines if is_across(e, along)]
    for path in of_class(root, "grid"):
        ends = list(path_points(path.get("d") or ""))
        places += [a["xy".index(along)] for a, b in zip(ends[::2], ends[1::2], strict=True)]
    places.sort(reverse=along == "y")
    labels = [e.text or "" for e in of_class(root, "tick")]
    values = [number_in(label) for label in labels[: len(places)]]
    slope = (values[-1] - values[0]) / (places[-1] - places[0])
    return lambda place: values[0] + slope * (place - places[0]), abs(slope)


def is_across(element: object, along: str) -> bool:
    """Return whether a line stands across the axis."""
    get = element.get  # type: ignore[attr-defined]
    return bool(get(f"{along}1") == get(f"{along}2") and get("class"))


def whiskers(picture: str, look: str, along: str) -> list[tuple[float, float]]:
    """Return the ends of the whiskers, in user units."""
    found = []
    for path in of_class(parsed(picture), look):
        places = [p["xy".index(along)] for p in path_points(path.get("d") or "")]
        found.append((min(places), max(places)))
    return found


def intervals(rows: Sequence[Row]) -> list[tuple[float, float]]:
    return [(r.ci_low, r.ci_high) for r in rows if r.ci_low is not None and r.ci_high is not None]


def in_points(rows: Sequence[Row]) -> list[Row]:
    """Return differences of shares as the axis has them: percentage points."""
    return [
        r
        if r.value is None or r.ci_low is None or r.ci_high is None or r.unit != SHARE
        else replace(r, value=100 * r.value, ci_low=100 * r.ci_low, ci_high=100 * r.ci_high)
        for r in rows
    ]


@pytest.mark.parametrize(
    ("picture", "look", "rows"),
    [
        (bars(shares()[:6], "t"), "whisker", shares()[:6]),
        (bars([row("a", -3.5, 0.25, unit="K")], "t"), "whisker", [row("a", -3.5, 0.25)]),
        (dots(platforms(), "t"), "reach-1", platforms()),
    ],
)
def test_lying_whiskers_end_where_the_interval_ends(
    picture: str, look: str, rows: list[Row]
) -> None:
    inverse, per_unit = axis(picture, "x")

    drawn = [tuple(map(inverse, ends)) for ends in whiskers(picture, look, "x")]

    assert drawn == [pytest.approx(ends, abs=ROUNDED * per_unit) for ends in intervals(rows)]


def test_whiskers_of_differences_end_where_the_interval_ends() -> None:
    picture = difference(differences(), "t")
    root = parsed(picture)
    inverse, per_unit = axis(picture, "x")

    paths = [
        path
        for mark in of_class(root, "mark")
        for path in mark
        if path.get("class") in ("reach-1", "quiet-reach")
    ]
    drawn = []
    for path in paths:
        places = [inverse(x) for x, _ in path_points(path.get("d") or "")]
        drawn.append((min(places), max(places)))

    expected = intervals(in_points(differences()))
    assert drawn == [pytest.approx(ends, abs=ROUNDED * per_unit) for ends in expected]


def test_an_axis_of_differences_is_cut_where_a_wide_one_would_hide_the_others() -> None:
    """Law: short intervals are seen beside their dots, what is sure is drawn whole, and it is said.

    Rows in parts of the control: two of 20 points, one of 500 that tells nothing, one that is sure.
    """
    unsure = [row("a", 0.05, 0.1, unit=RELATIVE), row("b", -0.02, 0.1, unit=RELATIVE)]
    wide, sure = row("c", 2.5, 2.5, unit=RELATIVE), row("d", 0.9, 0.2, unit=RELATIVE)
    lengths, cut = [], []
    for rows in ([*unsure, wide], [*unsure, wide, sure]):
        picture = difference([replace(each, p_value=0.5) for each in rows], "t")
        inverse, per_unit = axis(picture, "x")
        marks = of_class(parsed(picture), "mark")
        paths = [
            [inverse(x) for x, _ in path_points(path.get("d") or "")]
            for mark in marks
            for path in mark
            if path.get("class") in ("reach-1", "quiet-reach")
        ]
        ends = [(min(path), max(path)) for path in paths]
        expected = intervals([*rows[:2], *rows[3:]])
        shown = [*ends[:2], *ends[3:]]
        assert shown == [pytest.approx(each, abs=ROUNDED * per_unit) for each in expected]
        lengths.append((ends[0][1] - ends[0][0]) / per_unit)
        cut.append(ends[2][1] < intervals([wide])[0][1])
        assert "a line without an end goes on" in picture

    assert cut == [True, True]
    assert min(lengths) > 20  # user units; a dot has 10


def test_standing_whiskers_end_where_the_interval_ends() -> None:
    picture = histogram(buckets(), "t")
    inverse, per_unit = axis(picture, "y")

    drawn = [sorted(map(inverse, ends)) for ends in whiskers(picture, "whisker", "y")]

    expected = [pytest.approx(list(ends), abs=ROUNDED * per_unit) for ends in intervals(buckets())]
    assert drawn == expected


def test_a_bar_reaches_from_zero_to_its_value() -> None:
    rows = [row("a", 0.4, 0.01), row("b", -0.1, 0.01)]
    picture = bars(rows, "t", ranked=False)
    inverse, per_unit = axis(picture, "x")

    ends = []
    for bar in of_class(parsed(picture), "bar"):
        left = float(bar.get("x", 0))
        ends.append((inverse(left), inverse(left + float(bar.get("width", 0)))))

    near = 2 * ROUNDED * per_unit
    assert ends == [pytest.approx((0, 0.4), abs=near), pytest.approx((-0.1, 0), abs=near)]


def test_a_band_is_as_wide_as_the_intervals() -> None:
    rows = [row({"time": day(i)}, 0.3 + 0.01 * i, 0.02) for i in range(5)]
    picture = line(rows, "t")
    inverse, per_unit = axis(picture, "y")

    (band,) = of_class(parsed(picture), "band-1")
    heights = [inverse(y) for _, y in path_points(band.get("d") or "")][:10]

    upper = [0.32 + 0.01 * i for i in range(5)]
    lower = [0.28 + 0.01 * i for i in range(5)]
    assert heights == pytest.approx([*upper, *reversed(lower)], abs=ROUNDED * per_unit)


def test_grouped_dots_are_where_their_values_are() -> None:
    rows = themes_by_platform()
    picture = dots(rows, "t")
    inverse, per_unit = axis(picture, "x")

    marks = of_class(parsed(picture), "mark")
    drawn = []
    for mark in marks:
        places = [inverse(x) for x, _ in path_points(mark.findall("*")[1].get("d") or "")]
        drawn.append((min(places), max(places)))

    assert drawn == [pytest.approx(ends, abs=ROUNDED * per_unit) for ends in intervals(rows)]


def test_a_curve_of_shares_is_drawn_as_one_that_rises_within_the_whole() -> None:
    """Law: the line is the nearest that never falls; a pointer is told the numbers as they are."""
    values = (-0.06, 0.3, 0.2, 0.7, 1.08)
    picture = cdf([row(str(i), value, 0.1) for i, value in enumerate(values)], "t")
    at, _ = axis(picture, "y")

    drawn = [at(y) for _, y in path_points(of_class(parsed(picture), "line-1")[0].get("d") or "")]
    assert drawn == pytest.approx([0, 0.25, 0.25, 0.7, 1], abs=0.01)
    (band,) = of_class(parsed(picture), "band-1")
    edges = [at(y) for _, y in path_points(band.get("d") or "")]
    assert (min(edges), max(edges)) == pytest.approx((0, 1), abs=0.01)
    marks = of_class(parsed(picture), "mark")
    assert [mark.get("data-value") for mark in marks] == [
        "\u22126 %",
        "30 %",
        "20 %",
        "70 %",
        "108 %",
    ]
    notes = [e.text or "" for e in of_class(parsed(picture), "note")]
    assert any("Drawn as never falling" in text for text in notes)


def test_a_curve_that_rises_anyway_is_drawn_as_it_is_without_a_word() -> None:
    picture = cdf([row(str(i), i / 4, 0.001) for i in range(5)], "t")
    at, _ = axis(picture, "y")

    drawn = [at(y) for _, y in path_points(of_class(parsed(picture), "line-1")[0].get("d") or "")]
    assert drawn == pytest.approx([0, 0.25, 0.5, 0.75, 1], abs=0.01)
    assert "Drawn as" not in picture


def test_a_whisker_drawn_elsewhere_would_be_noticed() -> None:
    """The control: the rows of another answer do not fit the picture."""
    picture = bars(shares()[:6], "t")
    inverse, per_unit = axis(picture, "x")

    drawn = [tuple(map(inverse, ends)) for ends in whiskers(picture, "whisker", "x")]

    moved = [(low + 2 * ROUNDED * per_unit, high) for low, high in intervals(shares()[:6])]
    assert drawn != [pytest.approx(ends, abs=ROUNDED * per_unit) for ends in moved]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (10.0, 1_000.0, (10, 20, 50, 100, 200, 500, 1_000)),
        (1.0, 1_000.0, (1, 10, 100, 1_000)),
        (20.0, 20.0, (10, 20, 50, 100)),
    ],
)
def test_powers_of_ten_have_twos_and_fives_between_them_if_they_are_few(
    low: float, high: float, expected: tuple[int, ...]
) -> None:
    assert log_ticks(low, high) == pytest.approx(expected)


def test_times_that_are_few_are_the_ticks_of_their_axis_and_of_many_some_round_ones_are() -> None:
    """Law: no tick is between the weeks of what is counted by week, where each week has room."""
    monday, week, day = 96.0, 168.0, 24.0  # hours from the start of 1970
    weeks = [monday + i * week for i in range(3)]
    days = [monday + i * day for i in range(15)]

    assert [tick.hours for tick in ticks(weeks[0], weeks[-1], 8, weeks)] == weeks
    assert [tick.label for tick in ticks(weeks[0], weeks[-1], 8, weeks)] == [
        "5 Jan 1970",
        "12 Jan",
        "19 Jan",
    ]
    of_days = [tick.hours for tick in ticks(days[0], days[-1], 8, days)]
    assert 2 < len(of_days) <= 8
    assert set(of_days) < set(days)
