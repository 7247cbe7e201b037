"""Boards, notes and links: by whom, from where, and what hostile texts do."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest

from collector.core.credentials import VIEWER
from collector.workspace.documents import Author, Board, Note, Panel
from collector.workspace.documents import Grant as SharedGrant
from tests.collector.web.pages.conftest import (
    ANALYST_OF_ONE,
    BROWSER,
    ONE_METRIC,
    OTHER,
    QUESTION,
    Desk,
    query_of,
)
from tests.hostile.markup import MARKUP
from tests.support.sites.page import Page
from tests.support.store.authors import BOB

WRITES: Final[dict[str, dict[str, Any]]] = {
    "/pin": {"q": QUESTION, "title": "x", "board": "new"},
    "/boards": {"title": "x"},
    "/notes": {"at": "2026-03-01", "text": "x"},
    "/share": {"q": QUESTION, "title": "x", "days": "7"},
    "/board/{name}/edit": {"version": "1", "title": "x", "panel": ["x"], "place": ["1"]},
    "/boards/{name}/delete": {"version": "1"},
    "/boards/{name}/restore": {"version": "1", "wanted": "1"},
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


def test_hostile_texts_in_boards_notes_and_links_are_shown_as_texts(desk: Desk) -> None:
    labels = [text for text in MARKUP if len(text) <= 60 and text.isprintable()][:600]
    question = query_of(json.loads(QUESTION))
    paths = ["/boards", "/notes", "/share"]
    for start in range(0, 600, 30):
        part = [" ".join(label.split()) for label in labels[start : start + 30]]
        panels = [*(Panel(label, question) for label in part[3:5]), Panel("x", text=part[2])]
        board = Board(part[0], panels, about=part[1], group=part[2])
        document = desk.workspace.boards.add(board, Author("token:x", part[5]))
        paths += [f"/board/{document.name}", f"/board/{document.name}/edit"]
        for label in part[6:]:
            desk.workspace.notes.add(Note("2026-02-20", label, url="https://a.example/x"), BOB)
        links = desk.app.extensions["hearsay"].links
        catalog = desk.app.extensions["hearsay"].catalog
        address, _ = links.share(part[0], panels, 7, catalog, author=Author("token:x", part[1]))
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


def test_a_board_that_is_hidden_now_is_restored_by_nobody_who_saw_it_before(desk: Desk) -> None:
    name = desk.board(OTHER)
    desk.post("/pin", q=QUESTION, title="Next", board=name)
    address = f"/boards/{name}/restore"

    done = desk.post(address, ANALYST_OF_ONE, version="2", wanted="1")

    assert done.status_code == 404
    assert len(desk.workspace.boards.document(name).content.panels) == 2


def test_a_board_stays_its_own_however_often_another_saves_it(desk: Desk) -> None:
    """Law: who began it is in the record, and what was written at first can be restored."""
    began = desk.workspace.boards.add(Board("of bob"), BOB)
    for version in range(1, 25):
        form = {"version": str(version), "title": f"of eve {version}"}
        assert desk.post(f"/board/{began.name}/edit", **form).status_code == 303

    deleted = desk.post(f"/boards/{began.name}/delete", version="25")

    assert deleted.status_code == 403
    assert desk.workspace.boards.history(began.name)[-1].content == began.content


def test_texts_without_a_question_are_seen_by_those_who_see_the_whole_app(desk: Desk) -> None:
    """Law: what hid a board hides its texts, also when its questions are removed."""
    texts = Board("Plans", [Panel("Note", text="a secret of the team")])
    alone = desk.workspace.boards.add(texts, BOB).name
    mine = Board("Mine", [*texts.panels, Panel("Own", query_of({"metrics": [ONE_METRIC]}))])
    shared = desk.workspace.boards.add(mine, BOB).name

    assert desk.get(f"/board/{alone}").status_code == 200
    assert desk.get(f"/board/{alone}", ANALYST_OF_ONE).status_code == 404
    form = WRITES["/board/{name}/edit"]
    assert desk.post(f"/board/{alone}/edit", ANALYST_OF_ONE, **form).status_code == 404
    assert "Plans" not in desk.get("/boards", ANALYST_OF_ONE).text
    assert desk.get(f"/board/{shared}", ANALYST_OF_ONE).status_code == 200
