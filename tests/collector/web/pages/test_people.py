"""The page for the people measured is open to them, and tells nothing that was counted."""

from __future__ import annotations

import re

from flask.testing import FlaskClient

from tests.collector.web.conftest import MakeApp
from tests.collector.web.pages.conftest import BROWSER, ONE_METRIC, Visit, token_of
from tests.support.crowds.uploads import READ_TOKEN
from tests.support.device.every_type import NAMES
from tests.support.sites.page import Page
from tests.support.store.memory_storage import MemoryStorage


def test_the_people_measured_need_no_token(browser: FlaskClient) -> None:
    response = browser.get("/privacy/people", headers=BROWSER)

    assert response.status_code == 200
    assert not [name for name in NAMES if f"All of {name}" not in response.text]
    assert 'href="/privacy"' not in response.text  # which they may not see


def test_what_was_counted_is_not_told_to_the_people(
    browser: FlaskClient, make_app: MakeApp, storage: MemoryStorage
) -> None:
    """The page is made without the store: it is the same when the store is away."""
    storage.failure = RuntimeError("the store was asked")

    response = make_app().test_client().get("/privacy/people", headers=BROWSER)

    assert response.status_code == 200
    assert "reports yet" not in browser.get("/privacy/people", headers=BROWSER).text


def test_the_people_are_told_that_reports_add_up(browser: FlaskClient) -> None:
    text = Page(browser.get("/privacy/people", headers=BROWSER).text).text

    assert re.search(r"many reports together reveal more than one", text)
    assert re.search(r"at most ε [0-9.,]+ in any seven days and ε [0-9.,]+ in any 365 days", text)
    assert "fewer than a hundred" not in text
    assert "The number of reports is counted exactly" in text


def test_a_sum_of_some_questions_is_not_called_that_of_all(
    browser: FlaskClient, visit: Visit
) -> None:
    whole = visit("/privacy").text
    browser.set_cookie("hearsay", token_of(ONE_METRIC))
    part = visit_as(browser)

    assert "All questions together" in whole
    assert "All questions together" not in part
    assert "The questions that you may see together" in part


def visit_as(browser: FlaskClient) -> str:
    return browser.get("/privacy", headers=BROWSER).text


def test_a_comparison_without_numbers_says_what_to_do_next(make_app: MakeApp) -> None:
    client = make_app().test_client()
    client.set_cookie("hearsay", READ_TOKEN)

    page = client.get("/compare", headers=BROWSER).text
    week = client.get("/compare?range=7d", headers=BROWSER).text

    assert "Show 7 days" in page
    assert "range=7d" in page
    assert "Show 7 days" not in week
    assert "another metric or segment" in week
