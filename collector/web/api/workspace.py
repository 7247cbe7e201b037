"""Boards with their answers, and notes, for programs: /v1/boards, /v1/notes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue
from msgspec import UNSET, Struct, UnsetType

from ...core.credentials import ASK, VIEW
from ...core.errors import QueryError, UnsupportedTypeError
from ...intake.wire import JSON
from ...query import Answer, Query
from ...query.options import fields_of
from ...workspace.documents import Board, Document, Note
from ...workspace.notes import is_planned
from ..auth import scope
from ..ingest import upload
from ..pages.boards import NAME, NO_ANSWER, board_of
from ..pages.documents import readable
from ..pages.notes import keep, readable_notes
from ..pages.panels import Answers
from ..services import services
from .openapi import Operation

blueprint = Blueprint("workspace", __name__)

_MOST_BYTES: Final = 8 * 1024  # of a note
_CREATED: Final = 201


class BoardSummary(Struct, forbid_unknown_fields=True):
    """A board without its answers."""

    name: str
    title: str
    group: str
    about: str
    author: str
    changed: str  # RFC 3339
    metrics: list[str]


class Boards(Struct, forbid_unknown_fields=True):
    """The boards that the token may see."""

    boards: list[BoardSummary]


class BoardPanel(Struct, forbid_unknown_fields=True):
    """One question of a board with its answer, or the reason why there is none; or a text."""

    title: str
    query: dict[str, Any] | UnsetType = UNSET
    text: str | UnsetType = UNSET
    answer: Answer | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class BoardAnswers(Struct, forbid_unknown_fields=True):
    """A board with its answers of now."""

    board: BoardSummary
    panels: list[BoardPanel]


class NoteDraft(Struct, forbid_unknown_fields=True):
    """A note to be kept."""

    at: str  # a day, such as 2026-11-20
    text: str
    metric: str = ""
    app: str = ""
    url: str = ""


class KeptNote(Struct, forbid_unknown_fields=True):
    """A note.  A planned one is of a day to come: charts show it from that day on."""

    name: str
    at: str
    text: str
    metric: str
    app: str
    url: str
    author: str
    planned: bool


class Notes(Struct, forbid_unknown_fields=True):
    """The notes that the token may see, the last day first."""

    notes: list[KeptNote]


@blueprint.get("/v1/boards")
@scope(VIEW)
@Operation(Boards)
def list_boards() -> ResponseReturnValue:
    """List the boards."""
    return _json(
        Boards([_summary(board) for board in readable(services().workspace.boards.documents())])
    )


@blueprint.get("/v1/boards/<key>")
@scope(VIEW)
@Operation(BoardAnswers, parameters=(NAME,), problems=(404,))
def answer_board(key: str) -> ResponseReturnValue:
    """Answer the questions of a board; one that has no answer says why."""
    document, answers = board_of(key), Answers()
    panels = []
    for panel in document.content.panels:
        if panel.query:
            panels.append(_answered(panel.title, panel.query, answers))
        else:
            panels.append(BoardPanel(panel.title, text=panel.text))
    return _json(BoardAnswers(_summary(document), panels))


def _answered(title: str, query: Query, answers: Answers) -> BoardPanel:
    shown = BoardPanel(title, fields_of(query))
    try:
        shown.answer = answers.reply(query)
    except NO_ANSWER as error:
        shown.reason = str(error)
    return shown


@blueprint.get("/v1/notes")
@scope(VIEW)
@Operation(Notes)
def list_notes() -> ResponseReturnValue:
    """List the notes and releases."""
    return _json(Notes([_kept(note) for note in readable_notes()]))


@blueprint.post("/v1/notes")
@scope(ASK)
@Operation(
    KeptNote, status=_CREATED, takes={JSON: NoteDraft}, problems=(400, 404, 408, 413, 415, 429)
)
def add_note() -> ResponseReturnValue:
    """Keep a note, such as a release."""
    if request.mimetype != JSON:
        raise UnsupportedTypeError(f"the body must be {JSON}")
    body = upload.read(request.stream, _MOST_BYTES)
    try:
        draft = msgspec.json.decode(body, type=NoteDraft)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        rule = "must be one JSON object with at and text, and perhaps metric, app and url"
        raise QueryError("body", rule) from None
    document = keep(Note(draft.at, draft.text, draft.metric, draft.app, draft.url))
    return _json(_kept(document), _CREATED)


def _summary(document: Document[Board]) -> BoardSummary:
    board = document.content
    return BoardSummary(
        name=document.name,
        title=board.title,
        group=board.group,
        about=board.about,
        author=document.author,
        changed=datetime.fromtimestamp(document.at, UTC).isoformat(),
        metrics=list(board.metrics),
    )


def _kept(document: Document[Note]) -> KeptNote:
    note = document.content
    return KeptNote(
        name=document.name,
        at=note.at,
        text=note.text,
        metric=note.metric,
        app=note.app,
        url=note.url,
        author=document.author,
        planned=is_planned(note, services().clock()),
    )


def _json(value: Struct, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, content_type=JSON)
