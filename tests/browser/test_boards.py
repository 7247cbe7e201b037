"""Boards, notes and links by mouse, by keyboard, on a phone, on paper and without scripts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Open, menu_of
from tests.browser.test_keyboard import go_to
from tests.browser.test_pages import sound
from tests.support.sites.browsing import NARROW, watched
from tests.support.sites.shown_site import SCRIPTS, ShownSite

METRIC: Final = "/metric/one_page?range=7d"
SMALL: Final = """(least) => [...document.querySelectorAll(
  'main button, main .button, main select, main input:not([type=hidden], [type=checkbox]), '
  + '.subnav a, .kept > li > a'
)].filter((control) => control.offsetParent && control.getBoundingClientRect().height < least)
  .map((control) => control.textContent || control.name)"""


def pinned(page: Page, title: str) -> str:
    """Pin the first chart of a metric to a new board called *title*; return its path."""
    page.goto(METRIC)
    menu_of(page, "answer").get_by_role("link", name="Pin to a board").click()
    page.get_by_label("Where").select_option(label="a new board")
    page.get_by_label("Title of a new board").fill(title)
    page.get_by_role("button", name="Pin").click()
    expect(page.locator("h1")).to_have_text(title)
    return urlsplit(page.url).path


def test_from_a_chart_to_a_board_a_link_and_its_end(
    browser: Browser, visit: Open, site: ShownSite
) -> None:
    page, _ = visit("about:blank")
    board = pinned(page, "Release health")
    faults = sound(page)
    expect(page.locator(".panel svg.chart:visible").first).to_be_visible()

    page.get_by_role("link", name="Edit").click()
    expect(page.locator("h1")).to_have_text("Edit board")
    faults += sound(page)
    page.get_by_label("Group").fill("Releases")
    page.get_by_label("Title", exact=True).first.fill(SCRIPTS[0])
    page.get_by_role("button", name="Save").click()
    expect(page.locator("h1")).to_have_text(SCRIPTS[0])
    page.goto("/boards?q=one_page")
    faults += sound(page)
    expect(page.get_by_role("heading", name="Releases")).to_be_visible()
    page.goto(f"{board}/edit")
    page.get_by_role("button", name="Restore version 1").click()
    expect(page.locator("h1")).to_have_text("Release health")

    page.get_by_role("link", name="Share").first.click()
    page.get_by_label("Good for").select_option("1")
    page.get_by_role("button", name="Make the link").click()
    expect(page.get_by_label("Address").first).to_be_visible()
    faults += sound(page)
    address = page.get_by_label("Address").first.input_value()
    with watched(browser, site.url) as (stranger, watch):
        watch.expected = ("404", "401")
        stranger.goto(address)
        expect(stranger.locator("h1")).to_have_text("Release health")
        expect(stranger.locator(".panel svg.chart:visible").first).to_be_visible()
        faults += sound(stranger)
        assert stranger.context.cookies() == []
        page.get_by_role("button", name="Revoke Release health").click()
        expect(page.get_by_role("button", name="Revoke Release health")).to_have_count(0)
        stranger.reload()
        expect(stranger.get_by_role("heading")).to_have_text("This link opens nothing")
        stranger.goto(board)
        expect(stranger.locator("h1")).to_have_text("Log in")

    page.goto(f"{board}/edit")
    page.get_by_role("button", name="Delete this board").click()
    expect(page.locator("h1")).to_have_text("Deleted")
    faults += sound(page)
    page.get_by_role("button", name="Restore Release health").click()
    expect(page.locator("h1")).to_have_text("Release health")
    assert faults == []


def test_a_release_is_noted_and_marked_on_the_line(visit: Open) -> None:
    page, _ = visit("/notes")
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()

    page.get_by_label("Day").fill(yesterday)
    page.get_by_label("Text").fill("2.4 is out")
    page.get_by_label("About").select_option("metric:one_page")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("button", name="Delete 2.4 is out")).to_be_visible()
    faults = sound(page)
    page.goto(METRIC)

    expect(page.locator("#time svg").get_by_text("2.4 is out").first).to_be_attached()
    faults += sound(page)
    page.goto("/notes")
    page.get_by_role("button", name="Delete 2.4 is out").click()
    expect(page.get_by_role("button", name="Restore 2.4 is out")).to_be_visible()
    assert faults == []


def test_a_board_is_made_by_the_keyboard_alone(visit: Open) -> None:
    page, _ = visit(METRIC)

    go_to(page, "summary", "More of Over time")
    page.keyboard.press("Enter")
    go_to(page, "a", "Pin to a board")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Pin to a board")
    go_to(page, "select", "Where")
    page.keyboard.type("a new board")
    go_to(page, "input", "Title of a new board")
    page.keyboard.type("By keyboard")
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_have_text("By keyboard")
    go_to(page, "a", "Edit")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Delete this board")).to_be_visible()
    go_to(page, "button", "Delete this board")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Deleted")


def of_three(page: Page, title: str) -> None:
    """Make a board of an answer and two texts, A and B, and open its form."""
    board = pinned(page, title)
    for letter in "AB":
        page.goto(f"{board}/edit")
        page.get_by_text("Add a text").click()
        page.get_by_label("Title of the text").fill(letter)
        page.get_by_label("Text, without markup").fill(f"The text of {letter}.")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("heading", name=letter, exact=True)).to_be_visible()
    page.goto(f"{board}/edit")


def test_a_text_is_as_tall_as_its_words_and_not_as_the_chart_beside_it(visit: Open) -> None:
    page, _ = visit("about:blank")
    of_three(page, "Heights")
    page.get_by_role("link", name="Cancel").click()

    expect(page.get_by_role("heading", name="A", exact=True)).to_be_visible()
    chart, beside, _ = page.locator(".panels > .panel").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect()).map(box => [box.top, box.height])"
    )
    assert chart[0] == beside[0]
    assert beside[1] < chart[1] / 2


def titles(page: Page) -> list[str]:
    """Return the titles of the panels of a board, or of its form, in order."""
    fields = page.locator("main [name=panel]")
    if fields.count():
        return [field.input_value()[:1] for field in fields.all()]
    return [text[:1] for text in page.locator(".panels > .panel h2").all_inner_texts()]


def middle(page: Page, selector: str, number: int) -> tuple[float, float]:
    """Return the middle of what has the *number* of those that match, counted from 0."""
    box = page.locator(selector).nth(number).bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_panels_are_moved_and_made_wide_by_mouse_and_by_keyboard(visit: Open) -> None:
    page, _ = visit("about:blank")
    of_three(page, "To be sorted")
    faults = sound(page)
    before = titles(page)

    page.mouse.move(*middle(page, "[data-move=to]", 2))
    page.mouse.down()
    right, lower = middle(page, "fieldset", 0)
    page.mouse.move(right - 60, lower - 20, steps=8)
    page.mouse.up()
    dragged = titles(page)
    button = page.get_by_role("button", name="Move down").nth(0)
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_have_text("Position 2 of 3")
    focused = page.evaluate("document.activeElement.textContent")
    grip = middle(page, "[data-move=wide]", 0)
    page.mouse.move(*grip)
    page.mouse.down()
    page.mouse.move(grip[0] + 90, grip[1], steps=4)
    page.mouse.up()
    expect(page.locator("[name=wide]").nth(0)).to_be_checked()
    faults += sound(page)
    page.get_by_role("button", name="Save").click()
    expect(page.locator("h1")).to_have_text("To be sorted")

    assert before == ["L", "A", "B"]
    assert dragged == ["B", "L", "A"]
    assert focused == "Move down"
    assert titles(page) == ["L", "B", "A"]
    assert page.locator(".panels > .wide h2").all_inner_texts() == [
        "Left after one page: Share of devices"
    ]
    assert faults == []


def test_panels_are_moved_by_touch(browser: Browser, site: ShownSite) -> None:
    phone = {"viewport": NARROW, "has_touch": True, "is_mobile": True}
    with watched(browser, site.url, **phone) as (page, _):
        page.context.add_cookies([site.cookie()])
        of_three(page, "Sorted by touch")
        page.evaluate("document.querySelectorAll('fieldset')[1].scrollIntoView()")
        touch = page.context.new_cdp_session(page)
        (x, y), (_, lower) = (middle(page, "[data-move=to]", 1), middle(page, "fieldset", 2))
        steps = [y + (lower + 30 - y) * step / 8 for step in range(9)]
        for kind, place in (("touchStart", y), *(("touchMove", place) for place in steps)):
            points = [{"x": x, "y": place}]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        page.get_by_role("button", name="Save").press("Enter")
        expect(page.locator("h1")).to_have_text("Sorted by touch")

        assert titles(page) == ["L", "B", "A"]


def test_boards_work_without_scripts_and_by_touch_on_a_phone(
    browser: Browser, site: ShownSite
) -> None:
    phone = {"viewport": NARROW, "has_touch": True, "is_mobile": True}
    with watched(browser, site.url, java_script_enabled=False, **phone) as (page, _):
        page.context.add_cookies([site.cookie()])
        page.goto(METRIC)
        menu_of(page, "answer").get_by_role("link", name="Pin to a board").tap()
        page.get_by_label("Where").select_option(label="a new board")
        page.get_by_label("Title of a new board").fill("By touch")
        page.get_by_role("button", name="Pin").tap()
        expect(page.locator("h1")).to_have_text("By touch")
        page.get_by_role("link", name="Edit").tap()
        page.get_by_text("Add a text").tap()
        page.get_by_label("Title of the text").fill("First of all")
        page.get_by_label("Text, without markup").fill("By touch, too.")
        page.get_by_role("button", name="Save").tap()
        page.get_by_role("link", name="Edit").tap()
        page.get_by_label("Position").nth(1).fill("1")
        page.get_by_role("button", name="Save").tap()
        expect(page.locator(".panels h2").first).to_have_text("First of all")
        page.get_by_role("link", name="Edit").tap()
        page.get_by_role("button", name="Delete this board").tap()
        expect(page.locator("h1")).to_have_text("Deleted")
    with watched(browser, site.url, **phone) as (page, _):
        page.context.add_cookies([site.cookie()])
        small = []
        for path in ("/boards", "/notes", "/share", "/boards/deleted"):
            page.goto(path)
            small += page.evaluate(SMALL, 44)
        assert small == []
