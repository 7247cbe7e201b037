"""A browser and a fed collector for all tests here; without a browser, a loud word at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.support.browsing import PROGRAMS, Watch, browser_path, running_browser, watched
from tests.support.shown_site import READ_TOKEN, ShownSite, shown_site

Open = Callable[..., tuple[Page, Watch]]
_NONE = f"no browser: none of {', '.join(PROGRAMS)} is on PATH"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say loudly that nothing was proved about the pages."""
    skipped = [
        one for one in terminalreporter.stats.get("skipped", ()) if _NONE in str(one.longrepr)
    ]
    if skipped:
        terminalreporter.write_sep("!", "THE PAGES WERE NOT TESTED", red=True, bold=True)
        terminalreporter.write_line(f"{_NONE}; {len(skipped)} tests of the pages were skipped.")
        terminalreporter.write_line("Debian: apt install chromium. On a bare machine .ci/run does.")


@pytest.fixture(scope="session")
def program() -> str:
    path = browser_path()
    if path is None:
        pytest.skip(_NONE)
    return path


@pytest.fixture(scope="module")
def browser(program: str) -> Iterator[Browser]:
    """A browser for one module: while it runs, this thread has an event loop, which others need."""
    with running_browser(program) as running:
        yield running


@pytest.fixture(scope="session")
def site(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShownSite]:
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
