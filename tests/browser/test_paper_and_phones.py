"""What is printed is dark on white whatever the screen shows; on a phone no number is cut off."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import ViewportSize, expect

from client_sdk.registry import Registry
from collector.demo.fleet import DEMO_REGISTRY
from tests.browser.conftest import Open
from tests.support.sites.browsing import NARROW, WIDE, faults_of

PATH: Final = "/metric/first_page"
PAPER: Final = "getComputedStyle(document.querySelector('.panel')).backgroundColor"
CHART: Final = "getComputedStyle(document.querySelector('.chart')).getPropertyValue('--chart-ink')"
CUT_OFF: Final = """[...document.querySelectorAll('.picture svg text')].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.left < 0 || box.right > innerWidth;
}).map((one) => one.textContent)"""
TITLES: Final = [metric.title for metric in Registry.from_file(str(DEMO_REGISTRY))]
# How many words of a box begin above the lower edge of the screen.
WORDS: Final = """(box) => {
  const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  let words = 0;
  while (walker.nextNode()) {
    const text = walker.currentNode;
    range.selectNodeContents(text);
    const isShown = text.parentElement.checkVisibility();
    if (isShown && range.getBoundingClientRect().top < innerHeight) {
      words += text.data.split(/\\s+/).filter(Boolean).length;
    }
  }
  return words;
}"""


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


@pytest.mark.parametrize("viewport", [NARROW, WIDE])
def test_the_people_measured_have_few_words_to_read(visit: Open, viewport: ViewportSize) -> None:
    """Law: 250 at most on the first screen, 60 a question, which fits on the screen of a phone."""
    page, _ = visit("/privacy/people", viewport=viewport)
    drawing = page.locator(".steps svg")

    assert page.locator("main").evaluate(WORDS) <= 250
    expect(drawing.first).to_be_in_viewport()
    for title in TITLES:
        card = page.locator(
            ".asked section", has=page.get_by_role("heading", name=title, exact=True)
        )
        card.scroll_into_view_if_needed()
        box = card.bounding_box()
        assert box is not None
        assert box["height"] <= NARROW["height"]
        assert card.evaluate(WORDS) <= 60, title
