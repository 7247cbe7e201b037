"""Tables sorted, metrics searched, moments in the viewer's zone: by mouse, keys and touch."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Open, menu_of
from tests.support.sites.shown_site import ShownSite


def open_table(page: Page) -> Locator:
    menu = menu_of(page, "answer")
    menu.get_by_text("Table").click()
    return menu.locator("table.chart-table")


def column(table: Locator, place: int) -> list[str]:
    """Return the texts of a column; a row without a number has fewer cells."""
    return table.locator(f"tbody tr > :nth-child({place})").all_inner_texts()


def share(text: str) -> float:
    return float(text.split()[0].replace("−", "-"))


def test_a_table_is_sorted_by_its_heads_and_stays_so_when_the_page_is_renewed(visit: Open) -> None:
    page, _ = visit("/metric/first_page")
    table = open_table(page)
    before = column(table, 1)

    table.get_by_role("button", name="item").click()
    expect(table.locator("th").first).to_have_attribute("aria-sort", "ascending")
    assert column(table, 1) == sorted(before, key=str.casefold)

    table.get_by_role("button", name="item").press("Enter")
    assert column(table, 1) == sorted(before, key=str.casefold, reverse=True)

    table.get_by_role("button", name="value").click()
    values = [share(text) for text in column(table, 2)]
    assert values == sorted(values, reverse=True)
    assert sorted(column(table, 1)) == sorted(before)

    page.evaluate("""() => {
        const main = document.getElementById("main");
        const fresh = new DOMParser().parseFromString(main.outerHTML, "text/html");
        for (const head of fresh.querySelectorAll("thead th")) head.textContent = head.textContent;
        for (const one of fresh.querySelectorAll("[data-sorts]")) delete one.dataset.sorts;
        main.replaceChildren(...fresh.getElementById("main").childNodes);
        document.dispatchEvent(new Event("dressed"));
    }""")
    expect(page.locator("#answer th[aria-sort=descending] button")).to_have_text("value")


@pytest.mark.parametrize(
    ("path", "width"),
    [("/metric/first_page", 1280), ("/metric/first_page", 360), ("/compare", 1280)],
)
def test_no_row_of_a_table_is_as_high_as_a_chart(visit: Open, path: str, width: int) -> None:
    """Law: remarks have at most four lines of 21 pixels; the table scrolls to them."""
    page, _ = visit(path, viewport={"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")

    heights = page.evaluate(
        "[...document.querySelectorAll('.chart-table tr')].map((row) => row.offsetHeight)"
    )
    assert len(heights) > 3
    assert max(heights) <= 96


def test_an_overview_is_searched_by_touch_and_by_keys(visit: Open) -> None:
    page, _ = visit("/", viewport={"width": 360, "height": 740}, has_touch=True)
    total = page.locator(".tile").count()

    page.get_by_role("searchbox", name="Search").tap()
    page.get_by_role("searchbox", name="Search").fill("one_page")
    page.keyboard.press("Enter")
    page.wait_for_url("**search=one_page**")

    assert total > 1
    expect(page.locator(".tile")).to_have_count(1)
    expect(page.get_by_text(f"1 of {total} metrics match")).to_be_visible()
    page.get_by_role("link", name="Show all").tap()
    expect(page.locator(".tile")).to_have_count(total)


def test_moments_are_told_in_the_zone_of_the_viewer(visit: Open, site: ShownSite) -> None:
    """With its name, and dates as everywhere; what the server told is a hover away."""
    zones = {"Asia/Tokyo": "GMT+9", "America/New_York": "EST", "UTC": "UTC"}

    for name, zone in zones.items():
        page, _ = visit("/operations", token=site.operator, timezone_id=name)
        moment = page.locator("time[data-local]").first
        text = moment.inner_text()
        assert re.fullmatch(rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d {re.escape(zone)}", text), text
        assert moment.get_attribute("title") is not None
        told = datetime.fromisoformat(str(moment.get_attribute("datetime")))
        here = told.astimezone(ZoneInfo(name)).replace(tzinfo=None)
        assert here == datetime.fromisoformat(text.rpartition(" ")[0])
