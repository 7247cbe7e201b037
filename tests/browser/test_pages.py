"""Every page, light and dark, narrow, wide and on paper: readable by all, and silent."""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, Response, ViewportSize, expect

from tests.browser.conftest import Open
from tests.support.sites.browsing import NARROW, WIDE, faults_of
from tests.support.sites.shown_site import DEMO, HOSTILE, ShownSite

OPERATIONS: Final = "/operations"
ASKED: Final = (
    "/ask?metric=one_page&verb=trend&by=time:day",
    "/ask?metric=labels&verb=frequency&by=platform",
    "/ask?metric=first_page&verb=quantile",
    "/ask?metric=one_page&verb=compare&against=segment.platform&segment.version=!4.8",
    "/ask?metric=both&verb=lift",
    "/ask?metric=page_views&verb=range",
    "/compare?metric=one_page&by=platform",
    "/compare?metric=first_page",
    "/plan?metric=page_views&devices=5.2&epsilon=2&share=30",
    "/metric/one_page?range=7d&before=previous",
    "/metric/first_page?range=7d&segment.platform=phone&segment.platform=tablet&item=news",
)
PAGES: Final = (
    *(
        "/",
        "/login",
        "/ask",
        "/compare",
        "/plan",
        "/privacy",
        "/privacy/people",
        "/privacy/differencing",
        "/watches",
        "/watches/hot",
        OPERATIONS,
    ),
    *(f"/metric/{name}" for name in (*DEMO, *HOSTILE)),
    *ASKED,
    "/nowhere",
    "/shared/xyz",
)
# Widths decide where things are, schemes their colours, and neither what the other does.
VIEWS: Final[tuple[tuple[str, ViewportSize, Literal["light", "dark"]], ...]] = (
    ("wide and light", WIDE, "light"),
    ("narrow and dark", NARROW, "dark"),
)
PAPER: Final[ViewportSize] = {"width": 794, "height": 1123}  # CSS pixels of an A4 page
MOST_BYTES: Final = 120_000  # of a page
MOST_FILES: Final = 62_000  # bytes of style sheets and scripts, which a browser keeps


def sound(page: Page) -> list[str]:
    """Return the faults of a page by day and night, wide, narrow and on paper."""
    found: list[str] = []
    for name, size, scheme in VIEWS:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        found += [f"{urlsplit(page.url).path}, {name}, {fault}" for fault in faults_of(page)]
    page.set_viewport_size(PAPER)
    page.emulate_media(media="print", color_scheme="light")
    found += [f"{urlsplit(page.url).path}, print, {fault}" for fault in faults_of(page)]
    page.emulate_media(media="screen")
    page.set_viewport_size(WIDE)
    return found


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_sound_by_day_by_night_and_on_paper(
    path: str, visit: Open, site: ShownSite
) -> None:
    """No fault of accessibility, no error, no dialog, nothing from elsewhere."""
    loaded: list[tuple[bool, int]] = []  # whether it is a file that a browser keeps, and its bytes

    def note(answer: Response) -> None:
        loaded.append(("/static/" in answer.url, len(answer.body())))

    page, watch = visit("about:blank", token=site.operator if path == OPERATIONS else site.token)
    watch.expected = ("404",) if path in ("/nowhere", "/shared/xyz") else ()
    watch.expected += ("400",) if "verb=quantile" in path else ()
    page.on("response", note)
    page.goto(path)

    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
    found = sound(page)
    assert not found, "\n".join(dict.fromkeys(found))
    assert sum(size for is_kept, size in loaded if not is_kept) <= MOST_BYTES
    assert 10_000 < sum(size for is_kept, size in loaded if is_kept) <= MOST_FILES


def test_long_words_of_what_was_refused_wrap_on_a_phone(visit: Open, site: ShownSite) -> None:
    page, watch = visit("about:blank", token=site.operator, viewport=NARROW)
    watch.expected = ("404",)
    page.goto("/shared/xyz")
    page.goto(OPERATIONS)

    refused = page.locator("section", has=page.locator("#refused")).locator("table")
    expect(refused).to_contain_text("unknown-link")  # told by the next refresh
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    assert not [fault for fault in faults_of(page) if fault.startswith("reflow")]
