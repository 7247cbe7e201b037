"""A browser and a fed collector for all tests here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from tests.support.sites.browsing import Watch, running_browser, watched
from tests.support.sites.shown_site import READ_TOKEN, ShownSite, shown_site

Open = Callable[..., tuple[Page, Watch]]


def menu_of(page: Page, panel: str) -> Locator:
    """Open the part of the page that *panel* stands in, and its menu."""
    part = page.locator(f"[data-part]:has(#{panel})")
    if part.count():
        page.locator(f"label[for=part-{part.get_attribute('data-part')}]").click()
    menu = page.locator(f"#{panel} .menu")
    menu.locator("> summary").click()
    return menu


@pytest.fixture(scope="module")
def browser(browser_program: str) -> Iterator[Browser]:
    """A browser for one module: while it runs, this thread has an event loop, which others need."""
    with running_browser(browser_program) as running:
        yield running


@pytest.fixture(scope="session")
def site(browser_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShownSite]:
    """A collector with reports of simulated devices, for tests that only look."""
    with shown_site(tmp_path_factory.mktemp("shown")) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, site: ShownSite) -> Iterator[Open]:
    """Open a page of the site as somebody who has logged in, watched until the test ends."""
    with ExitStack() as stack:

        def visited(path: str, token: str = READ_TOKEN, **options: Any) -> tuple[Page, Watch]:
            page, watch = stack.enter_context(watched(browser, site.url, **options))
            page.context.add_cookies([site.cookie(token)])
            page.goto(path)
            return page, watch

        yield visited
