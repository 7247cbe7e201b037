"""Numbers and places in tables: what can be shown, and as what."""

from __future__ import annotations

import re
from datetime import date
from functools import partial
from itertools import chain, pairwise
from math import inf
from typing import Any, Final
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from collector.analytics.rows import (
    AGAINST,
    DEVICES,
    ITEM,
    MEASURE,
    POSSIBLE,
    REACHED,
    RELATIVE,
    REST,
    SHARE,
    TIME,
    Chart,
    Row,
    empty_row,
    row_of,
)
from collector.core.remarks import Code, remark
from collector.estimation.estimate import Estimate
from collector.rendering.bar_table import bar_table, is_breakdown
from collector.rendering.charts import ChartOptions, chart_of
from collector.rendering.coasts import coasts_within
from collector.rendering.numbers import numbers_of
from collector.rendering.places import Box, located, places_of, records_of
from collector.rendering.possible import possible
from collector.rendering.tables import csv_of, lines_of
from collector.rendering.wording import days_in_words, last_day, remark_text, worded
from collector.web.pages.drawings import layouts
from tests.support.sites.drawing import parsed
from tests.support.sites.gallery import cells

PLACES: Final = [f"step {place}" for place in range(5)]
RANGES: Final = {
    SHARE: (0.0, 1.0), "points": (-1.0, 1.0), RELATIVE: (-1.0, inf), DEVICES: (0.0, inf),
}  # fmt: skip
NUMBERS: Final = st.floats(-3, 3, allow_nan=False).map(lambda number: round(number, 3))
ERRORS: Final = st.floats(0.001, 2)
PERCENT: Final = re.compile(r"([−-]?\d[\d,.]*) ?%")


def row(value: float, error: float = 0.1, item: str = "a", **more: Any) -> Row:
    """Return a row with a normal interval of 95 %."""
    unit = more.pop("unit", SHARE)
    dimensions = {ITEM: item, **more.pop("dimensions", {})}
    estimate = Estimate(value, error, value - 1.96 * error, value + 1.96 * error)
    return row_of(dimensions, estimate, 5_000, 0.05, unit, **more)


def of_unit(unit: str, value: float, error: float) -> Row:
    if unit == "points":
        return row(value, error, p_value=0.2)
    return row(value, error, unit=unit)


@given(unit=st.sampled_from(sorted(RANGES)), value=NUMBERS, error=ERRORS)
def test_a_number_is_moved_to_the_nearest_that_can_be_and_its_interval_is_no_point(
    unit: str, value: float, error: float
) -> None:
    """Law: value and interval are possible, the interval holds the value and half its length."""
    before = of_unit(unit, value, error)
    (after,) = possible([before])
    numbers, raw = numbers_of(after), numbers_of(before)
    least, most = RANGES[unit]

    assert numbers is not None
    assert raw is not None
    assert least <= numbers.low <= numbers.value <= numbers.high <= most
    assert numbers.value == min(max(value, least), most)
    assert numbers.high - numbers.low >= min(raw.half_width, most - least) * (1 - 1e-9)
    assert numbers.low <= max(raw.low, least)  # nothing possible is left out
    assert numbers.high >= min(raw.high, most)


@given(value=NUMBERS, error=ERRORS)
def test_what_is_possible_stays_and_what_is_moved_says_so(value: float, error: float) -> None:
    """Law: the raw number is in the row; a number of the metric's own unit is none of ours."""
    before = row(value, error)
    (after,) = possible([before])
    (number,) = possible([row(value, error, unit="ms")])

    is_moved = not 0 <= value <= 1
    assert (after.raw, after.postprocess) == ((value, POSSIBLE) if is_moved else (None, "raw"))
    assert number.value == value
    if value - 1.96 * error >= 0 and value + 1.96 * error <= 1:
        assert after is before


@given(steps=st.lists(st.tuples(NUMBERS, ERRORS), min_size=2, max_size=5))
def test_a_funnel_never_rises(steps: list[tuple[float, float]]) -> None:
    """Law: pooled by their variances; conversions, which are no part of it, may do as they like."""
    reached = [
        row(value, error, item, dimensions={MEASURE: REACHED})
        for item, (value, error) in zip(PLACES, steps, strict=False)
    ]
    shown = possible(reached, Chart.STEPS)
    values = [each.value or 0.0 for each in shown]

    assert all(after <= before + 1e-12 for before, after in pairwise(values))
    assert all((each.ci_low or 0) <= (each.value or 0) <= (each.ci_high or 0) for each in shown)
    weighted = [(min(max(value, 0), 1), error**-2) for value, error in steps]
    constant = sum(v * w for v, w in weighted) / sum(w for _, w in weighted)

    def distance(numbers: list[float]) -> float:
        raw = zip(numbers, steps, strict=False)
        return sum((number - value) ** 2 / error**2 for number, (value, error) in raw)

    assert distance(values) <= distance([constant] * len(values)) * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    "kind", [kind for kind in Chart if kind not in (Chart.CURVE, Chart.DIFFERENCES, Chart.MAP)]
)
def test_no_chart_and_no_table_of_a_terminal_shows_a_share_that_cannot_be(kind: Chart) -> None:
    """Law: and both say that a number was moved, while files have it as it was."""
    measure = {MEASURE: REACHED} if kind in (Chart.STEPS, Chart.ORDERED) else {}
    rows = [
        row(value, 0.1, f"{place}–{place + 1}", dimensions=measure)
        for place, value in enumerate((1.08, -0.12, 0.97, -0.01, 1.3))
    ]
    meta = {"chart": kind, "metrics": [], "facts": {}, "n": 5_000, "alpha": 0.05, "warnings": []}
    texts = [
        chart_of(kind, rows, "Title"),
        str(layouts(partial(chart_of, kind, rows, "Title"), "prefix")),
        "\n".join(lines_of("Title", rows, {**meta, "intervals": "pointwise"})),
    ]

    for text in texts:
        shown = [float(each.replace("−", "-")) for each in PERCENT.findall(text)]
        assert shown
        assert all(0 <= each <= 100 for each in shown), text
        assert "nearest possible value" in re.sub(r"<[^>]*>", " ", text)
    assert "1.08," in csv_of(rows)
    assert "-0.12," in csv_of(rows)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["2026-11-10/2026-11-16"], ["10 to 16 Nov"]),
        (["2026-10-28/2026-11-03"], ["28 Oct to 3 Nov"]),
        (
            ["2026-11-10/2026-11-16", "2025-11-10/2025-11-16"],
            ["10 to 16 Nov 2026", "10 to 16 Nov 2025"],
        ),
        (["2025-12-29/2026-01-04"], ["29 Dec 2025 to 4 Jan 2026"]),
        (["2026-11-16", "2026-11-10/2026-11-12"], ["16 Nov", "10 to 12 Nov"]),
    ],
)
def test_stretches_of_days_are_words(labels: list[str], words: list[str]) -> None:
    assert [days_in_words(labels)[label] for label in labels] == words


@pytest.mark.parametrize(
    ("label", "every", "words"),
    [
        ("2026-11-02/2026-11-09", "7d", "2 to 15 Nov"),
        ("2026-11-02/2026-11-02", "7d", "2 to 8 Nov"),
        ("2026-10-05/2026-11-02", "28d", "5 Oct to 29 Nov"),
        ("2026-11-10/2026-11-16", "1d", "10 to 16 Nov"),
    ],
)
def test_a_stretch_ends_on_the_last_day_of_its_last_epoch(
    label: str, every: str, words: str
) -> None:
    """Law: days are told that reports are of, and not the days on which their epochs began."""
    assert days_in_words([label], every) == {label: words}
    assert last_day(label.partition("/")[2], every)[-2:].lstrip("0") == words.split()[-2]


@pytest.mark.parametrize(("today", "words"), [(11, "2 to 11 Nov"), (16, "2 to 15 Nov")])
def test_a_stretch_that_is_running_ends_today(today: int, words: str) -> None:
    """Law: no report is of a day that is yet to come."""
    label = "2026-11-02/2026-11-09"

    assert days_in_words([label], "7d", today=date(2026, 11, today)) == {label: words}


def test_one_week_against_another_is_told_in_days_and_on_an_axis_by_its_first() -> None:
    week = {"time": "2026-11-09"}
    rows = [empty_row({**week, AGAINST: "2026-11-02"}, 0, 0.05, "share", remark(Code.BOUNDS))]

    assert worded(rows, every="7d")[0].dimensions == {"time": "9 to 15 Nov", AGAINST: "2 to 8 Nov"}
    assert worded([structs.replace(rows[0], dimensions=week)], every="7d")[0].dimensions == week
    assert worded(rows, every="1d") == rows
    web = structs.replace(rows[0], dimensions={**week, AGAINST: "web"})
    assert worded([web], every="7d") == [web]


@pytest.mark.parametrize("label", ["once", "2026-01-05T07:00Z", "2026-01-05"])
def test_a_label_that_is_no_longer_epoch_is_its_own_last_day(label: str) -> None:
    assert last_day(label, "1h" if "T" in label else "once") == label


@pytest.mark.parametrize(
    "label", ["2026-11-16", "input/output", "2026-01-05T07:00Z/2026-01-05T09:00Z"]
)
def test_days_alone_hours_and_other_labels_stay(label: str) -> None:
    assert days_in_words([label]) == {}


def test_a_boolean_says_yes_and_a_list_that_has_true_in_it_does_not() -> None:
    rows = [empty_row({"item": "true", AGAINST: REST}, 0, 0.05, "share", remark(Code.BOUNDS))]

    assert worded(rows, is_boolean=True)[0].dimensions == {"item": "yes", AGAINST: "the others"}
    assert worded(rows)[0].dimensions == {"item": "true", AGAINST: "the others"}
    assert rows[0].dimensions == {"item": "true", AGAINST: REST}


def test_the_middle_quantile_is_the_median_and_an_item_of_that_name_stays() -> None:
    rows = [
        empty_row({"item": name}, 3, 0.05, "ms", remark(Code.BOUNDS)) for name in ("p50", "p95")
    ]

    assert [row.item for row in worded(rows, chart=Chart.QUANTILES)] == ["median", "p95"]
    assert [row.item for row in worded(rows, chart=Chart.ROWS)] == ["p50", "p95"]


def test_a_title_is_spelled_as_it_is_declared_and_a_sentence_begins_with_a_capital() -> None:
    """Law: "iOS start" is no "IOS start", whether it is named or left away."""
    about = remark(Code.IN_PROGRESS, "start")
    of_all = remark(Code.NOT_DRAWN, group="platform")

    assert remark_text(about, {"start": "iOS start"}).startswith("iOS start: in progress: ")
    assert remark_text(about, {"start": ""}).startswith("In progress: ")
    assert remark_text(about, {}).startswith("start: in progress: ")
    assert remark_text(of_all, {"start": "iOS start"}).startswith("Platform: arms that ")
    assert remark_text(about, {}).endswith(" is not complete.")


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


SHARES: Final = st.tuples(st.floats(0.01, 1e6), st.floats(0.001, 0.9))  # value, share of it as arm


def bar(value: float | None, arm: float = 0.0, name: str = "a", **more: Any) -> Row:
    """Return the number of one platform, with an interval of *arm* on either side."""
    low, high = (None, None) if value is None else (value - arm, value + arm)
    return Row(
        **{
            "dimensions": {"platform": name, ITEM: "yes"},
            "value": value,
            "ci_low": low,
            "ci_high": high,
            "std_error": None if value is None else arm / 2,
            "n": 5_000,
            "alpha": 0.05,
            "quality": "good",
            "unit": SHARE,
            **more,
        }
    )


def drawn(rows: list[Row], **options: Any) -> Element:
    return parsed(f"<div>{bar_table(rows, 'By platform', ChartOptions(**options))}</div>")


def width(part: Element, name: str) -> float:
    found = part.find(f".//rect[@class='{name}']")
    assert found is not None
    return float(found.get("width", ""))


@given(st.lists(SHARES, min_size=2, max_size=8))
def test_bars_begin_at_zero_and_are_as_long_as_their_numbers(
    numbers: list[tuple[float, float]],
) -> None:
    rows = [bar(value, value * arm, f"p{i}", unit="ms") for i, (value, arm) in enumerate(numbers)]

    lines = drawn(rows).findall(".//tbody/tr")

    longest = max(rows, key=lambda each: each.ci_high or 0)
    scale = 100 / (longest.ci_high or 1)
    for each, line in zip(rows, lines, strict=True):
        assert each.value is not None
        assert each.ci_high is not None
        assert each.ci_low is not None
        assert width(line, "bar") == pytest.approx(scale * each.value, abs=0.06)
        assert width(line, "span") == pytest.approx(scale * (each.ci_high - each.ci_low), abs=0.06)
        assert all("x" not in bar.attrib for bar in line.findall(".//rect[@class='bar']"))


def test_each_row_has_its_name_number_and_margin_or_the_reason_why_not() -> None:
    rows = [
        bar(0.44, 0.05, "phone"),
        bar(0.2, 0.04, "desktop", is_open=True),
        bar(None, name="tablet", refusal=remark(Code.NO_HOLDERS)),
    ]

    table = drawn(rows, link=lambda each: f"/of/{each.dimensions['platform']}")

    lines = [" ".join("".join(line.itertext()).split()) for line in table.findall(".//tbody/tr")]
    assert lines[:2] == ["phone44 %5", "desktop20 %4"]
    assert rows[2].reason
    assert lines[2].startswith("tablet")
    assert " ".join((rows[2].reason or "").split()) in lines[2]
    assert [link.get("href") for link in table.iter("a")] == [
        "/of/phone",
        "/of/desktop",
        "/of/tablet",
    ]
    assert "not complete" in "".join(table.itertext())


def test_rows_that_are_not_drawn_are_counted() -> None:
    rows = [bar(0.1 * i, 0.01, f"p{i}") for i in range(1, 8)]

    table = drawn(rows, most_rows=3)

    assert len(table.findall(".//tbody/tr")) == 3
    assert "and 4 more" in "".join(table.itertext())
    assert "more" not in "".join(drawn(rows).itertext())


@pytest.mark.parametrize(
    ("kind", "rows", "is_one"),
    [
        (Chart.ROWS, [bar(0.4, 0.1, "a"), bar(0.2, 0.1, "b")], True),
        (Chart.ORDERED, [bar(0.4, 0.1, "a"), bar(0.2, 0.1, "b")], False),
        (Chart.ROWS, [bar(0.4, 0.1, "a"), bar(0.05, 0.1, "b")], False),  # below zero
        (Chart.ROWS, [bar(0.4, 0.1, "a"), bar(0.2, 0.1, "b", unit="ms")], False),
        (Chart.ROWS, [bar(None, 0, "a"), bar(None, 0, "b")], False),
        (Chart.ROWS, [bar(0.4, 0.1, "a")], False),
        *(
            (
                Chart.ROWS,
                [bar(0.4, 0.1, dimensions={"platform": "a", name: at}) for at in "12"],
                False,
            )
            for name in (TIME, ITEM)
        ),
        (
            Chart.ROWS,
            [bar(0.4, 0.1, dimensions={"platform": name, AGAINST: "c"}) for name in "ab"],
            False,
        ),
    ],
)
def test_only_numbers_of_groups_from_zero_on_are_drawn_so(
    kind: Chart, rows: list[Row], is_one: bool
) -> None:
    assert is_breakdown(kind, rows) == is_one


def test_no_text_is_markup() -> None:
    text = "<script>alert(1)</script>"

    page = bar_table([bar(0.4, 0.1, text), bar(0.2, 0.1, '"')], text, ChartOptions())

    assert not re.search("<script", page)
    assert "&lt;script&gt;" in page
