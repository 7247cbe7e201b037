"""Everything can be done by the keyboard alone, and one always sees where one is."""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Open
from tests.support.sites.browsing import watched
from tests.support.sites.shown_site import ShownSite

_MOST: Final = 120  # presses of the key until anything of a page is reached
# What has the focus, whether that is to be seen, and whether it is on the screen.
_FOCUS: Final = """() => {
  const one = document.activeElement;
  const rings = [null, "::before", "::after"].map((part) => getComputedStyle(one, part));
  const ring = rings.some((s) => s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0);
  const box = one.getBoundingClientRect();
  const near = box.bottom >= 0 && box.top <= innerHeight && box.left <= innerWidth;
  const named = one.labels && one.labels.length ? one.labels[0] : one;
  const name = (one.getAttribute("aria-label") || named.textContent).trim().replace(/\\s+/g, " ");
  return { tag: one.tagName.toLowerCase(), name, ring, near };
}"""


def go_to(page: Page, tag: str, name: str) -> None:
    """Press Tab until the focus is on a *tag* whose name begins with *name*."""
    for _ in range(_MOST):
        page.keyboard.press("Tab")
        at = page.evaluate(_FOCUS)
        if at["tag"] == "body":
            continue
        assert at["ring"], f"no ring around {at}"
        assert at["near"], f"not on the screen: {at}"
        if at["tag"] == tag and at["name"].startswith(name):
            return
    raise AssertionError(f"no {tag} called {name} is reached")


def test_from_the_log_in_to_an_answer_without_a_mouse(browser: Browser, site: ShownSite) -> None:
    with watched(browser, site.url) as (page, _):
        page.goto("/")
        assert urlsplit(page.url).path == "/login"
        page.keyboard.type(site.token)
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Overview")

        go_to(page, "a", "First page of a visit")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("First page of a visit")

        go_to(page, "summary", "More of Over time")
        page.keyboard.press("Enter")
        go_to(page, "summary", "Table")
        page.keyboard.press("Enter")
        expect(page.locator("details[open] table").first).to_be_visible()

        page.goto("/")  # back to the top, as a bookmark is
        go_to(page, "a", "First page of a visit")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("First page of a visit")
        go_to(page, "a", "Ask another question")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Ask")
        go_to(page, "a", "Which are most common?")
        page.keyboard.press("Enter")
        expect(page.locator("section.panel svg").first).to_be_visible()
        go_to(page, "summary", "Platform")
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        page.keyboard.press("Enter")
        expect(page.locator("summary", has_text="Platform: desktop")).to_be_visible()
        assert parse_qs(urlsplit(page.url).query)["metric"] == ["first_page"]


def test_the_first_stop_skips_to_the_content(visit: Open) -> None:
    page, _ = visit("/")

    page.keyboard.press("Tab")
    assert page.evaluate(_FOCUS)["name"] == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")

    assert page.evaluate("document.getElementById('main').contains(document.activeElement)")


@pytest.mark.parametrize("path", ["/plan", "/compare", "/privacy", "/metric/one_page"])
def test_every_stop_of_a_page_is_seen_and_the_end_is_reached(path: str, visit: Open) -> None:
    page, _ = visit(path)

    stops = 0
    for _ in range(_MOST):
        page.keyboard.press("Tab")
        at = page.evaluate(_FOCUS)
        if at["tag"] == "body":
            break
        assert at["ring"], f"no ring around {at}"
        assert at["near"], f"not on the screen: {at}"
        stops += 1
    assert 8 <= stops < _MOST


def test_a_slider_moves_by_arrows_and_the_plan_with_it(visit: Open) -> None:
    page, _ = visit("/plan")
    before = page.locator("#planned .big").first.text_content()

    page.locator("input[name=epsilon]").focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")

    expect(page.locator("#planned .big").first).not_to_have_text(before or "")
    assert "epsilon=" in page.url


def test_arrows_in_a_list_choose_where_they_stop_and_reload_nothing_before(visit: Open) -> None:
    page, _ = visit("/metric/one_page")
    choice = page.locator("select[name='segment.platform']")
    choice.focus()

    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    stopped = choice.input_value()
    assert "segment.platform" not in page.url
    assert page.evaluate("document.activeElement.name") == "segment.platform"
    page.keyboard.press("Enter")

    page.wait_for_url(f"**segment.platform={stopped}**")
