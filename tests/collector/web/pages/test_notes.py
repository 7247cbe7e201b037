"""Notes in a browser and from programs: on which charts they stand, and when."""

from __future__ import annotations

from html import escape, unescape

import pytest

from collector.core.credentials import VIEWER
from collector.web.pages.compare import MOST_NOTES
from tests.collector.web.pages.conftest import (
    ONE_METRIC,
    Desk,
    token_of,
)
from tests.hostile.markup import MARKUP
from tests.support.crowds.uploads import READ_TOKEN, bearer


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
