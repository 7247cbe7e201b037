"""Boards and notes in a browser: pinned, edited, kept, and of files."""

from __future__ import annotations

import json
import re
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from msgspec import structs

from client_sdk.core.epoch import DAY, epoch_of
from collector.core.cells import Cell
from collector.core.credentials import ANALYST, VIEWER
from collector.storage.documents import Entry, Version
from collector.web.pages.compare import MOST_NOTES
from collector.workspace.documents import MAX_PANELS, Board, File, Panel
from collector.workspace.shelf import Workspace
from tests.collector.web.pages.conftest import (
    ONE_METRIC,
    OTHER,
    OURS,
    QUESTION,
    Desk,
    query_of,
    token_of,
)
from tests.hostile.markup import MARKUP
from tests.support.crowds.uploads import NOON, READ_TOKEN, bearer
from tests.support.sites.page import Page
from tests.support.store.authors import ADA, BOB
from tests.support.store.memory_storage import MemoryStorage


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


def test_what_is_pinned_twice_is_one_panel(desk: Desk) -> None:
    """Law: the same question under the same title; under another it is another."""
    name = desk.board(QUESTION)
    pins = [{"q": QUESTION, "title": title, "board": name} for title in ("First", "Second")]

    again, other = (desk.post("/pin", **pin) for pin in pins)

    assert [again.status_code, other.status_code] == [303, 303]
    panels = desk.workspace.boards.document(name).content.panels
    assert [panel.title for panel in panels] == ["First", "Second"]


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


def test_a_text_stands_among_the_panels_of_a_board_wherever_it_is_shown(desk: Desk) -> None:
    """On its page, in its form, in a shared link and in the API; markup is text."""
    name, words = desk.board(QUESTION), f"Whom to ask: {MARKUP[0]}\r\n\r\nThe team."
    form: dict[str, Any] = {"title": "Health", "panel": ["Numbers"], "place": ["1"]}

    desk.post(f"/board/{name}/edit", **form, version="1", new_title="Help", new_text=words)
    moved = {"panel": ["Numbers", "Whom"], "place": ["2", "1"], "text": [words], "wide": ["2"]}
    done = desk.post(f"/board/{name}/edit", **{**form, **moved}, version="2")

    kept = words.replace("\r\n", "\n")
    assert done.status_code == 303
    for path, who in ((f"/board/{name}", ANALYST), (desk.link(board=name), "")):
        page = desk.get(path, who).text
        assert f'<section class="panel wide"><h2>Whom</h2><p class="words">{escape(kept)}<' in page
        assert page.index("Whom") < page.index("Numbers")
        assert page.count('class="picture"') == 1
    assert f">{escape(kept)}</textarea>" in desk.get(f"/board/{name}/edit").text
    answer = desk.browser("").get(f"/v1/boards/{name}", headers=bearer(READ_TOKEN)).get_json()
    assert answer["panels"][0] == {"title": "Whom", "text": kept}
    assert answer["panels"][1]["answer"]
    assert "query" in answer["panels"][1]


def test_a_text_needs_no_title(desk: Desk) -> None:
    name = desk.board(QUESTION)
    form: dict[str, Any] = {"title": "x", "version": "1", "panel": ["y"], "place": ["1"]}

    done = desk.post(f"/board/{name}/edit", **form, new_text="Only words")

    assert done.status_code == 303
    assert '<section class="panel"><p class="words">Only words<' in desk.get(f"/board/{name}").text
    answer = desk.browser("").get(f"/v1/boards/{name}", headers=bearer(READ_TOKEN)).get_json()
    assert answer["panels"][1] == {"title": "", "text": "Only words"}


def test_a_text_that_breaks_a_rule_is_shown_again_with_what_was_typed(desk: Desk) -> None:
    name = desk.board(QUESTION)
    form: dict[str, Any] = {"title": "x", "version": "1", "panel": ["y"], "place": ["1"]}

    untitled = desk.post(f"/board/{name}/edit", **{**form, "panel": [""]}, new_text="Typed text")
    empty = desk.post(f"/board/{name}/edit", **form, new_title="Typed title", new_text=" ")
    many = desk.post(f"/board/{name}/edit", **form, text=["of no panel"])

    assert [page.status_code for page in (untitled, empty, many)] == [400] * 3
    assert "Title of panel 1 must be 1 to 120 printable characters." in untitled.text
    assert ">Typed text</textarea>" in untitled.text
    assert "Text of panel 2 must be there or else a query" in empty.text
    assert 'value="Typed title"' in empty.text
    assert "a text if it has one" in many.text
    assert desk.workspace.boards.document(name).version == 1


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
    assert "except for the panels, which have changed" in late.text
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
        browser.post(f"/boards/{name}/delete", data=old, headers={**OURS, "Referer": came}).text
        for came in (f"http://localhost/board/{name}/edit", "http://localhost.evil.example/x")
    ]

    assert f'href="http://localhost/board/{name}/edit">Back</a>' in faults[0]
    assert "evil" not in faults[1]


def test_a_board_is_deleted_and_comes_back(desk: Desk) -> None:
    name = desk.board(QUESTION)

    desk.post(f"/boards/{name}/delete", version="1")
    gone = desk.get(f"/board/{name}")
    listed = desk.get("/boards/deleted").text
    back = desk.post(f"/boards/{name}/restore", version="2", wanted="2")

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
    desk.post(f"/questions/{question.name}/delete", version="1")
    assert "What is common?" not in desk.get("/boards").text
    desk.post(f"/questions/{question.name}/restore", version="2")
    assert "What is common?" in desk.get("/boards").text


def test_a_panel_without_an_answer_says_why_in_place_and_costs_no_other(desk: Desk) -> None:
    """A metric that is gone, a dimension that is gone, a verb that the metric cannot answer."""
    panels = [
        Panel("gone metric", query_of({"metrics": ["gone_metric"]})),
        Panel(
            "gone dimension", query_of({"metrics": ["category"], "filters": [["is", "os", ["x"]]]})
        ),
        Panel("no answer", query_of({"metrics": ["category"], "verb": "mean"})),
        Panel("good", query_of(json.loads(QUESTION))),
    ]
    name = desk.workspace.boards.add(Board("x", panels), ADA).name

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


def test_a_board_is_full_at_some_time(desk: Desk) -> None:
    panels = [Panel("x", query_of({"metrics": ["category"]}))] * MAX_PANELS
    name = desk.workspace.boards.add(Board("x", panels), ADA).name

    full = desk.post("/pin", q=QUESTION, title="one more", board=name)

    assert (full.status_code, "24 panels, as many as fit" in full.text) == (400, True)
    assert "Title of the panel board" not in full.text


def test_another_time_is_chosen_for_all_panels_of_a_board(desk: Desk) -> None:
    name = desk.board(QUESTION, OTHER)

    page = desk.get(f"/board/{name}?range=7d").text
    wrong = desk.get(f"/board/{name}?range=tomorrow")

    assert page.count("&#34;date_range&#34;: &#34;7d&#34;") == 2
    assert wrong.status_code == 400


def test_ten_thousand_boards_are_listed_in_part_and_found_by_search(desk: Desk) -> None:
    """They cannot be made by pages; whoever writes them into the store breaks no page."""
    name = desk.board(QUESTION)
    record = desk.documents.record("boards", name)
    assert record is not None
    for number in range(10_000):
        changed = record.replace(b"Release health", b"Board %05d" % number)
        entry = Entry("", "Ada", 0, (Version(1, len(changed), "token:ada"),))
        desk.documents.put("boards", f"b{number}", changed, entry=entry)

    page, found = desk.get("/boards").text, desk.get("/boards?q=board+00777").text
    full = desk.post("/boards", title="one more")

    assert "200 of 10,001 boards are listed" in page
    assert found.count('href="/board/') == 1
    assert (full.status_code, "as many as are kept" in full.text) == (400, True)


def test_a_board_is_listed_with_a_picture_its_owner_and_its_last_change(desk: Desk) -> None:
    """The picture is of the first question; a board whose question has no answer has none."""
    line = {"metrics": ["category"], "verb": "trend", "dimensions": ["time:day"]}
    gone = Panel("gone", query_of({"metrics": ["gone_metric"]}))
    good = Panel("Good", query_of(json.loads(QUESTION)))
    boards = {
        "Bars": [Panel("words", text="first of all"), good],
        "Line": [Panel("line", query_of({**line, "date_range": "7d"})), gone],
        "Faulty": [gone, good],
        "Silent": [Panel("no reports", query_of({**line, "date_range": ["2020-01-01"] * 2}))],
        "Words": [Panel("words", text="alone")],
    }
    begun = [desk.workspace.boards.add(Board(title, boards[title]), BOB) for title in boards]
    first = begun[0]
    desk.workspace.boards.replace(first.name, 1, structs.replace(first.content, group="G"), ADA)

    text = desk.get("/boards").text
    cards = dict(
        zip(re.findall(r"<h3><a[^>]*>(.*?)</a>", text), text.split("<h3>")[1:], strict=True)
    )

    assert {title: card.count('class="chart') for title, card in cards.items()} == {
        "Bars": 1,
        "Line": 1,
        "Faulty": 0,
        "Silent": 0,
        "Words": 0,
    }
    assert 'class="bar"' in cards["Bars"]
    assert 'class="line-1"' in cards["Line"]
    assert "2 panels" in cards["Bars"]
    assert "1 panel<" in cards["Words"]
    assert "owned by bob" in cards["Bars"]
    assert re.search(r"changed <time[^>]*>just now</time> by ada", cards["Bars"])
    assert '<h2 class="group">G</h2>' in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "just now"), (60, "1 minute ago"), (7_300, "2 hours ago"), (3 * DAY + 5, "3 days ago")],
)
def test_how_long_ago_a_board_was_changed_is_in_words(
    site: Flask, filled: MemoryStorage, seconds: int, words: str
) -> None:
    desk = Desk(site, filled)
    earlier = Workspace(desk.documents, lambda: NOON - seconds, File(schema=1))
    earlier.boards.add(Board("x"), ADA)

    assert f">{words}</time> by ada" in desk.get("/boards").text


def test_the_list_of_boards_asks_no_large_question_and_shows_one_that_was_answered(
    desk: Desk,
) -> None:
    """Law: it waits for no place of large questions; the board itself does, and that is kept."""
    name = desk.board(json.dumps({"metrics": ["string"], "verb": "heavy_hitters"}))

    before = desk.get("/boards").text
    board = desk.get(f"/board/{name}").text
    after = desk.get("/boards").text

    assert ['class="chart' in page for page in (before, board, after)] == [False, True, True]


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
    assert re.search(r"previous period, \d+ ", drawn)
    assert not re.search(r"previous period, \d+ ", plain)
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
    weight = 0
    for file in files:
        with desk.get(file) as response:
            weight += len(response.data)

    assert page.text.count('class="picture"') >= 8
    assert len(files) >= 4
    assert len(page.data) <= 100_000
    assert 10_000 < weight <= 62_000  # of files, which a browser keeps


def test_a_note_in_the_future_is_planned_and_stands_on_no_chart_until_then(desk: Desk) -> None:
    for at in ("2026-03-05", "2999-12-31"):
        assert desk.post("/notes", at=at, text=f"of {at}").status_code == 303

    assert desk.get("/notes").text.count("planned: charts show it from that day on") == 2
    for path in ("/metric/category", "/compare?metric=category&range=7d", "/"):
        assert "of 2026-03-05" not in desk.get(path).text


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
    assert "Restore" in desk.get("/boards/deleted").text
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
    assert len(desk.documents.records("notes")) == 0


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


def test_a_panel_of_damaged_tallies_is_no_reason_to_edit_its_board(site: Flask) -> None:
    storage = MemoryStorage()
    metric = site.extensions["hearsay"].catalog.metric("category")
    newest = epoch_of(metric.every, NOON)
    for epoch in range(newest - 60, newest + 1):
        storage.tallied[Cell(metric.digest, epoch, "")] |= {0: 900, 1: 9_000}
    desk = Desk(site, storage)

    page = desk.get(f"/board/{desk.board(QUESTION)}").text

    assert 'class="fault"' in page
    assert "Edit the board" not in page
