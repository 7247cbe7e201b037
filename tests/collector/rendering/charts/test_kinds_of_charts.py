"""Each kind of chart shows what its rows say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import pairwise
from typing import Final

import pytest
from msgspec.structs import replace

from collector.analytics.rows import ITEM, LOWER, SHARE, TIME, Chart, Row, chance, quality_of
from collector.estimation.estimate import Estimate
from collector.rendering.charts import Before, ChartOptions, Mark, chart_of
from collector.rendering.charts.bars import NO_CHANGE, verdict
from collector.rendering.charts.curve import Curve, curve
from collector.rendering.charts.frame import level_of
from collector.rendering.charts.marks import widening
from collector.rendering.charts.spark import spark
from collector.rendering.charts.svg import SERIES
from collector.rendering.numbers import (
    MINUS,
    POINTS,
    ends_of,
    finest,
    margin,
    number,
    plus_minus,
    reading,
    value_of,
)
from collector.rendering.places import Box
from collector.rendering.tables import table_of
from tests.support.charts import bars, cdf, difference, dots, grid, heat, histogram, line
from tests.support.known import known
from tests.support.sites.drawing import boxes, of_class, parsed, path_points
from tests.support.sites.gallery import (
    REASON,
    blank,
    buckets,
    cells,
    cumulated,
    curves,
    day,
    differences,
    months,
    notes,
    platforms,
    row,
    shares,
    themes_by_platform,
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


@pytest.mark.parametrize("width", [280, 320, 540])
def test_devices_and_half_width_needed_are_named_where_no_line_runs(width: int) -> None:
    one = Curve("ε = 1", tuple((n, 2 / n**0.5) for n in (100, 1_000, 10_000, 100_000, 1_000_000)))
    root = parsed(curve([one], "t", ChartOptions(width=width), devices=10_000, need=0.05))

    drawn = list(boxes(root))
    named = [b for b in drawn if "Dashed line" in (b.element.text or "")]
    lines = [b for b in drawn if b.element.get("class") == "reference"]
    assert [b.element.text for b in named] == [
        "Dashed line upwards: 10,000 devices",
        "Dashed line across: ± 5 points needed",
    ]
    assert len(lines) == 2
    assert min(b.top for b in named) > max(b.foot for b in lines)


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


def test_small_bars_have_intervals_and_say_the_first_number() -> None:
    """Of rows without a time: at most five, each with what the noise leaves open."""
    root = parsed(spark(shares(), "Themes"))

    assert "10 rows; the first: 41.6 % ± 0.6" in (root.findtext("{*}desc") or "")
    assert [len(of_class(root, name)) for name in ("bar", "whisker")] == [5, 5]
    widths = [float(bar.get("width", "")) for bar in of_class(root, "bar")]
    assert widths == sorted(widths, reverse=True)
    assert of_class(parsed(spark([], "Nothing")), "bar") == []


def test_the_last_bucket_label_does_not_leave_the_picture() -> None:
    root = parsed(histogram(buckets(), "t", ChartOptions(width=280)))

    assert max(box.right for box in boxes(root)) <= 280


START: Final = date(2026, 10, 20)


@dataclass(frozen=True)
class Drawn:
    """A chart, and what it must show of elements of a class."""

    picture: str
    marks: Sequence[str] | None = None  # labels, in order
    count: Mapping[str, int] = field(default_factory=dict)  # elements of each class
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)  # all of a class, in order
    has: Mapping[str, Sequence[str]] = field(default_factory=dict)  # some of a class
    lacks: Sequence[str] = ()  # anywhere in the picture


def exact(time: str, value: float, unit: str = SHARE) -> Row:
    return replace(row({TIME: time}, value, 0.0, unit=unit), std_error=0.0)


def dated(number: int, value: float, item: str = "") -> Row:
    names = {TIME: (START + timedelta(days=number)).isoformat()}
    return row({**names, ITEM: item} if item else names, value, 0.01)


def week(value: float = 0.3) -> list[Row]:
    return [dated(i, value) for i in range(7)]


def before(rows: list[Row], now: list[Row] | None = None) -> str:
    """Return the line of a week over an earlier one."""
    return line(now or week(), "t", ChartOptions(), (), Before(rows, 7, "the week before"))


ABC: Final = [row("a", 0.1, 0.01), row("b", 0.3, 0.01), row("c", 0.2, 0.01)]
UNSURE: Final = [row(name, 0.001, 0.01) for name in "abc"]
COLD: Final = [
    row(name, value, 3.0, unit="°C") for name, value in zip("abc", (-9, 0, 9), strict=True)
]
MANY: Final = [row(f"item {i}", 0.9 - i / 100, 0.001) for i in range(54)]
UNEVEN: Final = [row(name, 0.2, 0.01, n=n) for name, n in (("a", 100), ("b", 200), ("c", 300))]
AT_ONCE: Final = [row(name, 0.2, 0.01, simultaneous=True) for name in "ab"]
STEPS: Final = [row(str(a), f, 0.01) for a, f in ((0, 0.1), (10, 0.5), (20, 0.905))]
TWO: Final = [dated(i, v, item) for item, v in (("a", 0.3), ("b", 0.2)) for i in range(7)]
TWO_BEFORE: Final = [
    dated(i - 7, v, item) for item, v in (("b", 0.1), ("c", 0.4)) for i in range(7)
]
OF_WEEKS: Final = [row({TIME: f"2026-10-{d}"}, 0.3, 0.01) for d in ("05", "12", "19")]
MARKS: Final = [
    Mark(f"2026-10-{d}", text) for d, text in (("04", "early"), ("23", "in"), ("26", "late"))
]
SLOW: Final = [row({TIME: f"2026-10-{d}"}, 400.0, 9.0, unit="ms") for d in range(10, 17)]
PLACES: Final = {
    f"{r},{c}": Box(13 + c, 52 + r, 14 + c, 53 + r) for r in range(4) for c in range(4)
}

DRAWN: Final = {
    "bars are sorted by value": Drawn(bars(ABC, "t"), marks="bca"),
    "bars keep their order if asked": Drawn(bars(ABC, "t", ranked=False), marks="abc"),
    "rows that noise alone could make are one line with their count": Drawn(
        bars(shares(), "t"),
        has={"reason": ["3 more, not distinguishable from 0 (each up to about 1.2 %)"]},
    ),
    "bars of which none is sure are all shown": Drawn(bars(UNSURE, "t"), marks="abc"),
    "numbers other than shares are not folded at zero": Drawn(bars(COLD, "t"), marks="cba"),
    "rows beyond the limit are counted": Drawn(
        bars(MANY, "t"), count={"bar": 20}, has={"reason": ["and 34 more, smaller"]}
    ),
    "a row without a number shows its reason and no bar": Drawn(
        bars([row("a", 0.5, 0.01), blank("b")], "t"), count={"bar": 1}, has={"reason": [REASON]}
    ),
    "rows of different numbers of reports share no band of noise": Drawn(
        bars(UNEVEN, "t"), count={"noise": 0}
    ),
    "intervals that hold at once say so": Drawn(
        bars(AT_ONCE, "t"),
        texts={"subtitle": ["share of devices · 95 % intervals, all at once · 20,000 reports"]},
    ),
    "no number of reports is told of rows that differ": Drawn(
        bars([row("a", 0.2, 0.01), blank("b")], "t"),
        texts={"subtitle": ["share of devices · 95 % intervals"]},
    ),
    "a line has a gap where there is no number and says why": Drawn(
        line(months(), "t"),
        count={"band-1": 2},
        has={"note": [f"× 2 of 28 points have no number: {REASON}"]},
    ),
    "a line has a gap where a day is missing": Drawn(
        line([row({TIME: day(i)}, 0.3, 0.01) for i in (0, 1, 2, 4, 5)], "t"), count={"line-1": 2}
    ),
    "no more lines are drawn than can be told apart": Drawn(
        line(themes_over_time(), "t"),
        count={**{f"line-{i}": 1 for i in range(1, SERIES + 1)}, f"line-{SERIES + 1}": 0},
        has={"note": ["and 1 more, smaller on average"]},
    ),
    "times that are no dates stand in their order": Drawn(
        line([row({TIME: name}, 0.3, 0.01) for name in ("before", "during", "after")], "t"),
        has={"tick": ["before", "during", "after"]},
    ),
    "a share that all reports have has no axis beyond the whole": Drawn(
        line([exact(day(i), 1.0) for i in range(3)], "t"),
        has={"tick": ["100 %"]},
        lacks=["120 %"],
    ),
    "what is counted is drawn from zero": Drawn(
        line([exact(day(i), 900.0 + i, unit="devices") for i in range(3)], "t"),
        has={"tick": ["0"]},
    ),
    "buckets that are no numbers keep their names": Drawn(
        histogram([row(name, 0.3, 0.01) for name in ("never", "once", "often")], "t"),
        has={"tick": ["never", "once", "often"]},
    ),
    "no quantile is read off a curve unless asked for": Drawn(
        cdf(cumulated(), "t", x_unit="ms"), lacks=["p50"]
    ),
    "dots are grouped by item with one colour a segment": Drawn(
        dots(themes_by_platform(), "t"), count={"dot-1": 3, "dot-2": 3, "dot-3": 3, "dot-4": 0}
    ),
    "the heading can be left to the page": Drawn(
        dots(platforms(), "t", ChartOptions(heading=False)),
        texts={"title": [], "subtitle": ["ms · 95 % intervals"]},
    ),
    "a chart has a heading": Drawn(
        dots(platforms(), "t"), texts={"title": ["t"], "subtitle": ["ms · 95 % intervals"]}
    ),
    "differences of shares are points": Drawn(
        difference(differences(), "t"), has={"value": ["+2.1 points"]}
    ),
    "cells that noise alone could make are counted and not coloured": Drawn(
        grid([row("0,0", 0.2, 0.01), row("0,1", 0.001, 0.01)], "t"),
        count={"mark": 1},
        has={"note": ["1 cell not distinguishable from 0"]},
    ),
    "a map with a box has degrees": Drawn(
        grid(cells(4, 4, 0.01), "t", places=PLACES),
        has={"tick": ["13° E", "17° E", "52° N", "56° N"]},
    ),
    "the greatest cells stand in words next to a map that leaves room": Drawn(
        grid([row("0,0", 0.2, 0.01), row("0,1", 0.001, 0.01), row("1,0", 0.3, 0.01)], "t"),
        texts={"value": ["30.0 % ± 1.0", "20.0 % ± 1.0"], "label": ["1,0", "0,0"]},
    ),
    "no cell stands in words next to a map that leaves no room": Drawn(
        grid([row("0,0", 0.2, 0.01), row("1,0", 0.3, 0.01)], "t", ChartOptions(width=300)),
        texts={"value": [], "label": []},
    ),
    "a note within the last stretch is drawn and one out of view is not": Drawn(
        line(OF_WEEKS, "t", ChartOptions(), MARKS),
        texts={"flag": ["1"]},
        has={"note": ["1 · 2026-10-23: in"]},
    ),
    "notes that would touch share a number": Drawn(
        line(months(), "t", ChartOptions(width=420), notes()),
        count={"reference": 3},
        texts={"flag": ["1", "2"]},
    ),
    "each line has its own earlier one and others are not drawn": Drawn(
        before(TWO_BEFORE, TWO),
        count={"past-1": 0, "past-2": 1, "past-3": 0},
        has={"note": ["thin: the week before"]},
    ),
    "an earlier period without numbers says why": Drawn(
        before([blank({TIME: "2026-10-13"})]), has={"note": [f"the week before: {REASON}"]}
    ),
    "an earlier period without reports says so": Drawn(
        before([]), has={"note": ["the week before: no reports"]}
    ),
    "numbers of another unit are no earlier period": Drawn(
        chart_of(
            Chart.ROWS, SLOW, "t", ChartOptions(), before=Before(week(0.2), 7, "the week before")
        ),
        has={"note": ["the week before: no reports"]},
    ),
}


@pytest.mark.parametrize("law", DRAWN)
def test_a_chart_shows_what_its_rows_say(law: str) -> None:
    drawn = DRAWN[law]

    root = parsed(drawn.picture)

    def texts(look: str) -> list[str]:
        return [element.text or "" for element in of_class(root, look)]

    if drawn.marks is not None:
        assert [mark.get("data-label") for mark in of_class(root, "mark")] == [*drawn.marks]
    assert {look: len(of_class(root, look)) for look in drawn.count} == drawn.count
    assert {look: texts(look) for look in drawn.texts} == drawn.texts
    for look, some in drawn.has.items():
        assert set(some) <= set(texts(look))
    assert not [text for text in drawn.lacks if text in drawn.picture]


@pytest.mark.parametrize(
    ("quantile", "rows", "said"),
    [(0.5, cumulated(), "p50 ≈ 300 ms (297 to 303)"), (0.9, STEPS, "p90 at least ")],
)
def test_a_quantile_is_read_off_the_curve_with_its_interval(
    quantile: float, rows: list[Row], said: str
) -> None:
    """One beyond the thresholds has no upper end."""
    picture = cdf(rows, "t", x_unit="ms", quantiles=(quantile,))

    (note,) = of_class(parsed(picture), "note")
    assert (note.text or "").startswith(said)


COUNTED: Final = Row({}, 16_234.0, 16_234.0, 64_001.0, 0.0, 64_001, 0.05, "good", "devices")
WHOLE: Final = Row({}, 3.0, 2.0, 4.0, 0.5, 900, 0.05, "good", "pages")
LARGE: Final = row("a", 0.44, 0.475)
# How a row reads; an interval that leaves out zero is never written as a ± that reaches it.
READINGS: Final = [
    (row("a", 0.201, 0.0034), "20.1 % ± 0.4"),
    (replace(row("a", 0.012, 0.008), ci_low=0.004, ci_high=0.029), "1.2 % (0.4 to 2.9)"),
    (replace(LARGE, ci_low=0.03, ci_high=0.98), "44 % (3 to 98)"),
    (
        replace(row("a", -0.44, 0.475), ci_low=-0.98, ci_high=-0.03),
        f"{MINUS}44 % ({MINUS}98 to {MINUS}3)",
    ),
    (replace(LARGE, ci_low=-0.01, ci_high=0.94), "40 % ± 60"),
    (blank("a"), REASON),
    *((replace(row("a", 0.1, 0.01), value=float(each)), "no number") for each in ("nan", "inf")),
    (COUNTED, "16,234 devices (16,234 to 64,001)"),  # bounds that were rounded would not hold
    (row("a", 6.1, 5.0, unit="EUR"), "6.1 EUR ± 5.0"),
    (row("a", 6.1, 6.2, unit="EUR"), "6 EUR ± 7"),
    (replace(row("a", 0.09, 0.04), p_value=0.001), "9 points ± 4"),  # 9 % more is another thing
    (WHOLE, "3 pages ± 1"),
    (replace(WHOLE, value=1.0, ci_low=1.0, ci_high=2.0), "1 page (1 to 2)"),
    (replace(WHOLE, ci_low=2.4, ci_high=3.6), "3.0 pages ± 0.6"),
    (
        replace(row("p50", 0.0, 0.0, unit="ms"), std_error=0.0, end=LOWER),
        "0 ms (at the lower end)",
    ),
]


@pytest.mark.parametrize(("one", "text"), READINGS)
def test_a_row_reads_as_its_value_and_its_interval(one: Row, text: str) -> None:
    assert reading(one) == text
    assert margin(one) in text


def test_signs_p_values_and_half_widths_are_written_as_people_write_them() -> None:
    signed = {0.012: 0.004, 0.0: 0.004, 0.0004: 0.02, -0.0004: 0.02}

    assert [number(value, POINTS, half, signed=True) for value, half in signed.items()] == [
        "+1.2 points",
        "0.0 points",
        "0 points",
        "0 points",
    ]
    assert [chance(p) for p in (1e-9, 0.0123)] == ["p < 0.001", "p = 0.012"]
    small = row("b", 0.0102, 0.01)
    assert ends_of(small, least=finest([row("a", 0.27, 0.05), small]))[0] == "0.02 %"
    assert plus_minus(0.0034, "share") == "± 0.4"
    assert ends_of(replace(row("a", 0.09, 0.04), p_value=0.001)) == ("5 points", "13 points")


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        ([(0.283, 0.03), (0.062, 0.019)], ["28.3 % ± 3.0", "6.2 % ± 1.9"]),
        ([(0.283, 0.03), (0.0001, 0.00002)], ["28.3 % ± 3.0", "0.010 % ± 0.002"]),
        (
            [(0.27, 0.05), (0.04627, 0.04327), (0.0326, 0.00082)],
            ["27.0 % ± 5.0", "4.6 % ± 4.4", "3.3 % ± 0.2"],
        ),
        ([(0.27, 0.05), (0.0102, 0.01)], ["27.0 % ± 5.0", "1.02 % ± 1.00"]),
    ],
)
def test_rows_side_by_side_have_as_many_decimals(
    rows: list[tuple[float, float]], texts: list[str]
) -> None:
    """No more than one that a row does not deserve; and no sign is rounded away for others."""
    shown = [row(str(i), value, half) for i, (value, half) in enumerate(rows)]
    least = finest(shown)

    assert [f"{value_of(r, least=least)} {margin(r, least=least)}" for r in shown] == texts


def test_a_sparkline_of_several_items_describes_the_one_that_it_draws() -> None:
    rows = [
        row({TIME: f"2026-01-{day:02}", ITEM: item}, value, 0.02)
        for day in range(1, 8)
        for item, value in (("a", 0.6), ("b", 0.2))
    ]

    said = parsed(spark(rows, "Themes")).findtext("{*}desc") or ""

    assert said.startswith("7 points; the last: 60 %")
