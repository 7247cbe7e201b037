"""Numbers that can be, and the words beside them."""

from __future__ import annotations

import re
from datetime import date
from functools import partial
from itertools import pairwise
from math import inf
from typing import Any, Final

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
    Chart,
    Row,
    empty_row,
    row_of,
)
from collector.core.remarks import Code, remark
from collector.estimation.estimate import Estimate
from collector.rendering.charts import chart_of, page_chart, pictures_of
from collector.rendering.numbers import numbers_of
from collector.rendering.possible import possible
from collector.rendering.tables import csv_of, lines_of
from collector.rendering.wording import days_in_words, last_day, remark_text, worded

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
        page_chart(partial(pictures_of, kind, rows, "Title"), "prefix"),
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
