"""What may be kept: texts, limits and addresses; and the file that operators write."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from collector.core.errors import ConfigError, QueryError
from collector.query import Query
from collector.workspace.documents import (
    MAX_PANELS,
    MAX_TEXT,
    MAX_TITLE,
    Board,
    Note,
    Panel,
    SavedQuestion,
    checked,
    plain,
    read_file,
)

QUERY: Final = Query(metrics=["page"])
FILE: Final = """
schema = 1

[boards.release]
title = "Release health"
group = "Releases"
[[boards.release.panels]]
title = "Crashes"
query = { metrics = ["page"], verb = "trend", dimensions = ["time:day"], date_range = "28d" }
[[boards.release.panels]]
title = "When it rises"
text = '''
Look  here first.



Then ask the team.
'''

[questions.top]
title = "What is most common?"
query = { metrics = ["page"] }

[[notes]]
at = 2026-11-20
text = "2.4 out"
url = "https://example.org/2.4"
"""


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (Board(""), "title"),
        (Board("  "), "title"),
        (Board("x" * (MAX_TITLE + 1)), "title"),
        (Board("a\u202eb"), "title"),
        (Board("a\x00b"), "title"),
        (Board("x", group="\x07"), "group"),
        (Board("x", about="a" * 1_001), "about"),
        (Board("x", [Panel("", QUERY)]), "panels.0.title"),
        (Board("x", [Panel("y", Query(metrics=["m"], options={"k": "x" * 9_000}))]), "panels.0"),
        (Board("x", [Panel("y")]), "panels.0.text"),
        (Board("x", [Panel("y", text=" \n ")]), "panels.0.text"),
        (Board("x", [Panel("y", QUERY, text="z")]), "panels.0.text"),
        (Board("x", [Panel("y", QUERY), Panel("y", text="z" * 1_001)]), "panels.1.text"),
        (Board("x", [Panel("y", text="a\x00b")]), "panels.0.text"),
        (Board("x", [Panel("\x07", text="z")]), "panels.0.title"),
        (SavedQuestion("", QUERY), "title"),
        (Note("2026-02-30", "x"), "at"),
        (Note("tomorrow", "x"), "at"),
        (Note("2026-02-03", ""), "text"),
        (Note("2026-02-03", "x" * (MAX_TEXT + 1)), "text"),
        *(
            (Note("2026-02-03", "x", url=url), "url")
            for url in (
                *("javascript:alert(1)", "data:text/html,x", "//evil.example", "/notes", "ftp://a"),
                *("https://", 'https://a/"><script>', "https://a b", "https://[", "https://ä"),
                *(f"https://a/{'x' * 500}", "JAVASCRIPT://a/%0aalert(1)", "vbscript:x"),
            )
        ),
    ],
)
def test_what_breaks_a_rule_is_named_by_its_place(
    content: Board | SavedQuestion | Note, place: str
) -> None:
    with pytest.raises(QueryError, match=f"^{place}"):
        checked(content)


def test_blanks_around_a_text_mean_nothing() -> None:
    assert checked(Board(" A \n board ")).title == "A board"
    assert checked(Note(" 2026-02-03 ", " x ")).at == "2026-02-03"


def test_a_text_keeps_its_paragraphs_and_no_more_blank_lines() -> None:
    panel = Panel("y", text=" one \r\n two\r\n\r\n\r\n\r\nthree ")

    board = checked(Board("x", [panel]))

    assert board.panels == [Panel("y", text="one\ntwo\n\nthree")]
    assert plain(board)["panels"] == [{"title": "y", "text": "one\ntwo\n\nthree"}]
    assert board.metrics == ()


def test_a_question_is_kept_without_what_it_has_by_default() -> None:
    """Law: a release that gives questions a new field changes no document that was kept."""
    assert plain(Board("x", [Panel("y", QUERY)])) == {
        "title": "x",
        "panels": [{"title": "y", "query": {"metrics": ["page"]}}],
    }
    assert plain(SavedQuestion("x", QUERY))["query"] == {"metrics": ["page"]}


def test_a_file_says_boards_questions_and_notes(tmp_path: Path) -> None:
    path = tmp_path / "boards.toml"
    path.write_text(FILE, encoding="utf-8")

    file = read_file(str(path))

    question, words = file.boards["release"].panels
    assert question.query
    assert question.query.verb == "trend"
    assert words.text == "Look here first.\n\nThen ask the team."
    assert file.boards["release"].metrics == question.metrics
    assert file.questions["top"].query == QUERY
    assert file.notes == [Note("2026-11-20", "2.4 out", url="https://example.org/2.4")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("schema = 2", "schema"),
        ("", "schema"),
        ("schema = 1\nboard = 3", "known are"),
        ("schema = 1\n[boards.'A b']\ntitle = 'x'", "boards: names must be"),
        ("schema = 1\n[boards.a]\ntitle = ''", "boards.a.title"),
        ("schema = 1\n[boards.a]\ntitle = 'x'\npanels = [{title = 'y'}]", "a query"),
        (
            "schema = 1\n[boards.a]\ntitle = 'x'\n"
            "panels = [{title = 'y', query = {metrics = ['m'], verbs = 'trend'}}]",
            "panels",
        ),
        ("schema = 1\n[[notes]]\nat = 2026-02-03", "text"),
        ("schema = 1\n[[notes]]\nat = 'soon'\ntext = 'x'", "notes.0.at"),
        ("schema = [", "TOML"),
        (
            "schema = 1\n[boards.a]\ntitle = 'x'\npanels = ["
            + "{title='y', query={metrics=['m']}}," * (MAX_PANELS + 1)
            + "]",
            "panels",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "boards.toml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ConfigError, match=r"^HEARSAY_BOARDS=") as refused:
        read_file(str(path))

    assert said in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^HEARSAY_BOARDS=.*none\.toml: cannot be read"):
        read_file(str(tmp_path / "none.toml"))
