"""Each kind of chart keeps the promises of its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from collector.analytics.rows import LOWER, Row, quality_of
from collector.estimation.estimate import Estimate
from collector.rendering.charts import Face
from collector.rendering.charts.bars import NO_CHANGE, verdict
from collector.rendering.charts.curve import Curve, curve
from collector.rendering.charts.frame import level_of
from collector.rendering.charts.marks import widening
from collector.rendering.charts.spark import spark
from collector.rendering.charts.svg import SERIES
from collector.rendering.numbers import reading
from collector.rendering.tables import table_of
from tests.support.charts import bars, cdf, difference, dots, grid, heat, histogram, line
from tests.support.known import known
from tests.support.sites.drawing import boxes, of_class, parsed, path_points
from tests.support.sites.gallery import (
    REASON,
    blank,
    buckets,
    cells,
    curves,
    day,
    differences,
    months,
    row,
    themes_over_time,
    two_way,
)


def texts(picture: str, *looks: str) -> list[str]:
    root = parsed(picture)
    return [e.text or "" for look in looks for e in of_class(root, look)]


def labels_of_marks(picture: str) -> list[str]:
    return [mark.get("data-label") or "" for mark in of_class(parsed(picture), "mark")]


@pytest.mark.parametrize("kind", [line, histogram, cdf, dots, difference, heat, grid])
def test_a_chart_without_numbers_says_why(kind: object) -> None:
    picture = kind([blank("a"), blank("b")], "t")  # type: ignore[operator]

    assert texts(picture, "reason") == [f"2 × {REASON}"]


def test_the_band_of_noise_is_as_wide_as_an_interval_around_zero() -> None:
    values = ("a", 0.3), ("b", 0.1), ("c", 0.0)
    root = parsed(bars([row(name, v, 0.01, simultaneous=True) for name, v in values], "t"))

    band = next(box for box in boxes(root) if box.element.get("class") == "noise")
    (*_, least) = [b for b in boxes(root) if b.element.get("class") == "whisker"]
    assert band.right - band.left == pytest.approx(least.right - least.left, abs=0.2)


def test_sorted_rows_are_told_from_zero_by_intervals_that_hold_all_at_once() -> None:
    """Law: of pointwise intervals it is Bonferroni's, here 1.41 times as long; it is said."""
    values = (0.3, 0.1, 0.013, 0.013, 0.0, 0.0, 0.0, 0.0, 0.0)
    single, joint = (
        [row(f"item {i}", v, 0.01, simultaneous=at_once) for i, v in enumerate(values)]
        for at_once in (False, True)
    )

    assert labels_of_marks(bars(single, "t")) == ["item 0", "item 1"]
    assert labels_of_marks(bars(joint, "t")) == ["item 0", "item 1", "item 2", "item 3"]
    assert widening(joint) == 1
    assert widening(single) == pytest.approx(2.7729 / 1.95996, abs=1e-4)
    assert "noise of all rows at once" in " ".join(texts(bars(single, "t"), "subtitle"))


def test_a_line_is_dashed_where_the_period_still_runs() -> None:
    root = parsed(line(months(), "t"))
    (dashed,) = of_class(root, "open-1")

    assert len(list(path_points(dashed.get("d") or ""))) == 2
    assert len(of_class(root, "ring-1")) == 1


def test_lines_differ_by_marker_and_are_named_at_their_ends() -> None:
    picture = line(themes_over_time(), "t")
    root = parsed(picture)

    names = ["light", "dark", "system default", "high contrast", "sepia", "solarized"]
    assert texts(picture, "label") == names
    last = [of_class(root, f"dot-{i}")[-1].get("d") or "" for i in range(1, SERIES + 1)]
    shapes = [[(x - d[0][0], y - d[0][1]) for x, y in d] for d in map(list, map(path_points, last))]
    assert len({tuple((round(x), round(y)) for x, y in shape) for shape in shapes}) == SERIES


def test_lines_that_end_at_the_same_place_have_names_apart() -> None:
    rows = [row({"item": name, "time": day(i)}, 0.3, 0.01) for name in "abc" for i in range(3)]
    root = parsed(line(rows, "t"))

    names = [float(e.get("y", 0)) for e in of_class(root, "label")]
    assert min(b - a for a, b in pairwise(names)) >= 12


def test_buckets_of_different_width_are_drawn_to_scale() -> None:
    root = parsed(histogram([row("0–10", 0.3, 0.01), row("10–40", 0.3, 0.01)], "t"))

    middles = [
        (box.left + box.right) / 2 for box in boxes(root) if box.element.get("class") == "whisker"
    ]
    plot = next(box for box in boxes(root) if box.element.get("class") == "outline")
    parts = [(m - plot.left) / (plot.right - plot.left) for m in middles]
    assert parts == pytest.approx([5 / 40, 25 / 40], abs=0.01)


def test_a_number_at_an_end_of_its_range_is_not_called_counted() -> None:
    cut = replace(row("p50", 0.0, 0.0, unit="ms"), std_error=0.0, end=LOWER)

    assert reading(cut) == "0 ms (at the lower end)"
    assert "at the lower end" in table_of([cut])
    assert level_of([cut]) == "95 % intervals"


@pytest.mark.parametrize("need", [0.002, 0.02, 0.05, 0.2])
def test_the_half_width_that_is_needed_is_not_crossed_by_a_line(need: float) -> None:
    one = Curve("ε = 1", tuple((n, 2 / n**0.5) for n in (100, 1_000, 10_000, 100_000, 1_000_000)))
    root = parsed(curve([one], "t", need=need))

    label = next(b for b in boxes(root) if "needed" in "".join(b.element.itertext()))
    places = list(path_points(of_class(root, "line-1")[0].get("d") or ""))
    for (x1, y1), (x2, y2) in pairwise(places):
        if x1 <= label.right and x2 >= label.left:
            left, right = max(x1, label.left), min(x2, label.right)
            ends = [y1 + (y2 - y1) * (x - x1) / (x2 - x1) for x in (left, right)]
            assert max(ends) < label.top or min(ends) > label.foot


def test_a_difference_that_noise_could_make_is_no_detectable_change() -> None:
    assert [verdict(r) for r in differences()] == [
        "higher, p < 0.001",
        "lower, p = 0.012",
        NO_CHANGE,
        "no number",
    ]
    assert len(of_class(parsed(difference(differences(), "t")), "quiet")) == 1


def test_cells_are_the_fainter_the_less_sure_they_are() -> None:
    rows = [
        replace_quality(row({"a": a, "b": b}, 0.5, half))
        for a, half in (("x", 0.01), ("y", 0.1), ("z", 0.4))
        for b in ("1", "2")
    ]
    marks = of_class(parsed(heat(rows, "t")), "mark")

    opacities = [float(mark.findall("*")[1].get("fill-opacity", 1)) for mark in marks]
    assert opacities == sorted(opacities, reverse=True)
    assert len(set(opacities)) == 3


def replace_quality(made: Row) -> Row:
    """Return the row as it is: the gallery's rows have the quality of their interval."""
    estimate = Estimate(known(made.value), 0.0, known(made.ci_low), known(made.ci_high))
    assert made.quality == quality_of(estimate)
    return made


def test_cells_print_their_numbers() -> None:
    root = parsed(heat(two_way(), "t"))

    printed = [e.text for e in root.iter() if (e.get("class") or "").startswith("on-")]
    assert len(printed) == 19
    assert printed[0] == "5.0 % ± 0.4"


def test_the_first_row_of_a_map_is_the_southernmost() -> None:
    rows = [row("0,0", 0.2, 0.01), row("1,0", 0.6, 0.01), row("1,1", 0.1, 0.01)]
    root = parsed(grid(rows, "t"))

    places = {
        mark.get("data-label"): box
        for mark in of_class(root, "mark")
        for box in boxes(root)
        if box.element in list(mark)
    }
    assert places["0,0"].top > places["1,0"].top
    assert places["1,1"].left > places["1,0"].left


def test_a_large_map_has_one_path_a_colour() -> None:
    root = parsed(grid(cells(27, 36, 0.0004), "t"))

    assert of_class(root, "mark") == []
    assert sum((e.get("class") or "").startswith("cell-") for e in root.iter()) < 40


def test_more_devices_and_more_epsilon_lie_lower() -> None:
    root = parsed(curve(curves(), "t"))
    paths = [list(path_points(of_class(root, f"line-{i}")[0].get("d") or "")) for i in (1, 2, 3, 4)]

    assert all(a[1] < b[1] for path in paths for a, b in pairwise(path))
    ends = [path[-1][1] for path in paths]
    assert ends == sorted(ends)


def test_a_sparkline_has_no_text_but_says_its_last_number() -> None:
    root = parsed(spark(months(), "Dark mode"))

    assert [e for e in root.iter() if e.tag.endswith("text")] == []
    assert "the last: 32.0 % ± 0.9" in (root.findtext("{*}desc") or "")


def test_the_last_bucket_label_does_not_leave_the_picture() -> None:
    root = parsed(histogram(buckets(), "t", Face(width=280)))

    assert max(box.right for box in boxes(root)) <= 280
