"""A log-in by a real browser: by the link of a start, and through proxies."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.support.sites.browsing import watched
from tests.support.sites.nginx import bare_nginx, needs_nginx
from tests.support.sites.shown_site import READ_TOKEN, ShownSite

PASSED_ON: Final = "proxy_set_header Host $http_host;"


def test_the_link_of_a_start_logs_in_and_leaves_no_trace(browser: Browser, site: ShownSite) -> None:
    with watched(browser, site.url) as (page, _):
        page.goto(f"/login#token={READ_TOKEN}")

        expect(page.locator("h1")).to_have_text("Overview")
        page.go_back()
        assert READ_TOKEN not in page.url


def test_the_link_of_another_site_only_fills_in_the_form(browser: Browser, site: ShownSite) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        link = f"{site.url}/login#token={READ_TOKEN}"
        elsewhere = f'<a rel="noreferrer" href="{link}">in</a>'
        page.route(
            "http://elsewhere.localhost/",
            lambda route: route.fulfill(body=elsewhere, content_type="text/html"),
        )
        page.goto("http://elsewhere.localhost/")
        page.get_by_role("link").click()
        field = page.locator("input[name=token]")

        expect(field).to_have_value(READ_TOKEN)
        assert page.url == f"{site.url}/login"
        assert page.context.cookies() == []  # another site's link has logged nobody in
        page.get_by_role("button", name="Log in").click()

        expect(page.locator("h1")).to_have_text("Overview")
        page.go_back()
        assert READ_TOKEN not in page.url


@needs_nginx
@pytest.mark.parametrize(
    "host", ["", "proxy_set_header Host $http_host;"], ids=["hidden", "passed"]
)
def test_a_browser_tells_where_it_is_so_that_a_proxy_which_hides_it_is_noticed(
    host: str, browser: Browser, site: ShownSite, tmp_path: Path
) -> None:
    """nginx as installed asks for 127.0.0.1 and another port: no cookie is given by that."""
    port = urlsplit(site.url).port
    assert port is not None
    with bare_nginx(tmp_path / "nginx", port, host) as bare, browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{bare.url}/login")
        page.locator("input[name=token]").fill(READ_TOKEN)
        page.get_by_role("button", name="Log in").click()

        if host:
            expect(page.locator("h1")).to_have_text("Overview")
        else:
            expect(page.locator("main")).to_contain_text("HEARSAY_ORIGIN")
            assert context.cookies() == []
