"""No text of any page is cut off by its own box, or lies outside of it, on any screen."""

from __future__ import annotations

from pathlib import Path
from re import sub
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

from tests.browser.conftest import Open, menu_of
from tests.browser.test_boards import METRIC, pinned
from tests.browser.test_pages import PAGES
from tests.support.sites.browsing import NARROW, WIDE
from tests.support.sites.page_routes import page_paths
from tests.support.sites.shown_site import ShownSite

WIDTHS: Final = (NARROW["width"], 768, WIDE["width"])  # CSS pixels
CUTS: Final = Path(__file__).with_name("cuts.js").read_text(encoding="utf-8")
OPEN: Final = "document.querySelectorAll('details').forEach((one) => { one.open = true })"


def cuts_of(page: Page) -> list[str]:
    """Return which texts cannot be read at which width of the page that is open."""
    found = []
    page.evaluate(OPEN)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        found += [f"{urlsplit(page.url).path}, {width}: {cut}" for cut in page.evaluate(CUTS)]
    return found


def test_no_text_of_any_page_is_cut_off_at_three_widths(visit: Open, site: ShownSite) -> None:
    """Law: every page of the collector, and each kind of answer, is read in full."""
    page, watch = visit("about:blank", token=site.operator)
    watch.expected = ("400", "404")
    board = pinned(page, "A board whose title is as long as those that people write")
    page.goto(METRIC)
    menu_of(page, "answer").get_by_role("link", name="Share").click()
    asked = urlsplit(page.url).query
    page.get_by_role("button", name="Make the link").click()
    expect(page.get_by_label("Address").first).to_be_visible()
    key = board.rpartition("/")[2]
    names = {"/board/{key}": key, "/board/{key}/edit": key, "/watches/{watch}": "hot"}
    names |= {"/metric/{name}": "one_page", "/apps/{app}": site.demo.app}
    names |= {"/shared/{address}": page.get_by_label("Address").first.input_value().rsplit("/")[-1]}
    paths = [
        sub(r"\{\w+\}", names[path], path) if "{" in path else path for path in page_paths("GET")
    ]
    paths += [f"{path}?{asked}" for path in ("/pin", "/share")]

    found = cuts_of(page)
    for path in dict.fromkeys((*paths, *PAGES)):
        page.goto(path)
        found += cuts_of(page)

    assert not found, "\n".join(found)


def test_the_widths_of_a_page_are_judged(visit: Open) -> None:
    """The control of the law above: each way of losing a text is seen."""
    page, _ = visit("about:blank")
    box = '<div class="panel" style="width: 9em; white-space: nowrap; {}">{}</div>'
    text = "as many words as do not fit in the box"
    page.set_content(box.format("overflow: hidden", text) + box.format("", text))

    found = cuts_of(page)

    assert [cut.partition(", ")[2].partition(' "')[0] for cut in found] == [
        f"{width}: {cut}"
        for width in WIDTHS
        for cut in ("cut off: div.panel", "outside of div.panel: div.panel")
    ]
