"""One style sheet: the file that pages link is the text that charts bring along."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import collector.web
from collector.rendering.charts import ChartOptions
from collector.rendering.charts.svg import CSS, paint
from tests.support.sites.drawing import parsed
from tests.support.sites.gallery import PICTURES

FILE = Path(str(collector.web.__file__)).parent / "static" / "charts.css"
RENEW = (
    "python -c 'from collector.rendering.charts.svg import CSS; print(CSS, end=\"\")' > "
    + FILE.name
)


def test_the_file_of_the_pages_is_the_text_of_the_charts() -> None:
    assert FILE.read_text(encoding="utf-8") == CSS, RENEW


def test_the_style_sheet_is_the_same_in_xml_and_html() -> None:
    assert not set("<>&") & set(CSS)


def test_the_style_sheet_loads_nothing() -> None:
    assert not re.search(r"url\(|@import|expression", CSS)


@pytest.mark.parametrize("name", PICTURES)
def test_every_coloured_class_follows_light_and_dark(name: str) -> None:
    root = parsed(PICTURES[name](ChartOptions()))

    classes = {one for element in root.iter() if (one := element.get("class"))}
    unpainted = {"chart", "chart spark", "mark", "hover"}
    assert [c for c in classes - unpainted if not rules_of(c)] == []


@pytest.mark.parametrize("name", PICTURES)
def test_a_chart_of_a_page_says_each_row_in_one_attribute(name: str) -> None:
    alone, of_page = (PICTURES[name](ChartOptions(styled=styled)) for styled in (False, True))

    rows = alone.count(" data-label=") + alone.count(" data-row=")
    assert (of_page.count(" data-label="), of_page.count(" data-row=")) == (0, rows)


def rules_of(name: str) -> list[str]:
    """Return the rules that paint the class called *name*: its own, or that of its family."""
    family = name.rstrip("0123456789")
    rules = (f".chart .{name}{{", *((f".chart [class^='{family}']{{",) if family != name else ()))
    return [rule for rule in rules if rule in CSS]


def test_a_paint_carries_its_light_colours_for_readers_without_styles() -> None:
    assert paint("bar") == {"class_": "bar", "fill": "#0b60b0", "fill_opacity": "0.55"}
