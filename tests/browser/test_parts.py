"""The page of a metric: parts, menus and the pointer's line, by mouse, keyboard and touch."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Open, menu_of

METRIC = "/metric/one_page"


def open_parts(page: Page) -> list[str]:
    """Return the parts that are shown."""
    found: list[str] = page.eval_on_selector_all(
        "[data-part]", "all => all.filter(e => e.getClientRects().length).map(e => e.dataset.part)"
    )
    return found


def test_one_part_is_open_and_the_address_keeps_it(visit: Open) -> None:
    page, _ = visit(METRIC)
    assert open_parts(page) == ["breakdown"]

    page.get_by_text("Devices", exact=True).click()
    assert open_parts(page) == ["devices"]
    page.reload()

    assert open_parts(page) == ["devices"]
    expect(page.locator("#devices svg.chart:visible")).to_have_count(1)


def test_parts_are_chosen_by_keys(visit: Open) -> None:
    page, _ = visit(METRIC)
    page.locator("#part-breakdown").focus()

    page.keyboard.press("ArrowRight")
    second = open_parts(page)
    page.keyboard.press("ArrowLeft")

    assert len(second) == 1
    assert second != ["breakdown"]
    assert open_parts(page) == ["breakdown"]


def test_parts_are_chosen_by_a_finger_and_without_scripts(visit: Open) -> None:
    page, _ = visit(
        METRIC, has_touch=True, java_script_enabled=False, viewport={"width": 360, "height": 740}
    )

    page.locator("label[for=part-method]").tap()

    assert "Mechanism" in page.locator("[data-part=method]").inner_text()
    expect(page.locator("#by-platform")).to_be_hidden()


def test_a_link_to_a_card_opens_its_part_also_without_scripts(visit: Open) -> None:
    for is_scripted in (True, False):
        page, _ = visit(f"{METRIC}#devices", java_script_enabled=is_scripted)

        expect(page.locator("#devices-title")).to_be_visible()


def test_paper_has_all_parts(visit: Open) -> None:
    page, _ = visit(METRIC)

    page.emulate_media(media="print")

    assert {"breakdown", "devices", "method"} <= set(open_parts(page))


def test_one_menu_is_open_and_escape_or_a_click_elsewhere_closes_it(visit: Open) -> None:
    page, _ = visit(METRIC)
    first, second = menu_of(page, "time"), menu_of(page, "by-platform")
    expect(second.get_by_role("link", name="CSV")).to_be_visible()
    expect(first.get_by_role("link", name="CSV")).to_be_hidden()

    page.keyboard.press("Escape")
    expect(second.get_by_role("link", name="CSV")).to_be_hidden()
    assert page.evaluate("document.activeElement.closest('#by-platform .menu') !== null")

    first = menu_of(page, "time")
    page.locator("h1").click()
    expect(first.get_by_role("link", name="CSV")).to_be_hidden()


def test_the_pointer_draws_a_line_in_every_chart_of_the_same_time_and_tells_its_numbers(
    visit: Open,
) -> None:
    page, _ = visit(f"{METRIC}#part-devices")
    strips = page.locator("#time svg:visible .stretches a")
    strip = strips.nth(2)
    time = strip.evaluate("link => link.querySelector('title').textContent")
    box = strip.bounding_box()
    assert box

    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 3)

    expect(page.locator("#time svg:visible .pointer")).to_have_count(1)
    expect(page.locator("#devices svg:visible .pointer")).to_have_count(1)
    expect(page.locator(".tip")).to_contain_text(time)

    page.locator("h1").hover()
    expect(page.locator(".pointer")).to_have_count(0)


def test_a_breakdown_is_sorted_by_its_heads_and_a_name_filters_the_page(visit: Open) -> None:
    page, _ = visit(METRIC)
    table = page.locator("#by-platform table.breakdown")

    table.get_by_role("button", name="value").click()
    values = [
        float(text.split()[0])
        for text in table.locator("tbody td:nth-of-type(2)").all_inner_texts()
    ]
    assert values == sorted(values, reverse=True)
    table.get_by_role("link", name="phone").click()

    page.wait_for_url("**segment.platform=phone**")
    assert page.locator("select[name='segment.platform']").input_value() == "phone"
