"""A page that is watched grows by itself, and does not disturb whoever reads it."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Open, menu_of
from tests.support.sites.browsing import watched
from tests.support.sites.shown_site import ShownSite

LATER = 20_000  # milliseconds; longer than any page waits


def reports(page: Page) -> int:
    """Return how many reports the page of a metric tells of."""
    text = page.locator(".basis strong").inner_text()
    return int(re.sub(r"\D", "", text))


def test_new_reports_show_without_a_reload(browser: Browser, site: ShownSite) -> None:
    with watched(browser, site.url) as (page, _):
        page.context.add_cookies([site.cookie()])
        page.clock.install()
        page.goto("/metric/one_page")
        before = reports(page)
        menu_of(page, "time").get_by_text("Table", exact=True).click()
        page.locator("summary").first.focus()

        site.report(12)  # some of segments that are too small to count
        page.clock.run_for(LATER)

        expect(page.locator(".basis strong")).not_to_have_text(f"{before:,}")
        assert reports(page) > before
        assert page.locator("#time .more details[open] summary").first.inner_text() == "Table"
        assert page.evaluate("document.activeElement.matches('summary')")


def test_a_page_without_news_is_left_alone(visit: Open) -> None:
    page, _ = visit("about:blank")
    page.clock.install()
    page.goto("/metric/age")
    page.evaluate("document.querySelector('h1').dataset.mine = 'yes'")

    with page.expect_response("**/metric/age"):
        page.clock.run_for(LATER)
    page.wait_for_timeout(100)

    assert page.locator("h1").get_attribute("data-mine") == "yes"


def test_who_fills_in_a_form_is_not_interrupted(visit: Open, site: ShownSite) -> None:
    page, _ = visit("about:blank")
    page.clock.install()
    page.goto("/metric/one_page")
    page.locator("select[name='segment.platform']").focus()
    page.evaluate("document.querySelector('h1').dataset.mine = 'yes'")

    site.report(3)
    page.clock.run_for(LATER)
    page.wait_for_timeout(100)

    assert page.locator("h1").get_attribute("data-mine") == "yes"
    assert page.evaluate("document.activeElement.matches('select')")


def test_a_page_that_gets_no_answer_says_since_when(visit: Open) -> None:
    """After two failures it is dimmed and says so, and after the next answer no longer."""
    page, watch = visit("about:blank")
    watch.expected = ("503",)
    page.clock.install()
    page.goto("/metric/age")
    page.route("**/metric/age", lambda route: route.fulfill(status=503, body=""))

    for _ in range(3):
        with page.expect_response("**/metric/age"):
            page.clock.run_for(LATER)
    expect(page.locator("#status")).to_contain_text("No answer since")
    assert page.locator("main").get_attribute("data-old") is not None

    page.unroute("**/metric/age")
    with page.expect_response("**/metric/age"):
        page.clock.run_for(LATER)
    expect(page.locator("#status")).to_have_text("")
    assert page.locator("main").get_attribute("data-old") is None


def test_a_page_whose_log_in_has_ended_says_so(visit: Open) -> None:
    page, _ = visit("about:blank")
    page.clock.install()
    page.goto("/metric/age")
    page.context.clear_cookies()

    with page.expect_response("**/login**"):
        page.clock.run_for(LATER)

    expect(page.locator("#status")).to_contain_text("log-in has ended")
    assert page.locator("h1").inner_text() != "Log in"
