"""Every control does what it says, and its state is in the address, so that it can be passed on."""

from __future__ import annotations

import csv
import json
import re
from datetime import date
from io import StringIO
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Open, menu_of
from tests.support.sites.shown_site import DEMO, ShownSite


def query_of(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def chosen(page: Page, name: str) -> Locator:
    """Return the first field called *name* in the address."""
    return page.locator(f"main [name='{name}']").first


def choose(page: Page, name: str, value: str) -> None:
    """Choose *value* in the first field called *name*; return once the address has it."""
    chosen(page, name).select_option(value)
    page.wait_for_url(f"**{name}={quote(value)}**")


def test_a_tile_leads_to_its_metric(visit: Open) -> None:
    page, _ = visit("/")

    page.get_by_role("link", name="Left after one page").first.click()

    expect(page.locator("h1")).to_have_text("Left after one page")
    assert urlsplit(page.url).path == "/metric/one_page"


def test_the_navigation_leads_everywhere_and_marks_where_one_is(visit: Open) -> None:
    page, _ = visit("/")

    for name in ("Compare", "Ask", "Plan", "Privacy", "Overview"):
        page.get_by_role("navigation").get_by_role("link", name=name, exact=True).click()
        expect(page.locator("h1")).to_have_text(name)
        expect(page.locator("nav[aria-label=Pages] [aria-current=page]")).to_have_text(name)


def test_a_range_a_segment_and_an_item_are_kept_in_the_address(visit: Open) -> None:
    page, _ = visit("/metric/first_page")

    choose(page, "range", "7d")
    choose(page, "segment.platform", "phone")
    choose(page, "item", "news")

    assert query_of(page)["range"] == ["7d"]
    expect(chosen(page, "segment.platform")).to_have_value("phone")
    expect(page.get_by_role("heading", name="news over time")).to_be_visible()


def test_dates_are_asked_for_when_they_are_chosen(visit: Open) -> None:
    page, _ = visit("/metric/one_page")
    expect(chosen(page, "from")).to_be_hidden()

    chosen(page, "range").select_option("dates")
    chosen(page, "from").fill("2026-11-01")
    chosen(page, "to").fill("2026-11-20")
    page.wait_for_url("**to=2026-11-20**")

    assert query_of(page)["from"] == ["2026-11-01"]
    expect(chosen(page, "from")).to_have_value("2026-11-01")


def test_the_csv_of_a_chart_is_a_table_of_numbers_and_can_be_copied(
    visit: Open, site: ShownSite, tmp_path: Path
) -> None:
    page, _ = visit("/metric/first_page", permissions=["clipboard-read", "clipboard-write"])

    menu = menu_of(page, "answer")
    with page.expect_download() as begun:
        menu.get_by_role("link", name="CSV").click()
    begun.value.save_as(tmp_path / "numbers.csv")
    menu.get_by_role("button", name="Copy CSV").click()
    expect(page.locator("#status")).to_have_text("Copied.")

    text = (tmp_path / "numbers.csv").read_text("utf-8")
    rows = list(csv.DictReader(StringIO(text)))
    assert len(rows) == 17
    assert all(float(row["ci_low"]) <= float(row["value"]) <= float(row["ci_high"]) for row in rows)
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.splitlines() == text.splitlines()


def test_the_query_behind_a_chart_is_one_click_away(visit: Open) -> None:
    page, _ = visit("/metric/one_page")

    menu = menu_of(page, "time")
    menu.get_by_text("The query").click()

    code = menu.locator("code")
    assert "curl " in code.nth(0).inner_text()
    assert "/v1/query" in code.nth(0).inner_text()
    assert "one_page" in code.nth(1).inner_text()


def test_the_theme_is_chosen_by_a_button_and_kept(visit: Open) -> None:
    page, _ = visit("/", color_scheme="light")
    toggle = page.locator("[data-theme-toggle]")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)

    toggle.click()
    toggle.click()
    expect(toggle).to_contain_text("Dark")
    dark = page.evaluate(paper)
    page.reload()

    assert dark != light
    assert page.evaluate(paper) == dark
    toggle.click()
    assert page.evaluate(paper) == light


def test_segments_are_compared(visit: Open) -> None:
    page, _ = visit("/compare?metric=one_page")

    choose(page, "by", "platform")
    choose(page, "against", "phone")

    expect(page.locator("section.panel svg").first).to_be_visible()


def test_a_value_is_left_out_on_the_page_of_a_metric(visit: Open) -> None:
    page, _ = visit("/metric/one_page")

    choose(page, "segment.platform", "!phone")
    page.get_by_role("link", name="Ask another question").click()

    expect(page.locator("h1")).to_have_text("Ask")
    expect(chosen(page, "metric")).to_have_value("one_page")


def test_two_periods_of_ones_own_are_compared_at_once(visit: Open) -> None:
    page, _ = visit("/compare?metric=one_page&range=7d")
    expect(chosen(page, "against.from")).to_be_hidden()

    chosen(page, "against").select_option("dates")
    chosen(page, "against.from").fill(_day(page, 8))
    chosen(page, "against.to").fill(_day(page, 8))
    page.wait_for_url("**against.to=**")

    assert query_of(page)["against"] == ["dates"]
    day = date.fromisoformat(_day(page, 8))
    words = re.compile(rf"against ({day}|{day.day} {day:%b})\.")
    expect(page.locator("#difference")).to_contain_text(words)


def test_a_question_is_asked_step_by_step_and_its_address_can_be_passed_on(visit: Open) -> None:
    page, _ = visit("/ask")

    choose(page, "metric", "one_page")
    page.get_by_role("link", name="How did it run over time?").click()
    expect(page.locator("section.panel svg").first).to_be_visible()
    page.get_by_role("checkbox", name="platform", exact=True).check()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**by=platform**")
    expect(page.locator("section.panel svg").first).to_be_visible()
    page.locator("p.hint a").last.click()

    expect(page.locator("section.panel svg").first).to_be_visible()


def test_values_are_left_out_and_taken_by_a_filter(visit: Open) -> None:
    page, _ = visit("/ask?metric=one_page&verb=frequency")

    page.locator("summary", has_text="Platform").click()
    page.get_by_role("checkbox", name="not phone").check()
    page.locator("summary", has_text="Version").click()
    page.get_by_role("checkbox", name="only 4.8").check()
    page.get_by_role("checkbox", name="only 4.9").check()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**segment.platform**")

    assert query_of(page)["segment.version"] == ["4.8", "4.9"]
    expect(page.locator("summary", has_text="Platform: not phone")).to_be_visible()
    expect(page.locator("#answer")).to_contain_text("platform: not phone; version: 4.8 or 4.9")


def test_two_ranges_of_ones_own_are_compared(visit: Open) -> None:
    page, _ = visit("/ask?metric=one_page&verb=compare")
    expect(chosen(page, "against.from")).to_be_hidden()

    chosen(page, "range").select_option("7d")
    chosen(page, "against").select_option("dates")
    first, last = (_day(page, back) for back in (8, 8))
    chosen(page, "against.from").fill(first)
    chosen(page, "against.to").fill(last)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**against=dates**")

    expect(page.locator("#answer svg").first).to_be_visible()
    expect(chosen(page, "against.from")).to_have_value(first)


def _day(page: Page, back: int) -> str:
    """Return the day that was *back* days ago."""
    day = f"new Date(Date.now() - {back} * 86400000).toISOString().slice(0, 10)"
    return str(page.evaluate(day))


def test_another_dimension_of_an_experiment_has_other_arms(visit: Open) -> None:
    page, _ = visit("/ask?metric=one_page&verb=lift")

    choose(page, "by", "version")

    expect(chosen(page, "option.control")).to_have_value("4.8")
    expect(page.locator("#answer svg").first).to_be_visible()


def test_what_cannot_be_asked_is_told_and_nothing_is_lost(visit: Open) -> None:
    page, watch = visit("about:blank")
    watch.expected = ("400",)

    page.goto("/ask?metric=first_page&verb=quantile")

    expect(page.get_by_role("alert")).to_contain_text("Choose another question")
    expect(chosen(page, "metric")).to_have_value("first_page")


@pytest.mark.parametrize("slider", ["devices", "epsilon", "share"])
def test_a_slider_moves_the_plan_and_the_address(slider: str, visit: Open) -> None:
    page, _ = visit("/plan?metric=first_page")
    big = page.locator("#planned .big").first
    before = big.text_content() or ""

    page.locator(f"input[name={slider}]").fill(
        {"devices": "6", "epsilon": "4", "share": "5"}[slider]
    )

    expect(big).not_to_have_text(before)
    assert slider in query_of(page)


def test_another_metric_is_planned(visit: Open) -> None:
    page, _ = visit("/plan")

    choose(page, "metric", "page_views")

    expect(page.locator("#planned .big").first).to_contain_text("pages")


def test_the_deployment_record_names_every_metric(visit: Open, tmp_path: Path) -> None:
    page, _ = visit("/privacy")

    with page.expect_download() as begun:
        page.get_by_role("link", name="Deployment record").click()
    begun.value.save_as(tmp_path / "record.json")

    record = json.loads((tmp_path / "record.json").read_text("utf-8"))
    assert set(DEMO) <= set(json.dumps(record).replace('"', " ").split())
    page.get_by_role("link", name="Page for the people measured").click()
    expect(page.locator("h1")).to_have_text("What is asked of you")


def test_operations_tell_that_nothing_is_missing(visit: Open, site: ShownSite) -> None:
    page, _ = visit("/operations", token=site.operator)

    expect(page.get_by_role("heading", name="Every upload is accounted for")).to_be_visible()
    assert page.locator(".law.broken").count() == 0
    page.get_by_text("Checks passed").click()
    expect(page.locator("details[open] li").first).to_be_visible()


def test_after_the_log_out_every_page_asks_for_a_log_in(visit: Open) -> None:
    page, _ = visit("/")

    page.get_by_role("button", name="Log out").click()
    expect(page.locator("h1")).to_have_text("Log in")
    page.goto("/metric/one_page?range=7d")

    assert query_of(page)["next"] == ["/metric/one_page?range=7d"]


def test_an_error_is_a_page_with_a_way_back(visit: Open) -> None:
    page, watch = visit("about:blank")
    watch.expected = ("404",)

    page.goto("/nowhere")
    page.get_by_role("main").get_by_role("link", name="Overview").click()

    expect(page.locator("h1")).to_have_text("Overview")
