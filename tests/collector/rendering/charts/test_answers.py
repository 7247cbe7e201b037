"""The charts of answers and of every verb."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any, Final

import numpy as np
import pytest

from client_sdk.core.dataclass import replace
from client_sdk.registry.metric import Metric
from collector.analytics.rows import Chart, Findings, Row
from collector.analytics.verb import VerbQuery, load
from collector.rendering.charts import ChartOptions, chart_of
from collector.rendering.tables import csv_of, table_of
from tests.support.crowds.asking import ask
from tests.support.crowds.boolean_slices import drawn, exact
from tests.support.device.registries import FUNNEL, LOCATION, PAIR, RETENTION
from tests.support.enumeration.populations import WAVE, category, metric_of, slice_of
from tests.support.sites.drawing import boxes, of_class, parsed, tag, view
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

DAYS: Final = 6
OF_NUMBERS: Final = ("mean", "sum", "variance", "quantile", "cdf", "histogram", "range")
OF_VERSIONS: Final = ("trend", "compare", "lift", "adoption", "actives")
VERSIONS: Final = ("1", "2", "3")
BELL: Final = np.rint(20_000 * np.exp(-0.5 * ((np.arange(48) - 17) / 5) ** 2) / 12.5).astype(int)


def grr(fields: dict[str, str], **changes: str | None) -> Metric:
    return metric_of(fields, mechanism='"grr"', **changes)


@cache
def grid() -> Any:
    """Return three versions over six days, one of which has few reports."""
    chance = np.random.default_rng(7)
    return tuple(
        drawn({"time": f"2026-03-0{i}", "version": v}, 0.4, 60 if i == 3 else 900, chance, i)
        for i in range(1, DAYS + 1)
        for v in VERSIONS
    )


def answered(verb: str) -> Findings:
    """Return an answer of *verb*."""
    themes = category(*"abcdefghij")
    held = (4_000, 2_000, 1_000, 500, 300, 100, 50, 20, 0, 0)
    curve = [slice_of(metric_of(WAVE), BELL.tolist(), {"platform": p}) for p in ("linux", "macos")]
    slices: dict[str, list[Any]] = {
        "estimate": [slice_of(themes, held)],
        "frequency": [slice_of(themes, held, {"platform": p}) for p in ("linux", "macos")],
        "top_k": [slice_of(themes, held)],
        **{name: curve for name in OF_NUMBERS},
        **{name: list(grid()) for name in OF_VERSIONS},
        "segments": [exact({"version": v}, 0.4, 800) for v in VERSIONS],
        "funnel": [slice_of(grr(FUNNEL), (2_000, 3_000, 1_500, 500))],
        "retention": [
            slice_of(
                grr(RETENTION, periods='["w0", "w1", "w2"]'),
                (500, 0, 400, 0, 3_000, 500, 800, 1_800),
            )
        ],
        "crosstab": [slice_of(grr(PAIR), (2_000, 1_500, 500, 500, 1_500, 4_000))],
    }
    options: dict[str, dict[str, Any]] = {
        "compare": {"by": "version", "against": "2"},
        "lift": {"dimension": "version", "control": "1"},
        "range": {"ranges": [[0, 10], [10, 20], [None, 30]]},
    }
    return ask(verb, slices[verb], options=options.get(verb, {}))


CHARTS: Final = {
    "estimate": ["Bar chart"],
    "frequency": ["Dots with intervals"],
    "top_k": ["Bar chart"],
    "mean": ["Dots with intervals"],
    "sum": ["Dots with intervals"],
    "variance": ["Dots with intervals"],
    "quantile": ["Dots with intervals"],
    "cdf": ["Cumulative distribution", "Cumulative distribution"],
    "histogram": ["Histogram", "Histogram"],
    "range": ["Dots with intervals"],
    "trend": ["Line chart"],
    "compare": ["Differences"],
    "lift": ["Differences", "Differences"],
    "adoption": ["Line chart"],
    "actives": ["Line chart"],
    "segments": ["Dots with intervals"],
    "funnel": ["Bar chart", "Bar chart"],
    "retention": ["Bar chart", "Bar chart"],
    "crosstab": ["Heat map"],
}


@pytest.mark.parametrize("verb", CHARTS)
def test_the_answer_of_a_verb_becomes_its_charts(verb: str) -> None:
    rows = answered(verb).rows

    for width in (320, 600):
        root = parsed(chart_of(load(verb).chart, rows, verb, ChartOptions(width=width)))
        said = root.findtext("{*}desc") or ""
        wide, high = view(root)
        placed = list(boxes(root))
        assert sum(said.count(kind) for kind in set(CHARTS[verb])) == len(CHARTS[verb]), said
        assert all(
            box.left >= -0.1 and box.right <= wide + 0.1 and box.foot <= high + 0.1
            for box in placed
        )
        texts = [box for box in placed if tag(box.element) == "text"]
        touching = [(a, b) for a, b in combinations(texts, 2) if a.overlaps(b, slack=0.5)]
        assert [(a.element.text, b.element.text) for a, b in touching] == []


@pytest.mark.parametrize("verb", CHARTS)
def test_the_answer_of_a_verb_becomes_a_table_and_a_file(verb: str) -> None:
    rows = answered(verb).rows

    assert len(parsed(table_of(rows)).findall("tbody/tr")) == len(rows)
    assert csv_of(rows).count("\r\n") == len(rows) + 1


def test_a_map_has_the_box_of_the_facts() -> None:
    metric = grr(LOCATION)
    held = [40 * i for i in range(metric.domain.size)]
    found = ask("map", [slice_of(metric, held)])

    root = parsed(chart_of(Chart.MAP, found.rows, "t", facts=found.facts))

    assert (root.findtext("{*}desc") or "").startswith("Map of a grid")
    assert any("°" in (e.text or "") for e in root.iter())


def test_a_table_of_two_metrics_shows_bounds_and_margins() -> None:
    """The cells have no number, and the chart says between what they lie."""
    first, second = (replace(category("x", "y", "z"), name=name) for name in ("a", "b"))
    slices = [slice_of(metric, (4_000, 5_000, 1_000)) for metric in (first, second)]
    found = load("crosstab").answer(slices, VerbQuery(0.05, options=load("crosstab").options()))

    root = parsed(chart_of(Chart.TABLE, found.rows, "Both"))

    texts = [element.text or "" for element in root.iter()]
    assert any(" to " in text and text.endswith(" %") for text in texts)
    assert (root.findtext("{*}desc") or "").startswith("Heat map")


CHARTS_OF_VERBS = {
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

    assert said.startswith(CHARTS_OF_VERBS[chart]) or (not rows and said.startswith("No numbers"))


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
