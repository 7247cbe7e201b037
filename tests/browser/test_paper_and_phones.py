"""What is printed is dark on white whatever the screen shows; on a phone no number is cut off."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.support.sites.browsing import NARROW, faults_of

PATH: Final = "/metric/first_page"
PAPER: Final = "getComputedStyle(document.querySelector('.panel')).backgroundColor"
CHART: Final = "getComputedStyle(document.querySelector('.chart')).getPropertyValue('--chart-ink')"
CUT_OFF: Final = """[...document.querySelectorAll('.picture svg text')].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.left < 0 || box.right > innerWidth;
}).map((one) => one.textContent)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("theme", ["", "light", "dark"])
def test_paper_is_white_whatever_theme_is_chosen(visit: Open, theme: str, scheme: str) -> None:
    page, _ = visit(PATH)
    page.emulate_media(media="print", color_scheme="light")
    white, ink = page.evaluate(PAPER), page.evaluate(CHART)

    page.evaluate(
        "theme => { if (theme) document.documentElement.dataset.theme = theme }",
        theme,
    )
    page.emulate_media(media="print", color_scheme="dark" if scheme == "dark" else "light")

    assert white == "rgb(255, 255, 255)"
    assert page.evaluate(PAPER) == white
    assert page.evaluate(CHART) == ink
    assert faults_of(page) == []


@pytest.mark.parametrize("path", [PATH, "/metric/page_views", "/plan", "/compare"])
def test_no_number_of_a_chart_is_cut_off_on_a_phone(visit: Open, path: str) -> None:
    page, _ = visit(path, viewport=NARROW)

    assert page.locator(".picture svg text").count() > 0
    assert page.evaluate(CUT_OFF) == []


def test_an_answer_begins_on_the_first_screen_of_a_phone(visit: Open) -> None:
    """Law: the answer stands above the form, which is higher than the screen of a phone."""
    page, _ = visit("/ask?metric=page_views&verb=quantile", viewport=NARROW)

    expect(page.locator("#answer h2")).to_be_in_viewport()
