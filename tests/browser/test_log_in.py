"""The link that a start prints: one press logs in, and the token stays in no address."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from tests.support.browsing import watched
from tests.support.shown_site import READ_TOKEN, ShownSite


def test_the_link_of_a_start_fills_in_the_form_and_leaves_no_trace(
    browser: Browser, site: ShownSite
) -> None:
    with watched(browser, site.url) as (page, _):
        page.goto(f"/login#token={READ_TOKEN}")
        field = page.locator("input[name=token]")

        expect(field).to_have_value(READ_TOKEN)
        assert page.url == f"{site.url}/login"
        assert page.context.cookies() == []  # another site's link has logged nobody in
        page.get_by_role("button", name="Log in").click()

        expect(page.locator("h1")).to_have_text("Overview")
        page.go_back()
        assert READ_TOKEN not in page.url
