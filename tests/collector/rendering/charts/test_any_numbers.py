"""Whatever numbers rows hold, there is a chart, well-formed and within its view."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from collector.analytics.rows import Chart, Row, empty_row
from collector.core.remarks import Code, remark
from collector.rendering.charts import ChartOptions, chart_of
from collector.rendering.charts.curve import Curve, curve
from collector.rendering.charts.spark import spark
from tests.support.charts import bars, cdf, difference, dots, grid, heat, histogram, line
from tests.support.sites.drawing import boxes, parsed, view
from tests.support.sites.gallery import REASON

EXAMPLES: Final = 12  # of each kind
KINDS: Final = (bars, line, histogram, cdf, dots, difference, heat, grid, spark)
numbers = st.one_of(
    st.floats(-1, 1),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 1e-300, 5e-324, 1e300, -1e300, 1e16]),
)
names = st.sampled_from(["", "a", "b", "10–20", "20–30", "0,0", "3,1", "7", "2026-03-01", "(all)"])
dimensions = st.dictionaries(
    st.sampled_from(["item", "time", "platform", "measure", "against"]), names, max_size=4
)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """Draw a row: in one of five without a number, in others with ends in any order."""
    unit = draw(st.sampled_from(["share", "ms", "relative", ""]))
    named = draw(dimensions)
    if draw(st.integers(0, 4)) == 0:
        return empty_row(named, 3, 0.05, unit, remark(Code.NOTE, text=REASON))
    value, low, high = (draw(numbers) for _ in range(3))
    made = Row(named, value, low, high, 0.1, draw(st.integers(0, 10**9)), 0.05, "good", unit)
    return replace(made, is_open=draw(st.booleans()), p_value=draw(st.none() | st.floats(0, 1)))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=EXAMPLES)
@given(st.lists(rows(), max_size=7), st.sampled_from([280, 640]))
def test_a_kind_of_chart_draws_any_rows_within_its_view(
    kind: object, made: list[Row], width: int
) -> None:
    root = parsed(kind(made, "t", ChartOptions(width=width)))  # type: ignore[operator]

    wide, high = view(root)
    assert all(
        box.left >= -1 and box.right <= wide + 1 and box.top >= -1 and box.foot <= high + 1
        for box in boxes(root)
    )


@settings(max_examples=2 * EXAMPLES)
@given(
    st.sampled_from(Chart),
    st.lists(rows(), max_size=7),
)
def test_any_rows_of_any_verb_have_a_chart(kind: Chart, made: list[Row]) -> None:
    root = parsed(chart_of(kind, made, "t"))

    assert root.findtext("{*}desc")


@given(
    st.lists(st.tuples(st.floats(1, 1e12), st.floats(1e-12, 1e12)), min_size=1, max_size=5),
    st.none() | st.floats(1, 1e12),
    st.none() | st.floats(1e-12, 1e12),
)
def test_any_curve_is_drawn_within_its_view(
    points: list[tuple[float, float]], devices: float | None, need: float | None
) -> None:
    made = Curve("ε = 1", tuple(sorted(points)))
    root = parsed(curve([made], "t", devices=devices, need=need))

    wide, high = view(root)
    assert all(box.right <= wide + 1 and box.foot <= high + 1 for box in boxes(root))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_rows_are_still_a_chart(kind: object) -> None:
    root = parsed(kind([], "t"))  # type: ignore[operator]

    assert root.findtext("{*}title") == "t"
