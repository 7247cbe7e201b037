"""Tables of bars: lengths that compare as the numbers do, and no row or reason left out."""

from __future__ import annotations

import re
from typing import Any, Final
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.analytics.rows import AGAINST, ITEM, SHARE, TIME, Chart, Row
from collector.core.remarks import Code, remark
from collector.rendering.bar_table import bar_table, is_breakdown
from collector.rendering.charts import Before, ChartOptions
from tests.support.sites.drawing import parsed

NUMBERS: Final = st.tuples(st.floats(0.01, 1e6), st.floats(0.001, 0.9))  # value, share of it as arm


def row(value: float | None, arm: float = 0.0, name: str = "a", **more: Any) -> Row:
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


@given(st.lists(NUMBERS, min_size=2, max_size=8))
def test_bars_begin_at_zero_and_are_as_long_as_their_numbers(
    numbers: list[tuple[float, float]],
) -> None:
    rows = [row(value, value * arm, f"p{i}", unit="ms") for i, (value, arm) in enumerate(numbers)]

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
        row(0.44, 0.05, "phone"),
        row(0.2, 0.04, "desktop", is_open=True),
        row(None, name="tablet", refusal=remark(Code.NO_HOLDERS)),
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
    rows = [row(0.1 * i, 0.01, f"p{i}") for i in range(1, 8)]

    table = drawn(rows, most_rows=3)

    assert len(table.findall(".//tbody/tr")) == 3
    assert "and 4 more" in "".join(table.itertext())
    assert "more" not in "".join(drawn(rows).itertext())


@pytest.mark.parametrize(
    ("kind", "rows", "is_one"),
    [
        (Chart.ROWS, [row(0.4, 0.1, "a"), row(0.2, 0.1, "b")], True),
        (Chart.ORDERED, [row(0.4, 0.1, "a"), row(0.2, 0.1, "b")], False),
        (Chart.ROWS, [row(0.4, 0.1, "a"), row(0.05, 0.1, "b")], False),  # below zero
        (Chart.ROWS, [row(0.4, 0.1, "a"), row(0.2, 0.1, "b", unit="ms")], False),
        (Chart.ROWS, [row(None, 0, "a"), row(None, 0, "b")], False),
        (Chart.ROWS, [row(0.4, 0.1, "a")], False),
        *(
            (
                Chart.ROWS,
                [row(0.4, 0.1, dimensions={"platform": "a", name: at}) for at in "12"],
                False,
            )
            for name in (TIME, ITEM)
        ),
        (
            Chart.ROWS,
            [row(0.4, 0.1, dimensions={"platform": name, AGAINST: "c"}) for name in "ab"],
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

    page = bar_table([row(0.4, 0.1, text), row(0.2, 0.1, '"')], text, ChartOptions())

    assert not re.search("<script", page)
    assert "&lt;script&gt;" in page


def test_a_change_is_bold_only_where_its_interval_leaves_zero_out_and_none_is_left_out() -> None:
    """Law: each group has its change, by its name and in points, or says why there is none."""
    rows = [row(0.4, 0.1, name) for name in ("a", "b", "c", "d")]
    changes = [
        row(None, name="c", notes=(remark(Code.TOO_FEW, n=3, least=50, missing="47 more"),)),
        row(-0.1, 0.04, "b"),
        row(0.02, 0.04, "a"),
    ]
    before = Before((), 0, "22 to 28 Nov against 15 to 21 Nov", changes=changes)

    table = parsed(f"<div>{bar_table(rows, 'By platform', ChartOptions(), before)}</div>")

    said = ["".join(cells[-1].itertext()) for cells in table.findall(".//tbody/tr")]
    assert said[:2] == ["+2 points ±\xa04", "−10 points ±\xa04"]
    assert said[2] not in ("", said[3])
    assert said[3] == "none known"
    assert [each.text for each in table.findall(".//strong")] == ["−10 points ±\xa04"]
    caption = table.findtext(".//caption") or ""
    assert "change: 22 to 28 Nov against 15 to 21 Nov" in caption


def test_a_period_that_gives_no_changes_says_why() -> None:
    before = Before((), 0, "previous period", "too many large questions at once")

    table = bar_table([row(0.4, 0.1, name) for name in ("a", "b")], "t", ChartOptions(), before)

    assert "previous period: too many large questions at once" in table
    assert ">change<" not in table
