"""Two apps of one collector, and a person whom a proxy names, in a real browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, ViewportSize, expect

from tests.support.crowds.uploads import READ_TOKEN, WRITE_KEY, registry_text
from tests.support.sites.browsing import WIDE, faults_of, watched
from tests.support.sites.site import Site, running_site

PHONE: Final[ViewportSize] = {"width": 360, "height": 740}
NAMED: Final = {
    "X-Forwarded-User": "ada.lovelace@analytics.example.org",
    "X-Forwarded-Groups": "everyone,shop-team",
}
PAGES: Final = (
    "/",
    "/metric/shop/page",
    *(
        pytest.param(path, marks=pytest.mark.slow)
        for path in ("/apps/shop", "/ask", "/compare", "/plan", "/apps/nobody")
    ),
)


@pytest.fixture(scope="module")
def two_apps(browser_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A collector of the apps *test* and *shop*, whose metrics have the same names."""
    folder = tmp_path_factory.mktemp("apps")
    paths = [folder / "test.toml", folder / "shop.toml"]
    own = 'app = { name = "shop", separate = true }'
    texts = registry_text(), registry_text().replace('app = "test"', own)
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    settings = {
        "HEARSAY_REGISTRY": os.pathsep.join(map(str, paths)),
        "HEARSAY_TRUSTED_PROXIES": "127.0.0.1",
        "HEARSAY_GROUPS": "everyone=viewer,shop-team=shop:owner",
    }
    with running_site(folder, paths[0], WRITE_KEY, READ_TOKEN, settings=settings) as site:
        yield site


def opened(browser: Browser, site: Site, **options: Any) -> Any:
    return watched(browser, site.url, extra_http_headers=NAMED, **options)


@pytest.mark.parametrize("path", PAGES)
def test_pages_of_two_apps_are_sound_wide_and_on_a_dark_phone(
    path: str, browser: Browser, two_apps: Site
) -> None:
    for viewport, scheme in ((WIDE, "light"), (PHONE, "dark")):
        with opened(browser, two_apps, viewport=viewport, color_scheme=scheme) as (page, watch):
            watch.expected = ("404",) if "nobody" in path else ()
            page.goto(path)

            assert faults_of(page) == [], viewport
            wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            assert page.evaluate(wider) <= 0, viewport
            expect(page.get_by_text(NAMED["X-Forwarded-User"])).to_be_visible()


def test_the_switch_leads_from_app_to_app_by_mouse_and_by_keyboard(
    browser: Browser, two_apps: Site
) -> None:
    with opened(browser, two_apps) as (page, _):
        page.goto("/")
        page.get_by_role("navigation", name="Apps").get_by_role("link", name="shop").click()
        expect(page).to_have_url(f"{two_apps.url}/apps/shop")
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview of shop")
        page.locator('.tile a[href^="/metric/shop/page"]').click()
        expect(page).to_have_url(f"{two_apps.url}/metric/shop/page")
        switch = page.get_by_role("navigation", name="Apps")
        here = switch.get_by_role("link", name="shop", exact=True)
        expect(here).to_have_attribute("aria-current", "true")
        switch.get_by_role("link", name="test", exact=True).focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{two_apps.url}/metric/test/page")


def test_a_touch_on_a_phone_changes_the_app(browser: Browser, two_apps: Site) -> None:
    with opened(browser, two_apps, viewport=PHONE, has_touch=True, is_mobile=True) as (page, _):
        page.goto("/")
        page.get_by_text("More", exact=True).tap()
        link = page.get_by_role("navigation", name="Apps").get_by_role("link", name="shop")
        box = link.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        link.tap()
        expect(page).to_have_url(f"{two_apps.url}/apps/shop")


def test_who_is_named_by_the_proxy_writes_in_the_own_app_and_reads_the_other(
    browser: Browser, two_apps: Site
) -> None:
    """The whole way with a real browser's headers: a form is taken, and keeps who sent it."""
    with opened(browser, two_apps) as (page, watch):
        page.goto("/notes")
        page.get_by_label("Text").fill("2.4 out")
        about = page.get_by_label("About")
        about.select_option("app:shop")
        page.get_by_role("button", name="Add").click()
        expect(page.get_by_text("2.4 out").first).to_be_visible()
        expect(page.get_by_text(NAMED["X-Forwarded-User"]).nth(1)).to_be_visible()
        expect(page.get_by_role("button", name="Log out")).to_have_count(0)
        watch.expected = ("404",)
        page.goto("/compare?metric=test/page")
        expect(page.get_by_role("heading", level=1)).to_contain_text("no such metric")
