"""A real browser, and a watch over everything that its pages do and should not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.support.patience import PATIENCE

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDE: Final[ViewportSize] = {"width": 1280, "height": 900}  # CSS pixels
NARROW: Final[ViewportSize] = {"width": 360, "height": 740}
_CHECKS: Final = Path(__file__).parents[2] / "browser" / "checks.js"
_INLINE: Final = ("data", "blob", "about")
# Told to the console, where the watch sees it; Chromium tells most of them there by itself.
_TELL_VIOLATIONS: Final = (
    "document.addEventListener('securitypolicyviolation',"
    " e => console.error(`policy ${e.violatedDirective} ${e.blockedURI}`))"
)


def browser_path() -> str | None:
    """Return the path of a Chromium on PATH, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@contextmanager
def running_browser(path: str) -> Iterator[Browser]:
    """Run the browser at *path*, headless."""
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    arguments = ["--disable-gpu", "--disable-dev-shm-usage", *["--no-sandbox"] * as_root]
    expect.set_options(1_000 * PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


class Watch:
    """Keeps what no page may do: errors, dialogs, and requests to another host than *origin*."""

    def __init__(self, context: BrowserContext, origin: str) -> None:
        self.faults: list[str] = []
        self._host = urlsplit(origin).netloc
        self.expected: tuple[str, ...] = ()  # parts of console errors that a test provokes
        context.on("request", lambda request: self._request(request.url))
        context.on("console", lambda message: self._console(message.type, message.text))
        context.on("weberror", lambda error: self.faults.append(f"error: {error.error}"))
        context.on("dialog", self._dialog)
        context.add_init_script(_TELL_VIOLATIONS)

    def require_none(self) -> None:
        """Fail with everything that was seen."""
        assert self.faults == []

    def _request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in _INLINE and parts.netloc != self._host:
            self.faults.append(f"request off-host: {url}")

    def _console(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not any(part in text for part in self.expected):
            self.faults.append(f"console {kind}: {text}")

    def _dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@contextmanager
def watched(browser: Browser, origin: str, **options: Any) -> Iterator[tuple[Page, Watch]]:
    """Yield an empty page of a fresh profile, and fail afterwards if it did what it must not.

    Args: options: of the profile, as Playwright names them.
    """
    with unwatched(browser, origin, **options) as (page, watch):
        yield page, watch
    watch.require_none()


@contextmanager
def unwatched(browser: Browser, origin: str, **options: Any) -> Iterator[tuple[Page, Watch]]:
    """Yield the same as ``watched``, without judging it."""
    context = browser.new_context(base_url=origin, **{"viewport": WIDE, **options})
    context.set_default_timeout(1_000 * PATIENCE)
    watch = Watch(context, origin)
    try:
        yield context.new_page(), watch
    finally:
        context.close()


def faults_of(page: Page) -> list[str]:
    """Return what breaks a rule of WCAG that a program can decide, as "rule: where"."""
    found: list[str] = page.evaluate(_CHECKS.read_text(encoding="utf-8"))
    return found
