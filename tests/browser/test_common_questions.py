"""The ten commonest questions, each from the overview by clicks alone, as somebody new would."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pytest
from _pytest.mark import ParameterSet
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import Open
from tests.support.sites.browsing import NARROW, WIDE

MOST_STEPS: Final = 7  # clicks and choices from the overview to the answer
_NUMBER: Final = re.compile(r"\d")


class Walk(NamedTuple):
    """A question as it is thought of, and the way to its answer."""

    thought: str
    tile: str  # of the overview
    question: str  # as the page *Ask* has it
    choices: Sequence[tuple[str, str]] = ()  # names of fields, and what is chosen in them
    boxes: Sequence[tuple[str, str]] = ()  # a part of the page that is opened, a box in it


WALKS: Final = (
    Walk("How many use it each day?", "Left after one page", "How many devices reported?"),
    Walk("Which page do visits begin on?", "First page of a visit", "Which are most common?"),
    Walk("Is it better than last week?", "Left after one page", "Did it change?"),
    Walk("How did that develop?", "Left after one page", "How did it run over time?"),
    Walk(
        "Is the new version worse?",
        "Left after one page",
        "Does it differ by platform or version?",
        [("by", "version")],
    ),
    Walk(
        "And without phones?",
        "Left after one page",
        "Does it differ by platform or version?",
        [("by", "version")],
        [("Platform", "not phone")],
    ),
    Walk("How many have the new version?", "First page of a visit", "How far has each version"),
    Walk("What are median and p95?", "Pages of a visit", "What are median and p95?"),
    Walk("How many read more than five pages?", "Pages of a visit", "How many lie between"),
    Walk("Do married people earn more?", "Household and income", "How do marital and income"),
)


def _ways() -> Iterator[ParameterSet]:
    """Yield each walk with a mouse and on a phone; one of both each time takes long enough."""
    for number, walk in enumerate(WALKS):
        for place, (name, size) in enumerate((("mouse", WIDE), ("phone", NARROW))):
            marks = [pytest.mark.slow] if number % 2 == place else []
            yield pytest.param(walk, size, id=f"{walk.thought} by {name}", marks=marks)


@pytest.mark.parametrize(("walk", "size"), tuple(_ways()))
def test_a_common_question_is_answered_in_few_steps_from_the_overview(
    walk: Walk, size: ViewportSize, visit: Open
) -> None:
    page, _ = visit("/", viewport=size, has_touch=size == NARROW)

    steps = _walked(page, walk)

    expect(page.locator("#answer h2")).to_contain_text(walk.tile)
    marks = page.locator("#answer [data-row*='  ']")
    expect(marks.first).to_be_attached()
    assert all(
        _NUMBER.search((mark.get_attribute("data-row") or "").partition("  ")[2])
        for mark in marks.all()
    )
    assert steps <= MOST_STEPS


def _walked(page: Page, walk: Walk) -> int:
    """Go the way of *walk*; return how many clicks and choices it took."""
    steps = 3
    page.get_by_role("link", name=walk.tile, exact=True).first.click()
    page.get_by_role("link", name="Ask another question").click()
    page.get_by_role("link", name=walk.question).click()
    page.wait_for_load_state()  # a script makes the choice ask at once
    for name, value in walk.choices:
        page.locator(f"form[data-ask] select[name='{name}']").first.select_option(value)
        page.wait_for_url(f"**{name}={value}**")
        steps += 1
    for part, box in walk.boxes:
        page.locator("form[data-ask] summary", has_text=part).click()
        page.get_by_role("checkbox", name=box, exact=True).check()
        steps += 2
    if walk.boxes:
        page.get_by_role("button", name="Ask", exact=True).click()
        steps += 1
    return steps


def test_a_walk_that_needs_more_would_be_caught(visit: Open) -> None:
    """The control: a question in two filters takes more steps than are allowed."""
    page, _ = visit("/")
    walk = WALKS[5]._replace(boxes=[("Platform", "not phone"), ("Version", "only 4.9")])

    assert _walked(page, walk) > MOST_STEPS
