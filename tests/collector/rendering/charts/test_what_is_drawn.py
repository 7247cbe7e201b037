"""What stands in a chart of stated rows: the labels of its marks, its texts, how many of a kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Final

import pytest

from collector.analytics.rows import ITEM, LOWER, SHARE, TIME, Chart, Row, chance
from collector.rendering.charts import Before, Face, Mark, chart_of
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
from tests.support.charts import bars, cdf, difference, dots, grid, histogram, line
from tests.support.sites.drawing import of_class, parsed
from tests.support.sites.gallery import (
    REASON,
    blank,
    cells,
    cumulated,
    day,
    differences,
    months,
    notes,
    platforms,
    row,
    shares,
    themes_by_platform,
    themes_over_time,
)

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
    return line(now or week(), "t", Face(), (), Before(rows, 7, "the week before"))


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
        dots(platforms(), "t", Face(heading=False)),
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
    "a note within the last stretch is drawn and one out of view is not": Drawn(
        line(OF_WEEKS, "t", Face(), MARKS),
        texts={"flag": ["1"]},
        has={"note": ["1 · 2026-10-23: in"]},
    ),
    "notes that would touch share a number": Drawn(
        line(months(), "t", Face(width=420), notes()),
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
        chart_of(Chart.ROWS, SLOW, "t", Face(), before=Before(week(0.2), 7, "the week before")),
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
