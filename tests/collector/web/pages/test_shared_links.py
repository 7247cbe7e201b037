"""Shared links: they show an answer or a board to whoever has them, and open nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from html import escape
from typing import Final

from flask import Flask

from collector.web import create_app
from collector.workspace.documents import Board, Panel
from tests.collector.web.pages.conftest import (
    BROWSER,
    OTHER,
    QUESTION,
    WIKI,
    Desk,
    query_of,
)
from tests.hostile.markup import MARKUP
from tests.support.crowds.uploads import NOON
from tests.support.sites.page import Page
from tests.support.store.authors import ADA
from tests.support.store.memory_storage import MemoryStorage


def test_a_board_with_a_metric_that_is_gone_is_shared_without_its_panel(desk: Desk) -> None:
    """Law: what is gone costs nothing else, and is not left out in silence."""
    gone, good = query_of({"metrics": ["gone_metric"]}), query_of(json.loads(QUESTION))
    name = desk.workspace.boards.add(Board("x", [Panel("a", gone), Panel("b", good)]), ADA).name
    empty = desk.workspace.boards.add(Board("y", [Panel("a", gone)]), ADA).name

    assert "1 panel is left out" in desk.get(f"/share?board={name}").text
    page = desk.get(desk.link(board=name), "")
    assert (page.status_code, page.text.count('class="picture"')) == (200, 1)
    assert "gone_metric" not in page.text
    assert desk.post("/share", days="7", board=empty).status_code == 400


def test_a_metric_that_goes_after_a_board_was_shared_is_said_in_place(
    desk: Desk,
) -> None:
    """Law: whoever has but the link is not told to edit what they cannot."""
    path = desk.link(q=QUESTION, title="x")
    shared = desk.app.extensions["hearsay"]
    left = shared.catalog.only(lambda _, metric: metric != "category")
    desk.app.extensions["hearsay"] = replace(shared, catalog=left)

    page = desk.get(path, "")

    assert page.status_code == 200
    assert "category: no registry has a metric of this name any more." in page.text
    assert "Edit the board" not in page.text


SHARED: Final = ("/", "/boards", "/metric/category", "/ask", "/notes", "/v1/metrics", "/v1/boards")


def test_a_shared_answer_needs_no_account_and_opens_nothing_else(desk: Desk) -> None:
    path = desk.link(q=QUESTION, title="What is common?")
    stranger = desk.browser("")

    page = stranger.get(path, headers=BROWSER)

    assert page.status_code == 200
    assert page.text.count('class="picture"') == 1
    assert "Set-Cookie" not in page.headers
    assert page.headers["Referrer-Policy"] == "no-referrer"
    assert page.headers["Cache-Control"] == "no-store"
    assert page.headers["X-Robots-Tag"] == "noindex"
    links = set(Page(page.text).values("href"))
    assert {link for link in links if not link.startswith(("/static/", "#"))} == {"/"}
    assert "curl" not in page.text
    for other in SHARED:
        assert stranger.get(other, headers=BROWSER).status_code in (303, 401)


def test_a_shared_board_shows_its_panels_as_they_were(desk: Desk) -> None:
    """Law: what is pinned later is not shared; what is asked is answered as of today."""
    name = desk.board(QUESTION)
    path = desk.link(board=name)
    desk.post("/pin", q=OTHER, title="pinned later", board=name)
    desk.post("/notes", at="2026-02-27", text="of colleagues only")

    page = desk.get(path, "").text

    assert "pinned later" not in page
    assert "of colleagues only" not in page
    assert page.count('class="picture"') == 1


def test_a_shared_board_says_what_it_is_about_and_of_which_days_its_panels_are(desk: Desk) -> None:
    """Law: whoever has but the link reads what the board says, and which periods are compared."""
    compared = {"metrics": ["category"], "verb": "compare", "dimensions": ["time:period"]}
    days = {"date_range": ["2026-02-26", "2026-03-04"], "against": ["2026-02-19", "2026-02-22"]}
    name = desk.board(json.dumps({**compared, **days, "options": {"item": "light"}}), QUESTION)
    form = {"title": "Health", "about": f"Of all {MARKUP[0]} platforms", "version": "2"}
    desk.post(f"/board/{name}/edit", **form, panel=["one", "two"], place=["1", "2"])

    for page in (desk.get(desk.link(board=name), "").text, desk.get(f"/board/{name}").text):
        assert f'<p class="lead">{escape(form["about"])}</p>' in page
        assert "26 Feb to 4 Mar against 19 to 22 Feb." in page
        assert '<p class="hint">19 Feb to 4 Mar; there are no reports before.</p>' in page


def test_a_link_that_is_forged_revoked_or_opened_too_often_is_a_page_that_says_so(
    desk: Desk,
) -> None:
    path = desk.link(q=QUESTION, title="x")
    [link] = desk.workspace.links.documents()
    forged = desk.get(path[:-1] + ("A" if path[-1] != "A" else "B"), "")
    often = [desk.get(path, "").status_code for _ in range(61)]
    late = desk.get(path, "").text
    desk.post(f"/links/{link.name}/delete", version="1")
    other = Desk(desk.app, MemoryStorage())  # whose store has another secret

    assert (forged.status_code, "<h1>This link opens nothing</h1>" in forged.text) == (404, True)
    assert "ask the sender for a new link" in forged.text
    assert desk.get("/shared/xyz", "").text == forged.text
    assert often == [200] * 60 + [429]
    assert "link: is opened more than 60 times a minute" in late
    assert "The key" not in late
    assert other.get(path, "").status_code == 404
    fresh = create_app(
        desk.app.extensions["hearsay"].config,
        MemoryStorage(),
        lambda: NOON,
        documents=desk.documents,
    )
    revoked = fresh.test_client().get(path, headers=BROWSER)
    assert (revoked.status_code, revoked.text) == (404, forged.text)


def test_a_shared_link_is_framed_by_listed_origins_and_no_other_page_is(
    desk: Desk, site: Flask, filled: MemoryStorage
) -> None:
    path = desk.link(q=QUESTION, title="x")
    unlisted = Desk(site, filled)
    closed = unlisted.link(q=QUESTION, title="x")

    policies = {
        place: desk.get(place).headers["Content-Security-Policy"].rpartition("frame-ancestors ")[2]
        for place in (path, "/privacy", "/boards", "/share", "/login", path + "x")
    }

    assert policies.pop(path) == WIKI
    assert policies.pop(path + "x") == WIKI
    assert set(policies.values()) == {"'none'"}
    assert unlisted.get(closed).headers["Content-Security-Policy"].endswith("'none'")


def test_a_shared_link_shows_who_is_logged_in_nothing_of_their_own(desk: Desk) -> None:
    link = desk.link(q=QUESTION, title="Kinds")

    mine, others = desk.get(link).text, desk.get(link, "").text
    wrong = desk.get(link[:-4] + "AAAA").text

    assert mine == others
    assert "Log out" not in wrong
    assert 'aria-label="Pages"' not in wrong
