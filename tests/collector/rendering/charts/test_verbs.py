"""Rows get the chart that they deserve, whatever verb made them."""

from __future__ import annotations

import pytest

from collector.analytics.rows import Chart, Row
from collector.analytics.verb import load
from collector.rendering.charts import chart_of
from tests.support.sites.drawing import of_class, parsed
from tests.support.sites.gallery import (
    buckets,
    cells,
    cumulated,
    differences,
    lift,
    months,
    platforms,
    shares,
    themes_by_platform,
    themes_over_time,
    two_way,
    wide_table,
)

CHARTS = {
    "bar": "Bar chart",
    "line": "Line chart",
    "histogram": "Histogram",
    "cdf": "Cumulative distribution",
    "dots": "Dots with intervals",
    "difference": "Differences",
    "heat": "Heat map",
    "map": "Map of a grid",
}


def described(verb: str, rows: list[Row]) -> str:
    return parsed(chart_of(load(verb).chart, rows, "t")).findtext("{*}desc") or ""


@pytest.mark.parametrize(
    ("verb", "rows", "chart"),
    [
        ("frequency", shares(), "bar"),
        ("top_k", shares(), "bar"),
        ("heavy_hitters", shares(), "bar"),
        ("retention", shares(), "bar"),
        ("trend", months(), "line"),
        ("frequency", themes_over_time(), "line"),
        ("actives", months(), "line"),
        ("histogram", buckets(), "histogram"),
        ("cdf", cumulated(), "cdf"),
        ("mean", platforms(), "dots"),
        ("quantile", platforms(), "dots"),
        ("frequency", themes_by_platform(), "dots"),
        ("compare", differences()[:3], "difference"),
        ("lift", lift(), "difference"),
        ("crosstab", two_way(), "heat"),
        ("frequency", wide_table(), "heat"),
        ("map", cells(4, 4, 0.01), "map"),
        ("estimate", shares(), "bar"),
        ("estimate", [], "bar"),
    ],
)
def test_a_verb_gets_the_chart_that_its_rows_deserve(
    verb: str, rows: list[Row], chart: str
) -> None:
    said = described(verb, rows)

    assert said.startswith(CHARTS[chart]) or (not rows and said.startswith("No numbers"))


def test_numbers_of_different_units_are_drawn_below_one_another() -> None:
    root = parsed(chart_of(Chart.ROWS, [*shares(), *platforms()], "t"))

    said = root.findtext("{*}desc") or ""
    assert "Bar chart" in said
    assert "Dots" in said
    assert len(of_class(root, "title")) == 1


def test_steps_of_a_funnel_keep_their_order() -> None:
    rows = [shares()[2], shares()[0], shares()[1]]
    marks = of_class(parsed(chart_of(Chart.STEPS, rows, "t")), "mark")

    assert [mark.get("data-label") for mark in marks] == [row.item for row in rows]
