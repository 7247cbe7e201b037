"""What a chart answers to: the pointer, the keys, a finger; and what it is read at."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from collector.analytics.rows import GOOD, Chart, Row
from collector.rendering.charts import page_chart, pictures_of
from tests.browser.conftest import Open, menu_of
from tests.browser.test_controls import choose, query_of
from tests.support.sites.browsing import NARROW, WIDE

TIME: Final = "#time"
_MIDDLE: Final[ViewportSize] = {"width": 700, "height": 800}
# Pixels of the smallest letters of the charts that are seen, and how many are.
LETTERS: Final = """() => {
  const all = [...document.querySelectorAll('.picture svg text')];
  const seen = all.filter((one) => one.getClientRects().length);
  return [Math.min(...seen.map((one) => {
    return parseFloat(getComputedStyle(one).fontSize) * one.getScreenCTM().a;
  })), seen.length];
}"""


def across(page: Page, part: float) -> tuple[float, float]:
    """Return a place in the chart over time, as a part of the way between its strips."""
    strips = page.locator(f"{TIME} .plot .stretches a")
    first, last = strips.first.bounding_box(), strips.last.bounding_box()
    assert first
    assert last
    left, right = first["x"] + 1, last["x"] + last["width"] - 1
    return left + part * (right - left), first["y"] + 5


def picture(page: Page, panel: str) -> Locator:
    return page.locator(f"{panel} .picture").first


@pytest.mark.parametrize(
    "path",
    ["/metric/one_page", "/metric/first_page", "/metric/household", "/metric/region", "/plan"],
)
@pytest.mark.parametrize("width", [360, 390, 700, 1000, 1280])
def test_letters_of_charts_have_eleven_pixels_at_any_width(
    visit: Open, path: str, width: int
) -> None:
    page, _ = visit(path, viewport={"width": width, "height": 800})

    smallest, count = page.evaluate(LETTERS)
    assert count > 10
    assert smallest >= 10.9  # of 11: widths are rounded to pixels


def test_one_drawing_is_as_wide_as_its_panel_at_any_width(visit: Open) -> None:
    """Law: a line is drawn once, stretched across its panel; its letters and markers are not."""
    page, _ = visit("/metric/one_page", viewport=NARROW)
    assert page.locator(f"{TIME} .picture svg.chart:not(.sample)").count() == 1
    seen = []
    for viewport in (NARROW, _MIDDLE, WIDE):
        page.set_viewport_size(viewport)
        room, drawn = (
            page.locator(f"{TIME} {part}").first.bounding_box()
            for part in (".picture", ".plot .stretches")
        )
        (circle, *_), (line, *_) = (
            page.locator(f"{TIME} .plot {part}").evaluate_all(
                "all => all.map(one => one.getBoundingClientRect().toJSON())"
            )
            for part in ("circle", "[class^=line-]")
        )
        assert room
        assert drawn
        assert room["width"] - 90 < drawn["width"] < room["width"]
        assert circle["width"] == pytest.approx(circle["height"], abs=0.1)
        assert line["left"] >= drawn["x"] - 1
        assert line["right"] <= drawn["x"] + drawn["width"] + 1
        seen.append((drawn["width"], circle["width"]))
    widths, circles = zip(*seen, strict=True)
    assert widths[0] < widths[1] < widths[2]
    assert circles == pytest.approx([circles[0]] * 3, abs=0.1)


def test_a_wider_line_has_more_labels_of_time_and_none_touch_at_any_width(visit: Open) -> None:
    days = [f"2026-11-{day:02}" for day in range(8, 25)]
    rows = [Row({"time": day}, 0.3, 0.2, 0.4, 0.05, 900, 0.05, GOOD) for day in days]
    line = page_chart(partial(pictures_of, Chart.ROWS, rows, "A line"), "c-line")
    page, _ = visit("/ask", viewport=NARROW)
    page.locator("main").evaluate(
        "(main, line) => { main.innerHTML = `<div class=picture>${line}</div>` }", line
    )
    counts = []
    for viewport in (NARROW, _MIDDLE, WIDE):
        page.set_viewport_size(viewport)
        boxes = page.locator(".plot g[text-anchor=middle] text").evaluate_all(
            "all => all.filter(one => one.getClientRects().length)"
            ".map(one => one.getBoundingClientRect().toJSON())"
        )
        assert all(before["right"] < after["left"] for before, after in pairwise(boxes))
        counts.append(len(boxes))

    assert 2 < counts[0] < counts[1] < counts[2]


def test_a_row_leads_to_its_segment_by_pointer_and_by_keys(visit: Open) -> None:
    page, _ = visit("/metric/one_page")
    page.locator("#by-platform th a", has_text="phone").click()
    page.wait_for_url("**segment.platform=phone**")
    expect(page.locator("[name='segment.platform']").first).to_have_value("phone")

    page.go_back()
    page.locator("#by-platform th a", has_text="tablet").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**segment.platform=tablet**")


def test_a_row_is_tapped_with_a_finger(visit: Open) -> None:
    page, _ = visit("/metric/one_page", viewport=NARROW, has_touch=True)

    page.locator("#by-platform th a", has_text="phone").tap()

    page.wait_for_url("**segment.platform=phone**")


def test_a_click_on_a_chart_over_time_tells_its_numbers_and_a_key_opens_a_day(visit: Open) -> None:
    page, _ = visit("/metric/one_page")
    page.mouse.click(*across(page, 0.0))
    expect(page.locator(".tip")).to_contain_text("between")
    assert query_of(page) == {}

    picture(page, TIME).focus()
    page.keyboard.press("Home")
    expect(page.locator(".tip")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**from=**")
    keyed = query_of(page)
    assert keyed["from"] == keyed["to"]


def test_a_tap_on_a_phone_tells_the_numbers_of_its_day_and_another_tap_hides_them(
    visit: Open,
) -> None:
    page, _ = visit("/metric/one_page", viewport=NARROW, has_touch=True)
    tip = page.locator(".tip")
    strips = page.locator(f"{TIME} .plot .stretches a")
    told = []
    for strip in (strips.first, strips.last):
        strip.scroll_into_view_if_needed()
        box = strip.bounding_box()
        assert box
        page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + 20)
        expect(tip).to_be_visible()
        told.append(tip.inner_text())

    assert query_of(page) == {}
    assert told[0] != told[1]
    days = strips.last.locator("title").text_content() or ""
    assert any(day in told[1] for day in days.split(" – "))
    page.locator(f"{TIME} h2").tap()
    expect(tip).to_be_hidden()


def test_a_key_on_a_phone_tells_the_numbers_too(visit: Open) -> None:
    page, _ = visit("/metric/one_page", viewport=NARROW)

    picture(page, TIME).focus()
    page.keyboard.press("End")

    expect(page.locator(".tip")).to_be_visible()


def test_where_days_were_chosen_a_link_shows_all_of_them_again(visit: Open) -> None:
    page, _ = visit("/metric/one_page")
    assert page.get_by_role("link", name="Show all days").count() == 0
    picture(page, TIME).focus()
    for key in ("End", "Shift+ArrowLeft", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**from=**")

    page.locator(TIME).get_by_role("link", name="Show all days").click()
    page.wait_for_url(lambda url: "from=" not in url)
    assert query_of(page) == {}


def test_a_brush_zooms_and_so_does_shift_with_the_arrows(visit: Open) -> None:
    page, _ = visit("/metric/one_page")
    page.mouse.move(*across(page, 0.3))
    page.mouse.down()
    page.mouse.move(*across(page, 0.5))
    page.mouse.move(*across(page, 1.0))
    page.mouse.up()
    page.wait_for_url("**from=**")
    brushed = query_of(page)
    assert brushed["from"] < brushed["to"]

    page.go_back()
    picture(page, TIME).focus()
    for key in ("End", "Shift+ArrowLeft", "Shift+ArrowLeft", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**from=**")
    keyed = query_of(page)
    assert keyed["from"] < keyed["to"] == brushed["to"]


def drag(page: Page, begin: tuple[float, float], end: tuple[float, float]) -> None:
    """Move a finger over the screen, as Chromium sees one."""
    device = page.context.new_cdp_session(page)
    steps = [
        begin,
        *(
            (begin[0] + (end[0] - begin[0]) * i / 8, begin[1] + (end[1] - begin[1]) * i / 8)
            for i in range(1, 9)
        ),
    ]
    for kind, points in [
        *(
            ("touchMove" if i else "touchStart", [{"x": x, "y": y}])
            for i, (x, y) in enumerate(steps)
        ),
        ("touchEnd", []),
    ]:
        device.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def test_a_finger_across_a_chart_on_a_phone_zooms_and_one_up_the_page_scrolls(visit: Open) -> None:
    page, _ = visit("/metric/one_page", viewport=NARROW, has_touch=True, is_mobile=True)
    strips = page.locator(f"{TIME} .plot .stretches a")
    strips.first.scroll_into_view_if_needed()
    first, last = strips.nth(2).bounding_box(), strips.last.bounding_box()
    assert first
    assert last
    left, right, y = first["x"] + first["width"] / 2, last["x"] + last["width"] / 2, first["y"] + 60
    scrolled = page.evaluate("scrollY")
    drag(page, (left, y), (left, y - 120))
    page.wait_for_function("scrolled => scrollY > scrolled", arg=scrolled)
    assert query_of(page) == {}
    assert page.locator(".brush").count() == 0

    page.evaluate("scrolled => scrollTo(0, scrolled)", scrolled)
    drag(page, (left, y), (right, y))
    page.wait_for_url("**from=**")
    brushed = query_of(page)
    assert brushed["from"] < brushed["to"]


@pytest.mark.parametrize(
    ("path", "panel", "name"),
    [
        ("/metric/one_page", "answer", "one_page-answer"),
        ("/ask?metric=one_page&verb=trend&by=time:day", "answer", "one_page-trend"),
        ("/compare?metric=one_page&by=platform", "difference", "one_page-difference"),
    ],
)
def test_a_picture_of_points_is_saved_under_the_name_of_the_drawing(
    visit: Open, tmp_path: Path, path: str, panel: str, name: str
) -> None:
    page, _ = visit(path)

    with page.expect_download() as saving:
        menu_of(page, panel).get_by_role("button", name="PNG").click()
    saving.value.save_as(tmp_path / "picture")
    head = (tmp_path / "picture").read_bytes()[:24]

    assert saving.value.suggested_filename == f"{name}.png"
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = (int.from_bytes(head[i : i + 4], "big") for i in (16, 20))
    assert width == 2 * 720  # twice the units of the drawing, for screens with more points
    assert height > 100


@pytest.mark.parametrize(
    ("path", "panel"),
    [
        ("/metric/one_page", TIME),
        ("/metric/both", "#answer"),
        ("/compare?metric=one_page&by=platform", "#difference"),
    ],
)
def test_every_mark_under_the_mouse_tells_its_own_numbers(
    visit: Open, path: str, panel: str
) -> None:
    """Law: where a mouse can be moved to, nothing lies above a mark; no event is made by us.

    A mark without numbers tells why it has none, and a hostile label stays a text.
    """
    page, _ = visit(path)
    page.locator(f"{panel} h2").scroll_into_view_if_needed()
    marks = page.locator(f"{panel} svg [data-row]").all()
    assert sum(mark.get_attribute("data-reason") is None for mark in marks) >= 2

    for mark in marks:
        box = mark.bounding_box()
        assert box
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        label, *numbers = (mark.get_attribute("data-row") or "").split("  ")
        expect(page.locator(".tip b")).to_have_text(label)
        told = numbers[0] if numbers else mark.get_attribute("data-reason")
        assert told
        expect(page.locator(".tip")).to_contain_text(told)
        assert page.locator(".tip script, .tip img, .tip svg, .tip iframe").count() == 0
    page.mouse.move(2, 2)
    expect(page.locator(".tip")).to_be_hidden()


def test_a_line_is_hidden_and_shown_again(visit: Open) -> None:
    page, _ = visit("/metric/one_page")
    page.get_by_text("Adoption", exact=True).click()
    panel = page.locator("#spread-version")
    button = panel.get_by_role("button", name="4.9")
    dots = panel.locator(".dot-1:visible, .dot-2:visible")
    before = dots.count()

    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    assert 0 < dots.count() < before

    button.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    assert dots.count() == before


def test_lines_are_held_against_an_earlier_period_and_the_address_keeps_it(visit: Open) -> None:
    page, _ = visit("/metric/one_page?from=2026-11-20&to=2026-11-23")
    choose(page, "before", "previous")

    expect(page.locator(f"{TIME} .notes li", has_text="previous period")).to_have_count(1)
    expect(page.locator("[name=before]")).to_have_value("previous")
    choose(page, "before", "year")
    expect(page.locator(f"{TIME} .notes li", has_text="a year ago")).to_contain_text("no reports")


def test_without_scripts_rows_and_days_are_links(visit: Open) -> None:
    page, _ = visit("/metric/one_page", java_script_enabled=False)

    page.locator(f"{TIME} .plot .stretches a").first.click(position={"x": 4, "y": 4})
    page.wait_for_url("**from=**")
    page.go_back()
    page.locator("#by-platform th a").first.click()
    page.wait_for_url("**segment.platform=**")


def test_the_lines_of_a_list_are_as_high_as_a_finger_on_a_phone(visit: Open) -> None:
    page, _ = visit("/metric/one_page", viewport=NARROW)

    boxes = [link.bounding_box() for link in page.locator("#by-platform th a").all()]
    tops = [box["y"] for box in boxes if box]
    assert min(b - a for a, b in pairwise(tops)) >= 43.5  # the drawing is 318 of its 320 units wide
