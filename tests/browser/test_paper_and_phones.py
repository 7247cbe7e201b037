"""What is printed is dark on white whatever the screen shows; on a phone no number is cut off."""

from __future__ import annotations

import re
from typing import Final

import pytest
from playwright.sync_api import ViewportSize, expect

from client_sdk.registry import Registry
from collector.demo.fleet import DEMO_REGISTRY
from tests.browser.conftest import Open
from tests.browser.test_widths import CUTS
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


COVERED: Final = """() => {
  scrollTo(0, document.documentElement.scrollHeight);
  const bar = document.querySelector(".dock").getBoundingClientRect();
  return document.querySelector("footer").getBoundingClientRect().bottom - bar.top;
}"""
MOVES: Final = "getComputedStyle(document.querySelector('.tile')).transitionDuration"


def test_the_pages_are_at_the_bottom_of_a_phone_without_scripts(visit: Open) -> None:
    """Law: one row of head, four targets below, the rest under More, and no text covered."""
    page, _ = visit("/", viewport=NARROW, java_script_enabled=False)
    bar = page.get_by_role("navigation", name="Main pages")

    assert bar.locator("> ul a, summary").all_inner_texts() == ["Overview", "Ask", "Boards", "More"]
    head = page.locator(".topbar").bounding_box()
    assert head is not None
    assert head["height"] <= 60
    bar.get_by_text("More", exact=True).click()
    bar.get_by_role("link", name="Privacy").click()
    expect(page.locator("h1")).to_have_text("Privacy")
    expect(bar.locator("[aria-current=page]")).to_have_text("Privacy")


@pytest.mark.parametrize("path", ["/", PATH, "/plan", "/privacy"])
def test_the_bar_of_a_phone_covers_nothing_and_is_not_printed(visit: Open, path: str) -> None:
    page, _ = visit(path, viewport=NARROW)
    bar = page.get_by_role("navigation", name="Main pages")

    assert page.evaluate(COVERED) <= 0
    page.emulate_media(media="print")
    expect(bar).to_be_hidden()
    page.emulate_media(media="screen")
    expect(bar).to_be_visible()
    page.set_viewport_size({"width": 600, "height": 900})
    expect(bar).to_be_hidden()
    expect(page.get_by_role("navigation", name="Pages", exact=True)).to_be_visible()


def test_a_keyboard_reaches_the_bar_of_a_phone_last_and_sees_what_it_is_at(visit: Open) -> None:
    """Law: the order is that of the screen, and the bar covers nothing that has the focus."""
    page, _ = visit("/notes", viewport=NARROW)
    at_bar = "document.activeElement.closest('.dock') !== null"
    hidden = """document.activeElement.getBoundingClientRect().bottom
      > document.querySelector('.dock').getBoundingClientRect().top"""

    order = []
    for _ in range(60):
        page.keyboard.press("Tab")
        order.append(page.evaluate(at_bar))
        assert order[-1] or not page.evaluate(hidden)
        if order[-1]:
            break
    assert order.count(True) == 1
    assert len(order) > 3


def test_nothing_moves_where_less_motion_is_wanted(visit: Open) -> None:
    page, _ = visit("/", reduced_motion="no-preference")
    moving = page.evaluate(MOVES)

    page.emulate_media(reduced_motion="reduce")

    assert (moving, page.evaluate(MOVES)) == ("0.12s", "0s")


A4: Final = (595, 842)  # points
PRINTABLE: Final[ViewportSize] = {"width": 680, "height": 1009}  # CSS pixels within 15 mm margins


def test_the_sheet_of_privacy_is_printed_on_a4_and_nothing_is_cut_off(visit: Open) -> None:
    page, _ = visit("/privacy", viewport=PRINTABLE)

    sizes = re.findall(
        rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", page.pdf(prefer_css_page_size=True)
    )
    page.emulate_media(media="print")
    assert sizes
    assert {(round(float(width)), round(float(height))) for width, height in sizes} == {A4}
    assert page.evaluate("document.documentElement.scrollWidth") <= PRINTABLE["width"]
    for table in page.locator("table").all():
        box = table.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= PRINTABLE["width"]
    assert page.evaluate(CUTS) == []
    expect(page.locator("[data-print]")).to_be_hidden()


def test_a_script_adds_the_button_that_prints(visit: Open) -> None:
    page, _ = visit("/privacy")
    plain, _ = visit("/privacy", java_script_enabled=False)
    page.evaluate("window.print = () => { document.title = 'printed' }")

    page.get_by_role("button", name="Print or save as PDF").click()

    expect(page).to_have_title("printed")
    expect(plain.get_by_role("button", name="Print or save as PDF")).to_be_hidden()
