"""From any page to what a watch said, and on to its metric: by mouse, by touch and by keyboard."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.test_keyboard import go_to
from tests.support.sites.shown_site import SCRIPTS

PHONE: Any = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


@pytest.mark.parametrize("options", [{}, PHONE], ids=["mouse", "touch"])
def test_a_watch_that_fires_is_two_steps_away(visit: Open, options: dict[str, Any]) -> None:
    page, _ = visit("/", **options)
    press = "tap" if options else "click"
    if options:  # on a phone, where only three pages are at hand
        page.get_by_text("More", exact=True).tap()

    getattr(page.get_by_role("link", name="Watches", exact=True), press)()
    expect(page.locator("h1")).to_have_text("Watches")
    expect(page.locator("section h2").first).to_have_text("hot: firing")
    getattr(page.get_by_role("link", name="hot", exact=True), press)()
    expect(page.locator("h1")).to_have_text("hot: firing")
    expect(page.locator("td.reason").first).to_have_text(SCRIPTS[1])  # told, not run
    getattr(page.get_by_role("link", name="Its metric"), press)()

    page.wait_for_url("**/metric/labels")
    expect(page.locator("main")).to_be_visible()


def test_a_watch_is_reached_without_a_mouse(visit: Open) -> None:
    page, _ = visit("/watches")

    go_to(page, "a", "gone")
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_have_text("gone: no answer")
