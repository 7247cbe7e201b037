"""Boards, notes and shared links in a browser: by whom, from where, and what hostile texts do."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import escape, unescape
from pathlib import Path
from typing import Any, Final

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from collector.core.credentials import ANALYST, READ, VIEWER, Credential
from collector.storage.documents import MemoryDocuments
from collector.web import create_app
from collector.web.pages.compare import MOST_NOTES
from collector.workspace.documents import MAX_PANELS, Board, Note, Panel
from collector.workspace.documents import Grant as SharedGrant
from collector.workspace.shelf import Workspace
from tests.collector.web.pages.conftest import BROWSER, END, ONE_METRIC, token_of
from tests.hostile.markup import MARKUP
from tests.support.crowds.uploads import NOON, READ_TOKEN, bearer
from tests.support.sites.page import Page
from tests.support.store.memory_credentials import MemoryCredentials
from tests.support.store.memory_storage import MemoryStorage

OURS: Final = {**BROWSER, "Sec-Fetch-Site": "same-origin"}
WIKI: Final = "https://wiki.example.org"
QUESTION: Final = json.dumps({"metrics": ["category"], "verb": "top_k", "date_range": "28d"})
OTHER: Final = json.dumps({"metrics": [ONE_METRIC]})
ANALYST_OF_ONE: Final = "an-analyst-of-one-metric"


class Desk:
    """A collector of its own over the common tallies, and browsers of who has a token."""

    def __init__(self, site: Flask, storage: MemoryStorage, **settings: Any) -> None:
        self.documents, self.credentials = MemoryDocuments(), MemoryCredentials()
        for name, credential in (
            (VIEWER, Credential(READ, role=VIEWER, expires=END)),
            (ANALYST, Credential(READ, role=ANALYST, expires=END, label="Ada")),
            (
                ANALYST_OF_ONE,
                Credential(
                    READ, role=ANALYST, metrics=frozenset({ONE_METRIC}), app="types", expires=END
                ),
            ),
        ):
            self.credentials.add(token_of(name), credential)
        config = replace(site.extensions["hearsay"].config, **settings)
        self.app = create_app(
            config, storage, lambda: NOON, self.credentials, documents=self.documents
        )
        self.workspace: Workspace = self.app.extensions["hearsay"].workspace

    def browser(self, name: str = ANALYST) -> FlaskClient:
        client = self.app.test_client()
        if name:
            client.set_cookie("hearsay", token_of(name))
        return client

    def get(self, path: str, name: str = ANALYST) -> TestResponse:
        return self.browser(name).get(path, headers=BROWSER)

    def post(self, path: str, who: str = ANALYST, **form: Any) -> TestResponse:
        return self.browser(who).post(path, data=form, headers=OURS)

    def board(self, *questions: str, title: str = "Release health") -> str:
        """Pin *questions* to a new board, and return its name."""
        first, *more = questions
        made = self.post("/pin", q=first, title="First", board="new", new=title)
        name = made.headers["Location"].removeprefix("/board/")
        for question in more:
            self.post("/pin", q=question, title="Next", board=name)
        return name

    def link(self, **form: Any) -> str:
        """Make a link, and return the path of its address."""
        made = self.post("/share", **{"days": "7", **form})
        place = made.headers["Location"].partition("#")[2]
        listed = self.get("/share").text.partition(f'id="{place}"')[2]
        address = re.search(r'value="http://localhost(/shared/[^"]+)"', listed)
        assert address
        return address[1]


@pytest.fixture
def desk(site: Flask, filled: MemoryStorage) -> Desk:
    return Desk(site, filled, embed_origins=(WIKI,))


def test_an_answer_is_pinned_from_where_it_is_shown(desk: Desk) -> None:
    page = desk.get("/metric/category?range=28d").text
    pin = unescape(re.findall(r'href="(/pin\?[^"]+)"', page)[0])
    form = Page(desk.get(pin).text)
    question = dict(zip(form.values("name", "input"), form.values("value", "input"), strict=False))

    made = desk.post("/pin", q=question["q"], title=question["title"], board="new", new="Mine")
    board = desk.get(made.headers["Location"])

    assert made.status_code == 303
    assert "<h1>Mine</h1>" in board.text
    assert question["title"] in board.text
    assert board.text.count('class="picture"') == 1
    assert "by Ada" in board.text
    listed = desk.get("/boards").text
    assert ">Mine</a>" in listed


def test_a_board_keeps_its_order_and_its_panels_are_moved_renamed_and_removed(desk: Desk) -> None:
    name = desk.board(QUESTION, OTHER, QUESTION)
    titles: dict[str, Any] = {"title": "New", "group": "Group", "about": "About", "version": "3"}

    done = desk.post(
        f"/board/{name}/edit",
        **titles,
        panel=["one", "two", "three"],
        place=["3", "2", "1"],
        wide=["2"],
        remove=[],
    )

    board = desk.workspace.boards.document(name).content
    assert done.status_code == 303
    assert [panel.title for panel in board.panels] == ["three", "two", "one"]
    assert [panel.wide for panel in board.panels] == [False, True, False]
    assert (board.title, board.group, board.about) == ("New", "Group", "About")
    desk.post(
        f"/board/{name}/edit",
        **{**titles, "version": "4"},
        panel=["a", "b", "c"],
        place=["3", "1", "3"],
        remove=["2"],
    )
    board = desk.workspace.boards.document(name).content
    assert [panel.title for panel in board.panels] == ["c", "a"]


def test_who_saves_an_old_version_is_told_and_nothing_is_lost(desk: Desk) -> None:
    name = desk.board(QUESTION)
    texts: dict[str, Any] = {"panel": ["x"], "place": ["1"]}
    desk.post(f"/board/{name}/edit", version="1", title="First of two", **texts)

    late = desk.post(f"/board/{name}/edit", version="1", title="Second of two", **texts)

    assert late.status_code == 409
    assert "Somebody else saved this board meanwhile" in late.text
    assert f'href="/board/{name}"' in late.text
    assert desk.workspace.boards.document(name).content.title == "First of two"
    assert 'value="Second of two"' in late.text
    again = desk.post(f"/board/{name}/edit", version="2", title="Second of two", **texts)
    assert again.status_code == 303


def test_texts_of_panels_are_not_laid_over_other_panels(desk: Desk) -> None:
    name = desk.board(QUESTION)
    desk.post("/pin", q=OTHER, title="Pinned meanwhile", board=name)

    late = desk.post(
        f"/board/{name}/edit", version="1", title="Mine", panel=["My panel"], place=["1"]
    )

    assert late.status_code == 409
    assert 'value="Mine"' in late.text
    assert 'value="Pinned meanwhile"' in late.text
    assert "but for the panels, which are now others" in late.text
    assert "My panel" not in late.text


def test_a_form_that_breaks_a_rule_is_shown_again_with_what_was_typed(desk: Desk) -> None:
    name = desk.board(QUESTION)
    texts: dict[str, Any] = {"panel": ["Typed panel"], "place": ["1"], "wide": ["1"]}

    note = desk.post("/notes", at="2026-02-30", text="2.4 is out", about="metric:category")
    board = desk.post("/boards", title=" ")
    edited = desk.post(f"/board/{name}/edit", version="1", title=" ", about="Typed", **texts)

    assert [each.status_code for each in (note, board, edited)] == [400] * 3
    assert "Day must be a date such as 2026-01-31." in note.text
    assert 'name="at" value="2026-02-30" aria-invalid="true" aria-describedby="fault"' in note.text
    assert 'value="2.4 is out"' in note.text
    assert '<option value="metric:category" selected>' in note.text
    for page in (board, edited):
        assert "Title must be 1 to 120 printable characters." in page.text
        assert 'aria-invalid="true" aria-describedby="fault"' in page.text
    assert 'value="Typed panel"' in edited.text
    assert 'value="Typed"' in edited.text
    assert desk.workspace.boards.document(name).version == 1


def test_a_button_of_an_old_version_leads_back_to_its_page(desk: Desk) -> None:
    name = desk.board(QUESTION)
    browser = desk.browser()
    old = {"version": "7"}

    faults = [
        browser.post(f"/board/{name}/delete", data=old, headers={**OURS, "Referer": came}).text
        for came in (f"http://localhost/board/{name}/edit", "http://localhost.evil.example/x")
    ]

    assert f'href="http://localhost/board/{name}/edit">Back</a>' in faults[0]
    assert "evil" not in faults[1]


def test_a_board_is_deleted_and_comes_back(desk: Desk) -> None:
    name = desk.board(QUESTION)

    desk.post(f"/board/{name}/delete", version="1")
    gone = desk.get(f"/board/{name}")
    listed = desk.get("/boards/deleted").text
    back = desk.post(f"/board/{name}/restore", version="2", wanted="2")

    assert gone.status_code == 404
    assert "Release health" in listed
    assert back.headers["Location"] == f"/board/{name}"
    assert desk.get(f"/board/{name}").status_code == 200


def test_a_saved_question_opens_in_the_form_and_is_deleted_and_restored(desk: Desk) -> None:
    desk.post("/pin", q=QUESTION, title="What is common?", board="questions")
    [question] = desk.workspace.questions.documents()
    listed = desk.get("/boards").text
    [address] = re.findall(r'href="(/ask\?q=[^"]+)"', listed)

    assert desk.get(unescape(address)).text.count('class="picture"') == 1
    desk.post(f"/question/{question.name}/delete", version="1")
    assert "What is common?" not in desk.get("/boards").text
    desk.post(f"/question/{question.name}/restore", version="2")
    assert "What is common?" in desk.get("/boards").text


def test_a_panel_without_an_answer_says_why_in_place_and_costs_no_other(desk: Desk) -> None:
    """A metric that is gone, a dimension that is gone, a verb that the metric cannot answer."""
    panels = [
        Panel("gone metric", _query({"metrics": ["gone_metric"]})),
        Panel(
            "gone dimension", _query({"metrics": ["category"], "filters": [["is", "os", ["x"]]]})
        ),
        Panel("no answer", _query({"metrics": ["category"], "verb": "mean"})),
        Panel("good", _query(json.loads(QUESTION))),
    ]
    name = desk.workspace.boards.add(Board("x", panels), "ada").name

    page = desk.get(f"/board/{name}")
    answer = desk.browser("").get(f"/v1/boards/{name}", headers=bearer(READ_TOKEN)).get_json()

    assert page.status_code == 200
    assert page.text.count('class="fault"') == 3
    assert "gone_metric: no registry has a metric of this name any more" in page.text
    assert page.text.count("Edit the board to change this question or to remove its panel.") == 3
    assert "metric=category has the dimensions time, platform. Edit the board" in page.text
    assert page.text.count('class="picture"') == 1
    assert ["answer" in panel for panel in answer["panels"]] == [False, False, False, True]
    assert all(panel["reason"] for panel in answer["panels"][:3])


def test_a_board_with_a_metric_that_is_gone_is_shared_without_its_panel(desk: Desk) -> None:
    """Law: what is gone costs nothing else, and is not left out in silence."""
    gone, good = _query({"metrics": ["gone_metric"]}), _query(json.loads(QUESTION))
    name = desk.workspace.boards.add(Board("x", [Panel("a", gone), Panel("b", good)]), "ada").name
    empty = desk.workspace.boards.add(Board("y", [Panel("a", gone)]), "ada").name

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


def test_a_note_in_the_future_is_planned_and_stands_on_no_chart_until_then(desk: Desk) -> None:
    for at in ("2026-03-05", "2999-12-31"):
        assert desk.post("/notes", at=at, text=f"of {at}").status_code == 303

    assert desk.get("/notes").text.count("planned: charts show it from that day on") == 2
    for path in ("/metric/category", "/compare?metric=category&range=7d", "/"):
        assert "of 2026-03-05" not in desk.get(path).text


def test_a_board_is_full_at_some_time(desk: Desk) -> None:
    panels = [Panel("x", _query({"metrics": ["category"]}))] * MAX_PANELS
    name = desk.workspace.boards.add(Board("x", panels), "ada").name

    full = desk.post("/pin", q=QUESTION, title="one more", board=name)

    assert (full.status_code, "24 panels, as many as fit" in full.text) == (400, True)
    assert "Title of the panel board" not in full.text


def test_another_time_is_chosen_for_all_panels_of_a_board(desk: Desk) -> None:
    name = desk.board(QUESTION, OTHER)

    page = desk.get(f"/board/{name}?range=7d").text
    wrong = desk.get(f"/board/{name}?range=tomorrow")

    assert page.count("&#34;date_range&#34;: &#34;7d&#34;") == 2
    assert wrong.status_code == 400


def _query(fields: dict[str, Any]) -> Any:
    from collector.query import read

    return read(json.dumps(fields).encode())


WRITES: Final[dict[str, dict[str, Any]]] = {
    "/pin": {"q": QUESTION, "title": "x", "board": "new"},
    "/boards": {"title": "x"},
    "/notes": {"at": "2026-03-01", "text": "x"},
    "/share": {"q": QUESTION, "title": "x", "days": "7"},
    "/board/{name}/edit": {"version": "1", "title": "x", "panel": ["x"], "place": ["1"]},
    "/board/{name}/delete": {"version": "1"},
    "/board/{name}/restore": {"version": "1", "wanted": "1"},
}


def contents(desk: Desk) -> dict[str, dict[str, bytes]]:
    kinds = ("boards", "questions", "notes", "links")
    return {kind: desk.documents.records(kind) for kind in kinds}


@pytest.mark.parametrize("path", WRITES)
@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
    ],
    ids=str,
)
def test_no_other_site_changes_anything_through_a_visitor(
    desk: Desk, path: str, headers: dict[str, str]
) -> None:
    name = desk.board(QUESTION)
    before = contents(desk)

    forged = desk.browser().post(
        path.format(name=name), data=WRITES[path], headers={**BROWSER, **headers}
    )

    assert forged.status_code == 403
    assert contents(desk) == before


@pytest.mark.parametrize("path", WRITES)
@pytest.mark.parametrize(("who", "status"), [(VIEWER, 403), ("", 303)])
def test_only_an_analyst_writes(desk: Desk, path: str, who: str, status: int) -> None:
    name = desk.board(QUESTION)
    before = contents(desk)

    refused = desk.post(path.format(name=name), who, **WRITES[path])

    assert refused.status_code == status
    assert who or refused.headers["Location"].startswith("/login")
    assert contents(desk) == before


def test_a_viewer_sees_boards_and_notes_and_no_button_that_writes(desk: Desk) -> None:
    name = desk.board(QUESTION)
    desk.post("/notes", at="2026-03-01", text="2.4 out")

    pages = [desk.get(path, VIEWER) for path in ("/boards", f"/board/{name}", "/notes")]

    assert [page.status_code for page in pages] == [200] * 3
    assert all("method=\"post\"" not in page.text.replace("/logout", "").partition("<main")[2]
               for page in pages)  # fmt: skip
    assert not re.search(r"/(pin|share|board/[^/]+/edit)\b", "".join(page.text for page in pages))
    for path in ("/pin?q=" + QUESTION, "/share", f"/board/{name}/edit", "/boards/deleted"):
        assert desk.get(path, VIEWER).status_code == 403


def test_who_sees_one_metric_sees_only_what_is_about_it(desk: Desk) -> None:
    hidden = desk.board(QUESTION, title="canary of the board")
    seen = desk.board(OTHER, title="Own board")
    desk.post("/notes", at="2026-03-01", text="canary of the note", about="metric:category")
    desk.post("/notes", at="2026-03-01", text="seen by all")
    desk.post("/pin", q=QUESTION, title="canary of the question", board="questions")
    desk.link(q=QUESTION, title="canary of the link")
    who = ANALYST_OF_ONE

    texts = [
        desk.get(path, who).text for path in ("/boards", "/notes", "/share", "/pin?q=" + OTHER)
    ]

    assert "canary" not in "".join(texts)
    assert ("Own board" in texts[0], "seen by all" in texts[1]) == (True, True)
    for path in (f"/board/{hidden}", f"/board/{hidden}/edit", f"/share?board={hidden}"):
        assert desk.get(path, who).status_code == 404
    for path, form in WRITES.items():
        if "{name}" in path:
            assert desk.post(path.format(name=hidden), who, **form).status_code == 404
    assert desk.post("/pin", who, q=OTHER, title="x", board=hidden).status_code == 404
    assert desk.post("/pin", who, q=QUESTION, title="x", board=seen).status_code == 404
    assert desk.post("/share", who, q=QUESTION, title="x", days="7").status_code == 404
    note = desk.post("/notes", who, at="2026-03-01", text="x", about="metric:category")
    assert note.status_code == 404


def test_a_note_is_marked_on_the_charts_that_it_is_about(desk: Desk) -> None:
    desk.post("/notes", at="2026-03-03", text="2.4 is out", about="metric:category")
    desk.post("/notes", at="2026-12-24", text="planned one")

    own, other = (desk.get(f"/metric/{name}?range=28d").text for name in ("category", ONE_METRIC))
    listed = desk.get("/notes").text

    assert ("2.4 is out" in own, "2.4 is out" in other) == (True, False)
    assert listed.count("planned: charts show it from that day on") == 1


def test_a_note_is_deleted_and_restored(desk: Desk) -> None:
    desk.post("/notes", at="2026-03-01", text="2.4 is out")
    [note] = desk.workspace.notes.documents()

    desk.post(f"/notes/{note.name}/delete", version="1")
    assert desk.workspace.notes.documents() == []
    assert "Restore" in desk.get("/notes").text
    desk.post(f"/notes/{note.name}/restore", version="2")

    assert [n.content.text for n in desk.workspace.notes.documents()] == ["2.4 is out"]


@pytest.mark.parametrize(
    ("form", "place"),
    [
        ({"at": "2026-02-30", "text": "x"}, "Day"),
        ({"at": "2026-03-01", "text": ""}, "Text"),
        ({"at": "2026-03-01", "text": "x", "url": "javascript:alert(1)"}, "Link"),
        ({"at": "2026-03-01", "text": "x", "about": "app:none"}, "About"),
        ({"at": "2026-03-01", "text": "x", "about": "canary"}, "About"),
        ({"at": "2026-03-01"}, "form:"),
        ({"at": "2026-03-01", "text": "x", "more": "y"}, "form:"),
    ],
)
def test_a_note_that_breaks_a_rule_is_refused_by_field(
    desk: Desk, form: dict[str, str], place: str
) -> None:
    refused = desk.post("/notes", **form)

    assert (refused.status_code, f"{place} must" in unescape(refused.text)) == (400, True)
    assert 'href="javascript' not in refused.text
    assert desk.documents.count("notes") == 0


def test_a_release_is_noted_by_a_program(desk: Desk) -> None:
    client = desk.browser("")
    note = {"at": "2026-03-01", "text": "2.4 is out", "metric": "category"}

    made = client.post("/v1/notes", json=note, headers=bearer(READ_TOKEN))
    listed = client.get("/v1/notes", headers=bearer(READ_TOKEN)).get_json()["notes"]
    wrong = client.post("/v1/notes", json={**note, "at": "soon"}, headers=bearer(READ_TOKEN))
    viewer = client.post("/v1/notes", json=note, headers=bearer(token_of(VIEWER)))

    assert made.status_code == 201
    assert listed == [made.get_json()]
    assert (listed[0]["app"], listed[0]["planned"]) == ("types", False)
    assert (wrong.status_code, viewer.status_code) == (400, 403)


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
        assert (
            '<p class="hint">19 Feb to 4 Mar; of the days before there are no reports.</p>' in page
        )


def test_notes_of_the_periods_that_are_compared_stand_above_the_difference(desk: Desk) -> None:
    """Law: what happened within either period is said, with its link; nothing else is."""
    link = "https://example.org/2.4"
    for at, text in (
        ("2026-02-20", "in the earlier"),
        ("2026-02-24", "between them"),
        ("2026-03-04", MARKUP[0]),
    ):
        desk.post("/notes", at=at, text=text, url=link if at.endswith("20") else "")
    ends = "from=2026-02-26&to=2026-03-04&against=dates&against.from=2026-02-19"
    page = desk.get(f"/compare?metric=category&by=time&{ends}&against.to=2026-02-22").text

    panel = page.partition('id="difference"')[2].partition("</section>")[0]
    assert f'2026-02-20: <a rel="noreferrer noopener" href="{link}">in the earlier</a>' in panel
    assert f'<p class="hint">2026-03-04: {escape(MARKUP[0])}</p>' in panel
    assert "between them" not in panel


def test_many_notes_of_a_period_are_counted_and_listed_elsewhere(desk: Desk) -> None:
    for number in range(MOST_NOTES + 3):
        desk.post("/notes", at="2026-03-01", text=f"note {number:02}")
    ends = "from=2026-02-26&to=2026-03-04"

    page = desk.get(f"/compare?metric=category&by=time&{ends}").text

    panel = page.partition('id="difference"')[2].partition("</section>")[0]
    assert panel.count("2026-03-01: note") == MOST_NOTES
    assert 'href="/notes">and 3 more</a>' in panel


def test_a_link_that_is_forged_revoked_or_opened_too_often_is_a_page_that_says_so(
    desk: Desk,
) -> None:
    path = desk.link(q=QUESTION, title="x")
    [link] = desk.workspace.links.documents()
    forged = desk.get(path[:-1] + ("A" if path[-1] != "A" else "B"), "")
    often = [desk.get(path, "").status_code for _ in range(61)]
    late = desk.get(path, "").text
    desk.post(f"/share/{link.name}/revoke", version="1")
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


def test_hostile_texts_in_boards_notes_and_links_are_shown_as_texts(desk: Desk) -> None:
    labels = [text for text in MARKUP if len(text) <= 60 and text.isprintable()][:600]
    question = _query(json.loads(QUESTION))
    paths = ["/boards", "/notes", "/share"]
    for start in range(0, 600, 30):
        part = [" ".join(label.split()) for label in labels[start : start + 30]]
        panels = [Panel(label, question) for label in part[3:5]]
        board = Board(part[0], panels, about=part[1], group=part[2])
        document = desk.workspace.boards.add(board, part[5])
        paths += [f"/board/{document.name}", f"/board/{document.name}/edit"]
        for label in part[6:]:
            desk.workspace.notes.add(Note("2026-02-20", label, url="https://a.example/x"), "a")
        links = desk.app.extensions["hearsay"].links
        catalog = desk.app.extensions["hearsay"].catalog
        address, _ = links.share(part[0], panels, 7, catalog, author=part[1])
        paths.append(f"/shared/{address}")

    read = [Page(desk.get(path).text) for path in paths]

    def acting(page: Page) -> list[str]:
        return [text for text in page.acting if text != "href=https://a.example/x"]

    assert len(labels) == 600
    assert [
        (path, acting(page)) for path, page in zip(paths, read, strict=True) if acting(page)
    ] == []
    shown = "".join(page.text for page in read)
    assert sum(label in shown for label in labels[6:30]) >= 20
    assert SharedGrant.__name__ == "Grant"


def test_ten_thousand_boards_are_listed_in_part_and_found_by_search(desk: Desk) -> None:
    """They cannot be made by pages; whoever writes them into the store breaks no page."""
    name = desk.board(QUESTION)
    record = desk.documents.record("boards", name)
    assert record is not None
    for number in range(10_000):
        changed = record.replace(b"Release health", b"Board %05d" % number)
        desk.documents.put("boards", f"b{number}", changed)

    page, found = desk.get("/boards").text, desk.get("/boards?q=board+00777").text
    full = desk.post("/boards", title="one more")

    assert "200 of 10,001 boards are listed" in page
    assert found.count('href="/board/') == 1
    assert (full.status_code, "as many as are kept" in full.text) == (400, True)


def test_a_board_of_a_file_is_shown_and_changed_in_the_file(
    site: Flask, filled: MemoryStorage, tmp_path: Path
) -> None:
    path = tmp_path / "boards.toml"
    path.write_text(
        "schema = 1\n[boards.team]\ntitle = 'Team'\n"
        f"panels = [{{title = 'x', query = {{metrics = ['{ONE_METRIC}']}}}}]\n"
        "[[notes]]\nat = 2026-02-20\ntext = 'from the file'\n",
        encoding="utf-8",
    )
    desk = Desk(site, filled, boards=str(path))

    page = desk.get("/board/team").text

    assert page.count('class="picture"') == 1
    assert "from a file" in page
    assert "/board/team/edit" not in page
    assert "from the file" in desk.get("/notes").text
    form: dict[str, Any] = {"version": "0", "title": "x", "panel": ["x"], "place": ["1"]}
    assert desk.post("/board/team/edit", **form).status_code == 404
    assert desk.post("/pin", q=OTHER, title="x", board="team").status_code == 404


def test_a_board_that_is_hidden_now_is_restored_by_nobody_who_saw_it_before(desk: Desk) -> None:
    name = desk.board(OTHER)
    desk.post("/pin", q=QUESTION, title="Next", board=name)
    address = f"/board/{name}/restore"

    done = desk.post(address, ANALYST_OF_ONE, version="2", wanted="1")

    assert done.status_code == 404
    assert len(desk.workspace.boards.document(name).content.panels) == 2


def test_a_shared_link_shows_who_is_logged_in_nothing_of_their_own(desk: Desk) -> None:
    link = desk.link(q=QUESTION, title="Kinds")

    mine, others = desk.get(link).text, desk.get(link, "").text
    wrong = desk.get(link[:-4] + "AAAA").text

    assert mine == others
    assert "Log out" not in wrong
    assert 'aria-label="Pages"' not in wrong


def test_a_board_draws_earlier_periods_and_leads_on_but_not_by_a_link(desk: Desk) -> None:
    """Who has but a shared link gets no address that would open nothing."""
    line = {
        "metrics": [ONE_METRIC],
        "verb": "trend",
        "dimensions": ["time:day"],
        "date_range": "7d",
    }
    name = desk.board(json.dumps(line), QUESTION)

    plain, drawn = (desk.get(f"/board/{name}{more}").text for more in ("", "?before=previous"))

    assert '<select name="before"' in plain
    assert re.search(r"previous period, 2\d{3}-", drawn)
    assert not re.search(r"previous period, 2\d{3}-", plain)
    assert '<a href="/metric/' in plain
    assert desk.get(f"/board/{name}?before=ever").status_code == 400
    assert 'href="/metric/' not in desk.get(desk.link(board=name), "").text


@pytest.mark.parametrize(
    ("form", "wrong"),
    [
        ({"title": " ", "board": "questions"}, "Title of the panel must be 1 to 120"),
        ({"title": "x" * 121, "board": "new", "new": "N"}, "Title of the panel must be 1 to 120"),
        ({"title": "mine", "board": "new", "new": "y" * 121}, "Title of a new board must be 1"),
    ],
)
def test_a_pin_that_breaks_a_rule_is_shown_again_with_what_was_typed(
    desk: Desk, form: dict[str, str], wrong: str
) -> None:
    refused = desk.post("/pin", q=QUESTION, **form)
    shown = Page(refused.text)

    assert refused.status_code == 400
    assert wrong in refused.text
    assert form["title"] in shown.values("value", "input")
    assert form.get("new", "") in shown.values("value", "input")
    assert f'value="{form["board"]}" selected' in refused.text
    assert desk.post("/pin", q=QUESTION, title="good", board="questions").status_code == 303
    as_program = desk.browser().post(
        "/pin", data={"q": QUESTION, **form}, headers={**OURS, "Accept": "application/json"}
    )
    assert as_program.mimetype == "application/problem+json"


def test_a_board_of_eight_panels_weighs_no_more_than_a_page_may(desk: Desk) -> None:
    """With an earlier period below its lines, and all style sheets and scripts."""
    line = {"verb": "trend", "dimensions": ["time:day"], "date_range": "7d"}
    questions = [
        *(json.dumps({**line, "metrics": [name]}) for name in ("category", ONE_METRIC)),
        json.dumps({"metrics": ["category"], "verb": "actives", "date_range": "14d"}),
        *(json.dumps({"metrics": [name]}) for name in ("category", "boolean", "number")),
        json.dumps({"metrics": ["category"], "verb": "segments", "dimensions": ["platform"]})[:-1]
        + ', "options": {"item": "dark"}}',
        QUESTION,
    ]
    path = f"/board/{desk.board(*questions)}?before=previous"

    page = desk.get(path)
    files = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text))
    weight = len(page.data)
    for file in files:
        with desk.get(file) as response:
            weight += len(response.data)

    assert page.text.count('class="picture"') >= 8
    assert len(files) >= 4
    assert weight <= 150_000
