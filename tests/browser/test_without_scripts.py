"""Without scripts nothing is missing: log-in, pages, forms and log-out are plain HTML."""

from __future__ import annotations

from urllib.parse import urlsplit

from playwright.sync_api import Browser, expect

from tests.browser.conftest import menu_of
from tests.browser.test_pages import sound
from tests.support.sites.browsing import watched
from tests.support.sites.shown_site import ShownSite


def test_a_visit_without_scripts_from_log_in_to_log_out(browser: Browser, site: ShownSite) -> None:
    with watched(browser, site.url, java_script_enabled=False) as (page, watch):
        watch.expected = ("401",)
        page.goto("/metric/one_page?range=7d")
        page.locator("input[name=token]").fill("no-token-at-all-0123456789")
        page.locator("button.primary").click()
        expect(page.get_by_role("alert")).to_contain_text("not valid here")
        page.locator("input[name=token]").fill(site.token)
        page.locator("button.primary").click()
        expect(page.locator("h1")).to_have_text("Left after one page")
        assert urlsplit(page.url).query == "range=7d"

        page.locator("select[name='segment.platform']").select_option("phone")
        page.locator("form.range button").click()
        assert "segment.platform=phone" in page.url
        expect(page.locator("#time svg").first).to_be_visible()
        menu = menu_of(page, "devices")
        menu.get_by_text("Table", exact=True).click()
        expect(menu.locator("table")).to_be_visible()

        page.get_by_role("link", name="Ask", exact=True).click()
        page.locator("select[name=metric]").select_option("one_page")
        page.get_by_role("button", name="Show questions").click()
        page.get_by_role("link", name="Does it differ by").click()
        expect(page.locator("section.panel svg").first).to_be_visible()
        page.locator("select[name=by]").first.select_option("version")
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.locator("section.panel svg").first).to_be_visible()

        page.get_by_role("link", name="Plan", exact=True).click()
        before = page.locator("#planned .big").first.text_content() or ""
        page.locator("input[name=need]").fill("5")
        page.locator("input[name=share]").focus()
        page.keyboard.press("Home")
        page.locator("form.sliders button").click()
        expect(page.locator("#planned .big").first).not_to_have_text(before)

        page.get_by_role("button", name="Log out").click()
        expect(page.locator("h1")).to_have_text("Log in")
        assert page.context.cookies() == []


def test_pages_are_sound_without_scripts_too(browser: Browser, site: ShownSite) -> None:
    paths = ("/", "/metric/one_page", "/compare", "/boards", "/notes", "/share", "/shared/xyz")
    faults: list[str] = []
    with watched(browser, site.url, java_script_enabled=False) as (page, watch):
        watch.expected = ("404",)
        page.context.add_cookies([site.cookie()])
        for path in paths:
            page.goto(path)
            faults += sound(page)

    assert faults == []


def test_no_control_that_needs_a_script_is_shown_without_one(
    browser: Browser, site: ShownSite
) -> None:
    with watched(browser, site.url, java_script_enabled=False) as (page, _):
        page.context.add_cookies([site.cookie()])
        page.goto("/metric/first_page")

        for one in page.locator("[data-copy], [data-theme-toggle]").all():
            assert not one.is_visible()
