"""Boards: questions that are looked at together; the list of them, one of them, and pinning."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

import msgspec
from flask import Blueprint, redirect, request, url_for
from flask.typing import ResponseReturnValue
from msgspec import Struct

from ...core.credentials import ASK, EVERY_APP, MANAGE, VIEW
from ...core.errors import ForbiddenError, QueryError, UnknownDocumentError
from ...query import Query, read
from ...query.options import as_json
from ...workspace.documents import MAX_PANELS, Board, Document, SavedQuestion
from ...workspace.documents import Panel as BoardPanel
from ...workspace.shelf import app_of, is_visible, knows, place_of
from ..api.openapi import in_path, in_query
from ..auth import author, reader, scope, visible, writer
from ..forms import LARGE_FORM, FormFault, fault_of, form_of
from ..services import services
from .choices import WORDS, Choices, choices_of, require_known
from .compare import with_periods
from .layout import RANGE_PARAMETERS, shown, wants_page
from .metric import BEFORE_PARAMETER, leads_of
from .panels import PERIODS, Answers, Panel, PanelRequest
from .remarks import with_ranking

blueprint = Blueprint("boards", __name__)

HERE: Final = "boards.boards_page"  # what the navigation marks
NEW: Final = "new"  # the choice of a board that is not there yet
QUESTIONS: Final = "questions"  # the choice of no board: the list of saved questions
MOST_SHOWN: Final = 200  # boards of the list; the search finds the others
SEE_OTHER: Final = 303
NAME: Final = in_path("key", "^[a-z0-9][a-z0-9-]{0,63}$", "The name in a board's address.")
_EDIT: Final = "Edit the board to change this question or to remove its panel."
_TEXT: Final = {"type": "string"}
_SEARCH: Final = in_query("q", _TEXT, "Words of a title, a group or an author.")
_SHOWN: Final = (*RANGE_PARAMETERS, BEFORE_PARAMETER)
_PIN: Final = (
    in_query("q", _TEXT, "The question, in JSON."),
    in_query("title", _TEXT, "How its panel is called."),
)


class PinForm(Struct, forbid_unknown_fields=True):
    """What the form sends that pins a question."""

    q: str
    title: str
    board: str  # a name, NEW or QUESTIONS
    new: str = ""  # the title of a new board


@blueprint.get("/boards")
@scope(VIEW, page=True)
def boards_page() -> ResponseReturnValue:
    """List boards by group, and saved questions."""
    require_known(request.args, (_SEARCH,))
    return list_of_boards(request.args.get("q", ""))


def list_of_boards(
    search: str, typed: str = "", fault: FormFault | None = None
) -> ResponseReturnValue:
    """Return the page of the boards that match *search*.

    Args: typed: the title of a new board that was not kept, because of *fault*.
    """
    words = search.casefold().split()
    boards = sorted(
        _matching(readable_boards(), words),
        key=lambda board: (board.content.group.casefold(), board.content.title.casefold()),
    )
    questions = _matching(_readable_questions(), words)
    return shown(
        "boards.html",
        400 if fault else 200,
        here=HERE,
        q=search,
        typed=typed,
        fault=fault or FormFault("", ""),
        total=len(boards),
        most=MOST_SHOWN,
        groups=[
            (name, list(of_group))
            for name, of_group in groupby(boards[:MOST_SHOWN], key=lambda b: b.content.group)
        ],
        questions=[
            (question, url_for("ask.ask_page", q=as_json(question.content.query)))
            for question in questions[:MOST_SHOWN]
        ],
        may_write=may_write(),
    )


@blueprint.get("/board/<key>")
@scope(VIEW, page=True)
def board_page(key: str) -> ResponseReturnValue:
    """Show the answers to the questions of a board, for their own time or another."""
    require_known(request.args, _SHOWN)
    document, choices = board_of(key), choices_of(request.args)
    return shown(
        "board.html",
        here=HERE,
        board=document,
        panels=answered(document.content.panels, Answers(), choices),
        chosen=choices,
        earlier=PERIODS,
        ranges={"": "as saved", **WORDS},
        may_write=may_write(),
        share=url_for("shared.share_page", board=key),
    )


@blueprint.get("/pin")
@scope(ASK, page=True)
def pin_page() -> ResponseReturnValue:
    """Ask on which board a question is to be pinned, and how its panel is called."""
    require_known(request.args, _PIN)
    query = known_question(request.args.get("q", ""))
    return _pin_form(query, request.args.get("title", "")[:120] or "Untitled")


def _pin_form(
    query: Query, title: str, board: str = "", new: str = "", fault: FormFault | None = None
) -> ResponseReturnValue:
    """Return the form that pins *query*.

    Args: title, board, new: what was typed and not kept, because of *fault*.
    """
    boards = [board for board in readable_boards() if not board.is_from_file]
    return shown(
        "pin.html",
        400 if fault else 200,
        here=HERE,
        question=as_json(query),
        title=title,
        chosen=board,
        typed=new,
        fault=fault or FormFault("", ""),
        boards=sorted(boards, key=lambda board: board.content.title.casefold())[:MOST_SHOWN],
        new=NEW,
        questions=QUESTIONS,
    )


@blueprint.post("/pin")
@scope(ASK, page=True)
def pin() -> ResponseReturnValue:
    """Add a question to a board, to a new one, or to the saved questions."""
    form = form_of(PinForm, LARGE_FORM)
    query = known_question(form.q)
    try:
        return redirect(_pinned(query, form), SEE_OTHER)
    except QueryError as error:
        if not wants_page():
            raise
        fault = _fault_of_pin(error, form)
        return _pin_form(query, form.title, form.board, form.new, fault)


def _fault_of_pin(error: QueryError, form: PinForm) -> FormFault:
    """Return the fault of a form, at the title of the panel or of the new board."""
    place, rule = error.place, error.rule
    if place == "title" and form.board == NEW and form.new:
        return FormFault("new", f"Title of a new board {rule}.")
    is_title = place == "title" or place.endswith(".title")
    return FormFault("title", f"Title of the panel {rule}.") if is_title else fault_of(error, {})


def _pinned(query: Query, form: PinForm) -> str:
    """Keep *query* where *form* says, and return the address of that.  Raises QueryError."""
    workspace, names = services().workspace, tuple(query.metrics)
    app = app_of(names, visible(), services().catalog)
    if form.board == QUESTIONS:
        workspace.questions.add(SavedQuestion(form.title, query, app), writer())
        return url_for(HERE)
    panel = BoardPanel(form.title, query)
    if form.board == NEW:
        title = form.new or form.title
        document = workspace.boards.add(Board(title, [panel], app=app), writer())
    else:
        document = board_of(form.board)
        board = with_panel(document.content, panel)
        workspace.boards.replace(document.name, document.version, board, writer())
    return url_for("boards.board_page", key=document.name)


def with_panel(board: Board, panel: BoardPanel) -> Board:
    """Return *board* with one panel more at its end, if it has none like it.

    Raises: QueryError: it is full.
    """
    if panel in board.panels:
        return board
    if len(board.panels) >= MAX_PANELS:
        raise QueryError("board", f"has {MAX_PANELS} panels, as many as fit; begin another board")
    return msgspec.structs.replace(board, panels=[*board.panels, panel])


def answered(
    panels: Iterable[BoardPanel], answers: Answers, choices: Choices | None = None
) -> list[Panel]:
    """Return *panels* with their answers; one that has none says why, and costs no other."""
    panel_requests = (
        PanelRequest(
            f"panel-{number}",
            panel.title,
            _timed(panel.query, choices),
            wide=panel.wide,
            against=choices.against if choices else "",
        )
        for number, panel in enumerate(panels, 1)
    )
    return [_answered(panel_request, answers) for panel_request in panel_requests]


def _answered(panel_request: PanelRequest, answers: Answers) -> Panel:
    unknown = [name for name in panel_request.query.metrics if not knows(answers.catalog, name)]
    if unknown:
        said = f"{', '.join(unknown)}: no registry has a metric of this name any more."
        return Panel(panel_request, None, said if answers.is_shared else f"{said} {_EDIT}")
    if answers.is_shared:  # a visitor with only the link cannot open the pages of rows
        return with_ranking(with_periods(answers.panel(panel_request), answers))
    question = as_json(panel_request.query)
    csv = url_for("ask.ask_file", kind="csv", q=question, before=panel_request.against or None)
    panel_request = replace(panel_request, link=leads_of(panel_request.query, answers.catalog))
    panel = answers.panel(panel_request, csv if answers.may_ask else "")
    if panel.fault and _is_gone(panel_request.query, answers):
        return replace(panel, fault=f"{panel.fault}. {_EDIT}")
    return with_ranking(with_periods(panel, answers))


def _is_gone(query: Query, answers: Answers) -> bool:
    """Return whether *query*, which could be asked when it was kept, cannot be asked any more."""
    try:
        answers.plan(query)
    except QueryError:
        return True
    return False


def _timed(query: Query, choices: Choices | None) -> Query:
    """Return *query* over the days that were chosen, if any were."""
    if choices is None or choices.date_range is None:
        return query
    return msgspec.structs.replace(query, date_range=choices.date_range)


def known_question(text: str) -> Query:
    """Return the question in *text*, which is JSON, if the visitor can ask it.

    Raises: QueryError, UnknownMetricError.
    """
    query, answers = read(text.encode()), Answers()
    answers.plan(query)
    # By an address that is right for everybody, also for who sees several apps.
    places = [place_of(answers.catalog, name) for name in query.metrics]
    metrics = [services().catalog.metric("/".join(place)).address for place in places]
    return msgspec.structs.replace(query, metrics=metrics)


def board_of(name: str) -> Document[Board]:
    """Return a board that the visitor may see.  Raises UnknownDocumentError."""
    document = services().workspace.boards.document(name)
    if document.deleted or not is_readable(document.content):
        raise UnknownDocumentError("board")
    return document


def readable_boards() -> list[Document[Board]]:
    """Return the boards that the visitor may see."""
    return [b for b in services().workspace.boards.documents() if is_readable(b.content)]


def _readable_questions() -> list[Document[SavedQuestion]]:
    """Return the saved questions that the visitor may see, by title."""
    questions = services().workspace.questions.documents()
    readable = [question for question in questions if is_readable(question.content)]
    return sorted(readable, key=lambda question: question.content.title.casefold())


def is_readable(content: Any) -> bool:
    """Return whether the visitor may see *content*."""
    return is_visible(content, visible(), services().catalog)


def may_write() -> bool:
    """Return whether the visitor may keep something."""
    return ASK in reader().scopes


def _may_delete(document: Document[Any]) -> bool:
    """Return whether the visitor began *document* or owns its app, and so may delete it."""
    who, app = reader(), document.content.app or EVERY_APP
    if MANAGE in who.scopes and who.covers(app, "", MANAGE):
        return True
    return document.began == author().id


def require_may_delete(document: Document[Any]) -> None:
    """Raise ForbiddenError unless the visitor may delete *document*."""
    if not _may_delete(document):
        raise ForbiddenError("only who began this, or an owner of its app, may delete it")


def _matching(documents: Iterable[Document[Any]], words: list[str]) -> list[Document[Any]]:
    """Return the *documents* that hold all *words*."""
    return [document for document in documents if all(word in _text_of(document) for word in words)]


def _text_of(document: Document[Any]) -> str:
    content = document.content
    texts = (content.title, getattr(content, "group", ""), document.author, *content.metrics)
    return " ".join(texts).casefold()
