"""Boards: questions that are looked at together; the list of them, one of them, and pinning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from typing import Final, NamedTuple

import msgspec
from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue
from markupsafe import Markup
from msgspec import Struct

from client_sdk.core.errors import UnknownMetricError
from client_sdk.privacy.wording import counted

from ...core.credentials import ASK, VIEW
from ...core.errors import (
    BusyError,
    CollectorError,
    DamagedTallyError,
    ForbiddenError,
    QueryError,
    RefusedByStoreError,
)
from ...query import Query, Reader, read
from ...query.gate import Gate
from ...query.options import as_json
from ...rendering.charts import ChartOptions
from ...rendering.charts.spark import spark
from ...rendering.numbers import numbers_of
from ...rendering.possible import possible
from ...workspace.documents import MAX_PANELS, MAX_TITLE, Board, Document, SavedQuestion
from ...workspace.documents import Panel as BoardPanel
from ...workspace.shelf import app_of, knows, matching, place_of
from ..api.openapi import in_path, in_query
from ..auth import scope, visible, writer
from ..forms import LARGE_FORM, FormFault, fault_of, form_of
from ..services import services
from .choices import WORDS, Choices, choices_of, require_known
from .compare import with_periods
from .documents import HERE, MOST_SHOWN, document_of, may_write, readable, save_form
from .drawings import identifier
from .items import leads_of
from .layout import RANGE_PARAMETERS, shown
from .panels import BEFORE_PARAMETER, NOTHING, PERIODS, Answers, Panel, PanelRequest
from .remarks import with_ranking

blueprint = Blueprint("boards", __name__)

NEW: Final = "new"  # the choice of a board that is not there yet
_MOST_PICTURES: Final = 18  # boards whose first question is answered in the list
_UNITS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"))  # seconds
# Why a question has no answer.
NO_ANSWER: Final = (BusyError, ForbiddenError, QueryError, UnknownMetricError)
QUESTIONS: Final = "questions"  # the choice of no board: the list of saved questions
LABELS: Final = {"title": "Title", "group": "Group", "about": "Description"}  # of fields
NAME: Final = in_path("key", "^[a-z0-9][a-z0-9-]{0,63}$", "The name in a board's address.")
_EDIT: Final = "Edit the board to change this question or to remove its panel."
_TEXT: Final = {"type": "string"}
_SEARCH: Final = in_query("q", _TEXT, "Words of a title, a group or an author.")
_SHOWN: Final = (*RANGE_PARAMETERS, BEFORE_PARAMETER)
_PIN: Final = (
    in_query("q", _TEXT, "The question, in JSON."),
    in_query("title", _TEXT, "How its panel is called."),
)


class NewForm(Struct, forbid_unknown_fields=True):
    """What the form of a new board sends."""

    title: str


class PinForm(Struct, forbid_unknown_fields=True):
    """What the form sends that pins a question."""

    q: str
    title: str
    board: str  # a name, NEW or QUESTIONS
    new: str = ""  # the title of a new board


class BoardCard(NamedTuple):
    """A board as the list shows it."""

    board: Document[Board]
    changed: str  # how long ago, in words
    picture: Markup  # of the answer to its first question; empty if it has none


class _NoPlace(Gate):
    """Refuses every large question at once."""

    @contextmanager
    def place(self) -> Iterator[None]:
        raise BusyError("questions: this page asks none that are large; open the board")
        yield


class _QuickAnswers(Answers):
    """Answers to questions that are not large: a list waits for no others."""

    def __init__(self) -> None:
        super().__init__()
        shared = services()
        self._reader = Reader(shared.tallies, _NoPlace(), shared.pages)


@blueprint.get("/boards")
@scope(VIEW, page=True)
def boards_page() -> ResponseReturnValue:
    """List boards by group, and saved questions."""
    require_known(request.args, (_SEARCH,))
    return _list(request.args.get("q", ""))


@blueprint.post("/boards")
@scope(ASK, page=True)
def new_board() -> ResponseReturnValue:
    """Begin a board without panels."""
    form = form_of(NewForm)

    def save() -> str:
        board = Board(form.title, app=app_of((), visible(), services().catalog))
        document = services().workspace.boards.add(board, writer())
        return url_for("board_edit.edit_page", key=document.name)

    return save_form(save, lambda error: _list("", form.title, error))


def _list(search: str, typed: str = "", error: CollectorError | None = None) -> ResponseReturnValue:
    """Return the page of the boards that match *search*.

    Args: typed: the title of a new board that was not kept, because of *error*.
    """
    workspace = services().workspace
    boards = sorted(
        matching(readable(workspace.boards.documents()), search),
        key=lambda board: (board.content.group.casefold(), board.content.title.casefold()),
    )
    answers, now = _QuickAnswers(), services().clock()
    cards = [
        BoardCard(
            board,
            _ago(now - board.at),
            _picture(board, answers) if number < _MOST_PICTURES else NOTHING,
        )
        for number, board in enumerate(boards[:MOST_SHOWN])
    ]
    questions = sorted(
        matching(readable(workspace.questions.documents()), search),
        key=lambda question: question.content.title.casefold(),
    )
    return shown(
        "boards.html",
        error.status if error else 200,
        here=HERE,
        q=search,
        typed=typed,
        fault=fault_of(error, LABELS),
        total=len(boards),
        most=MOST_SHOWN,
        groups=[
            (name, list(of_group))
            for name, of_group in groupby(cards, key=lambda card: card.board.content.group)
        ],
        questions=[
            (question, url_for("ask.ask_page", q=as_json(question.content.query)))
            for question in questions[:MOST_SHOWN]
        ],
        may_write=may_write(),
    )


def _picture(board: Document[Board], answers: Answers) -> Markup:
    """Return a small picture of the answer to the first question of *board*, if there is one."""
    panel = next((panel for panel in board.content.panels if panel.query), None)
    if panel is None or panel.query is None:
        return NOTHING
    try:
        reply = answers.reply(panel.query)
    except (*NO_ANSWER, DamagedTallyError, RefusedByStoreError):
        return NOTHING
    rows = list(possible(reply.rows, reply.meta.chart))
    if not any(map(numbers_of, rows)):
        return NOTHING
    options = ChartOptions(identifier(board.name), styled=True)
    return Markup(spark(rows, panel.title, options))  # noqa: S704  # it escapes


def _ago(seconds: float) -> str:
    """Return how long ago something was, in words: "3 days ago"."""
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{counted(int(seconds // size), unit)} ago"
    return "just now"


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
    title = request.args.get("title", "")[:MAX_TITLE] or "Untitled"
    return _pin_form(query, PinForm("", title, ""))


def _pin_form(
    query: Query, form: PinForm, error: CollectorError | None = None
) -> ResponseReturnValue:
    """Return the *form* that pins *query*; one that was not kept, because of *error*, again."""
    documents = readable(services().workspace.boards.documents())
    boards = [board for board in documents if not board.is_from_file]
    return shown(
        "pin.html",
        error.status if error else 200,
        here=HERE,
        question=as_json(query),
        typed=form,
        fault=_fault_of_pin(error, form),
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
    return save_form(lambda: _pinned(query, form), lambda error: _pin_form(query, form, error))


def _fault_of_pin(error: CollectorError | None, form: PinForm) -> FormFault:
    """Return the fault of a form, at the title of the panel or of the new board."""
    if not isinstance(error, QueryError):
        return fault_of(error, {})
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
) -> list[Panel | BoardPanel]:
    """Return *panels* with their answers; one that has none says why, and costs no other.

    A panel of text is as it is.
    """
    against = choices.against if choices else ""
    return [
        _answered(
            PanelRequest(
                f"panel-{number}",
                panel.title,
                _timed(panel.query, choices),
                wide=panel.wide,
                against=against,
            ),
            answers,
        )
        if panel.query
        else panel
        for number, panel in enumerate(panels, 1)
    ]


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
    return document_of(services().workspace.boards, name)
