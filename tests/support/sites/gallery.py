"""Draw every kind of chart of made-up answers: ``python -m tests.support.sites.gallery DIR``.

Nothing here is random: waves stand for noise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date, timedelta
from math import exp, sin, sqrt
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from collector.analytics.rows import ITEM, SHARE, TIME, Chart, Row, empty_row, quality_of
from collector.core.remarks import Code, remark
from collector.estimation.estimate import Estimate
from collector.rendering.charts import Before, ChartOptions, Mark, chart_of
from collector.rendering.charts.curve import Curve, curve
from collector.rendering.charts.spark import spark
from collector.rendering.places import Box
from tests.support.charts import bars, cdf, difference, dots, grid, heat, histogram, line

N: Final = 20_000
FIRST_DAY: Final = date(2026, 10, 20)
REASON: Final = "not enough reports: 12 of at least 100 needed"
THEMES: Final = ("light", "dark", "system default", "high contrast", "sepia", "solarized", "nord")


def row(dimensions: dict[str, str] | str, value: float, half_width: float, **more: Any) -> Row:
    """Return a row with a 95 % interval of ±*half_width*; a text stands for an item."""
    named = {ITEM: dimensions} if isinstance(dimensions, str) else dimensions
    ends = value - half_width, value + half_width
    quality = quality_of(Estimate(value, half_width / 1.96, *ends))
    kept: dict[str, Any] = {"n": N, "alpha": 0.05, "quality": quality, "unit": SHARE} | more
    return Row(named, value, *ends, half_width / 1.96, **kept)


def blank(dimensions: dict[str, str] | str, unit: str = SHARE) -> Row:
    """Return a row that has too few reports for a number."""
    named = {ITEM: dimensions} if isinstance(dimensions, str) else dimensions
    return empty_row(named, 12, 0.05, unit, remark(Code.NOTE, text=REASON))


def day(number: int) -> str:
    """Return a day as the dimension "time" names it."""
    return (FIRST_DAY + timedelta(days=number)).isoformat()


def shares() -> list[Row]:
    """Return themes, the last of which cannot be told from zero, and one without a number."""
    values = (0.416, 0.213, 0.131, 0.088, 0.052, 0.031, 0.004, 0.001, -0.003)
    names = (*THEMES[:6], "gruvbox", "monokai", "zenburn")
    rows = [row(name, value, 0.006) for name, value in zip(names, values, strict=True)]
    return [*rows, blank("beta")]


def months() -> list[Row]:
    """Return a month of days with two missing, one marked as a change, and the last still open."""
    waves = [0.31 + 0.03 * sin(i / 4) + 0.004 * sin(9 * i) for i in range(28)]
    rows = [row({TIME: day(i)}, wave, 0.008, is_open=i == 27) for i, wave in enumerate(waves)]
    rows[9:11] = [blank({TIME: day(i)}) for i in (9, 10)]
    rows[15] = replace(rows[15], notes=(remark(Code.NOTE, text="change: lower than before"),))
    return rows


def month_before() -> Before:
    """Return the four weeks before those of ``months``, of which it has a day less."""
    waves = [0.27 + 0.03 * sin(i / 4) for i in range(27)]
    rows = [row({TIME: day(i - 28)}, wave, 0.008) for i, wave in enumerate(waves)]
    return Before(rows, 28, "previous period, 22 Sep to 19 Oct")


def themes_before() -> Before:
    """Return the four weeks before those of ``themes_over_time``."""
    rows = [
        row({ITEM: name, TIME: day(i - 28)}, max(0.01, 0.33 - 0.05 * j), 0.008)
        for j, name in enumerate(THEMES)
        for i in range(28)
    ]
    return Before(rows, 28, "previous period, 22 Sep to 19 Oct")


def notes() -> list[Mark]:
    """Return notes, two of which are near together, one with an address and one out of view."""
    return [
        Mark(day(4), "2.4 released", "/boards/releases"),
        Mark(day(20), "a new page for new users, which asks for what they came for and no more"),
        Mark(day(21), "an outage of two hours"),
        Mark(day(-9), "before all days"),
    ]


def year() -> list[Row]:
    """Return a year of days in milliseconds."""
    first = date(2025, 11, 20)
    return [
        row(
            {TIME: (first + timedelta(days=i)).isoformat()},
            412 + 30 * sin(i / 40) + 4 * sin(7 * i),
            9,
            unit="ms",
        )
        for i in range(365)
    ]


def themes_over_time() -> list[Row]:
    """Return seven lines of four weeks: one more than is drawn."""
    return [
        row({ITEM: name, TIME: day(i)}, max(0.01, 0.35 - 0.05 * j + 0.02 * sin(i / 3 + j)), 0.008)
        for j, name in enumerate(THEMES)
        for i in range(28)
    ]


def buckets() -> list[Row]:
    """Return a distribution over buckets of ten, in percent of devices."""
    percents = (1, 5, 14, 22, 20, 14, 10, 6, 4, 2, 0.4, -0.3)
    return [row(f"{10 * i}–{10 * i + 10}", p / 100, 0.008) for i, p in enumerate(percents)]


def fine_buckets() -> list[Row]:
    """Return a hundred buckets."""
    return [
        row(f"{a}..{a + 10}", 0.02 * exp(-(((a - 300) / 200) ** 2)), 0.003)
        for a in range(0, 1000, 10)
    ]


def cumulated() -> list[Row]:
    """Return a distribution function at fifty thresholds."""
    return [row(str(a), 1 / (1 + exp(-(a - 300) / 70)), 0.012) for a in range(0, 1000, 20)]


def platforms() -> list[Row]:
    """Return a mean of each segment, in milliseconds."""
    names = ("linux", "macos", "windows")
    rows = [
        row({"platform": name}, 412 + 20 * i, 9 + 3 * i, unit="ms", n=9_000 // (i + 1))
        for i, name in enumerate(names)
    ]
    return [*rows, blank({"platform": "bsd"}, "ms")]


def themes_by_platform() -> list[Row]:
    """Return shares of three items in three segments."""
    return [
        row({"platform": name, ITEM: theme}, 0.3 - 0.1 * j + 0.03 * i, 0.01 + 0.004 * i)
        for j, theme in enumerate(THEMES[:3])
        for i, name in enumerate(("linux", "macos", "windows"))
    ]


def differences() -> list[Row]:
    """Return one higher, one lower, one that noise alone could make, and one without a number."""
    return [
        row("light", 0.021, 0.008, p_value=1e-5, fakes_to_flip=310),
        row("dark", -0.012, 0.009, p_value=0.012, fakes_to_flip=70),
        row("system default", 0.002, 0.009, p_value=0.7, notes=(remark(Code.NO_CHANGE),)),
        blank("sepia"),
    ]


def lift() -> list[Row]:
    """Return the difference of two arms."""
    return [row({}, -14.2, 6.1, unit="ms", p_value=0.0004, fakes_to_flip=412)]


def two_way() -> list[Row]:
    """Return a two-way table with a cell that has no number."""
    rows = [
        row({"education": name, "income": income}, 0.06 * (5 - a) * (b + 1) / 6, 0.004 + 0.006 * a)
        for a, name in enumerate(("primary", "secondary", "bachelor", "master", "doctorate"))
        for b, income in enumerate(("low", "middle", "high", "very high"))
    ]
    rows[3] = blank(dict(rows[3].dimensions))
    return rows


def wide_table() -> list[Row]:
    """Return a table with more rows than are drawn and labels longer than its columns."""
    return [
        row({ITEM: f"some long item {a}", "version": f"2.{b}"}, 0.01 * a + 0.005 * b, 0.013)
        for a in range(24)
        for b in range(18)
    ]


PLACES: Final = {
    f"{r},{c}": Box(3.0 + c, 45.5 + 0.5 * r, 4.0 + c, 46.0 + 0.5 * r)
    for r in range(8)
    for c in range(12)
}


def cells(downs: int, acrosses: int, half_width: float) -> list[Row]:
    """Return a grid with one peak."""
    return [
        row(
            f"{r},{c}",
            10 * half_width * exp(-6 * ((r / downs - 0.6) ** 2 + (c / acrosses - 0.3) ** 2) / 0.5),
            half_width,
        )
        for r in range(downs)
        for c in range(acrosses)
    ]


def curves() -> list[Curve]:
    """Return errors expected for four ε."""
    devices = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
    return [
        Curve(f"ε = {epsilon:g}", tuple((n, 2 / (epsilon * sqrt(n))) for n in devices))
        for epsilon in (0.5, 1.0, 2.0, 4.0)
    ]


Drawn = Callable[[ChartOptions], str]
PICTURES: Final[dict[str, Drawn]] = {
    "bars": lambda options: bars(shares(), "Which theme do people use?", options),
    "funnel": lambda options: chart_of(
        Chart.STEPS, shares()[:4], "Steps of the installation", options
    ),
    "line": lambda options: line(months(), "Share of dark mode", options),
    "lines": lambda options: line(themes_over_time(), "Themes over four weeks", options),
    "year": lambda options: line(year(), "Start-up time", options),
    "notes": lambda options: line(months(), "Share of dark mode", options, notes(), month_before()),
    "earlier": lambda options: line(
        themes_over_time(), "Themes over four weeks", options, notes(), themes_before()
    ),
    "histogram": lambda options: histogram(buckets(), "Start-up time", options, "ms"),
    "fine": lambda options: histogram(fine_buckets(), "Start-up time, finer", options, "ms"),
    "cdf": lambda options: cdf(cumulated(), "Start-up time, cumulated", options, "ms"),
    "dots": lambda options: dots(platforms(), "Start-up time by platform", options),
    "groups": lambda options: dots(themes_by_platform(), "Themes by platform", options),
    "difference": lambda options: difference(differences(), "This week against the last", options),
    "lift": lambda options: difference(lift(), "New loader against old", options),
    "heat": lambda options: heat(two_way(), "Income by education", options),
    "wide": lambda options: heat(wide_table(), "Items by version", options),
    "grid": lambda options: grid(cells(8, 12, 0.004), "Where devices are", options, places=PLACES),
    "city": lambda options: grid(cells(27, 36, 0.0004), "Where devices are, finer", options),
    "curve": lambda options: curve(
        curves(), "How many devices are needed?", options, devices=20_000, need=0.01
    ),
    "stack": lambda options: chart_of(
        Chart.DIFFERENCES, [*platforms(), *lift()], "Two units", options
    ),
    "nothing": lambda options: line([blank({TIME: day(i)}) for i in range(3)], "Too few", options),
    "spark": lambda options: spark(months(), "Dark mode", options),
}


def main() -> None:
    """Write a light and a dark page of all pictures into the folder that is named."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawn in PICTURES.items():
        picture = drawn(ChartOptions(prefix=name, standalone=True))
        (folder / f"{name}.svg").write_text(picture, encoding="utf-8")
    for theme, paper in (("light", "#ffffff"), ("dark", "#0d1117")):
        body = "".join(
            f"<figure>{drawn(ChartOptions(prefix=name, standalone=True))}</figure>"
            for name, drawn in PICTURES.items()
        )
        page = f"<!doctype html><html data-theme={theme}><meta charset=utf-8><title>Gallery</title>"
        style = f"<body style='background:{paper};width:680px;margin:20px'>"
        (folder / f"{theme}.html").write_text(page + style + body, encoding="utf-8")


if __name__ == "__main__":
    main()
