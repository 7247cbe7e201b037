"""Charts are well-formed SVG that draws numbers to scale and shows texts as texts."""

from __future__ import annotations

from xml.etree.ElementTree import Element, fromstring

import pytest

from collector.analytics import Row
from collector.charts import bars
from collector.charts.bars import LABEL, VALUE, WIDTH, number

HOSTILE = '<script>alert("1")</script>&\''


def row(value: float, half_width: float = 0.01, item: str = "home") -> Row:
    interval = value - half_width, value + half_width
    return Row(item, value, *interval, half_width / 2, 1_000, 0.05, "good")


def withheld(item: str, reason: str) -> Row:
    return Row(item, None, None, None, None, 5, 0.05, "insufficient", reason=reason)


def parsed(*rows: Row, title: str = "Title", unit: str = "share") -> Element:
    # what is parsed was written here, so it cannot be a bomb
    return fromstring(bars(rows, title, unit))  # noqa: S314


def of_class(svg: Element, name: str) -> list[Element]:
    return [element for element in svg if element.get("class") == name]


def test_every_number_has_a_bar_a_whisker_and_a_text() -> None:
    svg = parsed(row(0.2), row(0.7))

    assert len(of_class(svg, "bar")) == 2
    assert len(of_class(svg, "whisker")) == 6
    assert [e.text for e in of_class(svg, "number")] == ["20.00 % ± 1.00 %", "70.00 % ± 1.00 %"]


def test_a_row_without_a_number_shows_its_reason_and_no_bar() -> None:
    svg = parsed(withheld("home", "not enough reports"))

    assert [e.text for e in of_class(svg, "reason")] == ["not enough reports"]
    assert of_class(svg, "bar") == of_class(svg, "number") == []


def test_bars_are_drawn_to_scale() -> None:
    short, long = (float(e.get("width", "")) for e in of_class(parsed(row(0.2), row(0.6)), "bar"))

    assert long == pytest.approx(3 * short, abs=0.05)


def test_a_bar_below_zero_ends_where_one_above_begins() -> None:
    below, above = of_class(parsed(row(-0.2), row(0.6)), "bar")

    end = float(below.get("x", "")) + float(below.get("width", ""))
    assert end == pytest.approx(float(above.get("x", "")), abs=0.02)


@pytest.mark.parametrize("values", [(0.0,), (1e-9, 5e8), (-3.0, -2.0), (0.5, 0.5)])
def test_everything_is_drawn_within_the_plot(values: tuple[float, ...]) -> None:
    svg = parsed(*(row(value, half_width=abs(value) / 3) for value in values))

    ends = [float(e.get(x, "")) for e in of_class(svg, "whisker") for x in ("x1", "x2")]
    assert min(ends) >= LABEL
    assert max(ends) <= WIDTH - VALUE


def test_hostile_texts_stay_texts() -> None:
    svg = parsed(row(0.5, item=HOSTILE), withheld(HOSTILE, HOSTILE), title=HOSTILE, unit=HOSTILE)

    assert [e for e in svg.iter() if e.tag == "script"] == []
    assert [e.text for e in of_class(svg, "label")] == [HOSTILE, HOSTILE]
    assert svg.get("aria-label") == svg.findtext("title") == HOSTILE


def test_no_rows_are_still_a_chart() -> None:
    assert of_class(parsed(), "bar") == []


def test_shares_are_read_as_percent_and_numbers_in_their_unit() -> None:
    assert (number(0.1234, "share"), number(38.5, "years")) == ("12.34 %", "38.50 years")
