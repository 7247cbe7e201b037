"""Change a board: its texts, the order of its panels, what it was before; delete and restore."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from flask import Blueprint, redirect, request, url_for
from flask.typing import ResponseReturnValue
from msgspec import Struct, field

from ...core.credentials import ASK
from ...core.errors import ChangedDocumentError, QueryError, UnknownDocumentError
from ...query.options import as_json
from ...workspace.documents import Board, Document, Panel, SavedQuestion
from ...workspace.shelf import Shelf, app_of
from ..auth import scope, visible, writer
from ..forms import LARGE_FORM, FormFault, fault_of, form_of, number_of
from ..services import services
from .boards import (
    HERE,
    SEE_OTHER,
    board_of,
    is_readable,
    list_of_boards,
    may_write,
    require_may_delete,
)
from .choices import require_known
from .layout import shown, wants_page

blueprint = Blueprint("board_edit", __name__)

_EDIT: Final = "board_edit.edit_page"
_LABELS: Final = {"title": "Title", "group": "Group", "about": "Description"}


class NewForm(Struct, forbid_unknown_fields=True):
    """What the form of a new board sends."""

    title: str


class EditForm(Struct, forbid_unknown_fields=True):
    """What the form of a board sends: of each panel a title and a place, in the order shown."""

    version: str
    title: str
    group: str = ""
    about: str = ""
    panel: list[str] = field(default_factory=list)  # titles
    place: list[str] = field(default_factory=list)
    wide: list[str] = field(default_factory=list)  # numbers of panels, from 1
    remove: list[str] = field(default_factory=list)  # the same


class VersionForm(Struct, forbid_unknown_fields=True):
    """What a button sends that acts on the version that was shown."""

    version: str


class RestoreForm(Struct, forbid_unknown_fields=True):
    """What the button of an older version sends."""

    version: str
    wanted: str


@blueprint.post("/boards")
@scope(ASK, page=True)
def new_board() -> ResponseReturnValue:
    """Begin a board without panels."""
    form = form_of(NewForm)
    board = Board(form.title, app=app_of((), visible(), services().catalog))
    try:
        document = services().workspace.boards.add(board, writer())
    except QueryError as error:
        if not wants_page():
            raise
        return list_of_boards("", typed=form.title, fault=fault_of(error, _LABELS))
    return redirect(url_for(_EDIT, key=document.name), SEE_OTHER)


@blueprint.get("/board/<key>/edit")
@scope(ASK, page=True)
def edit_page(key: str) -> ResponseReturnValue:
    """Show the form of a board, and what it was before."""
    require_known(request.args)
    return _form(board_of(key))


@blueprint.post("/board/<key>/edit")
@scope(ASK, page=True)
def edit(key: str) -> ResponseReturnValue:
    """Keep what the form of a board says."""
    form = form_of(EditForm, LARGE_FORM)
    document, version = board_of(key), number_of(form.version, "version")
    try:
        _save(document, version, form)
    except (ChangedDocumentError, QueryError) as error:
        if not wants_page():
            raise
        return _form(board_of(key), form, error)
    return redirect(url_for("boards.board_page", key=key), SEE_OTHER)


@blueprint.post("/board/<key>/delete")
@scope(ASK, page=True)
def delete(key: str) -> ResponseReturnValue:
    """Delete a board; it can be restored."""
    version = number_of(form_of(VersionForm).version, "version")
    boards = services().workspace.boards
    require_may_delete(board_of(key))
    boards.delete(key, version, writer())
    return redirect(url_for("board_edit.deleted_page"), SEE_OTHER)


@blueprint.post("/board/<key>/restore")
@scope(ASK, page=True)
def restore(key: str) -> ResponseReturnValue:
    """Let a board be again what it was in an earlier version."""
    form, boards = form_of(RestoreForm), services().workspace.boards
    version, wanted = number_of(form.version, "version"), number_of(form.wanted, "wanted")
    now, *before = boards.document(key), *boards.history(key)
    restored = (each for each in before if each.version == wanted)
    if not all(is_readable(each.content) for each in (now, *restored)):
        raise UnknownDocumentError("board")
    boards.restore(key, version, wanted, writer())
    return redirect(url_for("boards.board_page", key=key), SEE_OTHER)


@blueprint.post("/question/<key>/delete")
@scope(ASK, page=True)
def delete_question(key: str) -> ResponseReturnValue:
    """Delete a saved question; it can be restored."""
    version, questions = number_of(form_of(VersionForm).version, "version"), _questions()
    if not is_readable(questions.document(key).content):
        raise UnknownDocumentError("question")
    require_may_delete(questions.document(key))
    questions.delete(key, version, writer())
    return redirect(url_for("board_edit.deleted_page"), SEE_OTHER)


@blueprint.post("/question/<key>/restore")
@scope(ASK, page=True)
def restore_question(key: str) -> ResponseReturnValue:
    """Let a deleted question be in the list again."""
    version, questions = number_of(form_of(VersionForm).version, "version"), _questions()
    if not is_readable(questions.document(key).content):
        raise UnknownDocumentError("question")
    questions.restore(key, version, version, writer())
    return redirect(url_for(HERE), SEE_OTHER)


@blueprint.get("/boards/deleted")
@scope(ASK, page=True)
def deleted_page() -> ResponseReturnValue:
    """List the boards and questions that were deleted, to be restored."""
    require_known(request.args)
    workspace = services().workspace
    return shown(
        "deleted.html",
        here=HERE,
        boards=[board for board in workspace.boards.deleted() if is_readable(board.content)],
        questions=[q for q in workspace.questions.deleted() if is_readable(q.content)],
        may_write=may_write(),
    )


def _questions() -> Shelf[SavedQuestion]:
    return services().workspace.questions


def _save(document: Document[Board], version: int, form: EditForm) -> None:
    """Keep what *form* says in place of *version*.  Raises as ``Shelf.replace``."""
    if document.version != version:
        raise ChangedDocumentError("boards")
    board = msgspec.structs.replace(
        document.content,
        title=form.title,
        group=form.group,
        about=form.about,
        panels=list(_panels(document.content.panels, form)),
    )
    services().workspace.boards.replace(document.name, version, board, writer())


def _form(
    document: Document[Board],
    form: EditForm | None = None,
    error: ChangedDocumentError | QueryError | None = None,
) -> ResponseReturnValue:
    """Return the form of a board; one that was not kept with what was typed, and why.

    What was typed of panels is shown again where the board still asks the same questions.
    """
    shelf, board = services().workspace.boards, document.content
    history = [before for before in shelf.history(document.name) if is_readable(before.content)]
    read = next((b for b in history if form and str(b.version) == form.version), document)
    before, now = ([panel.query for panel in each.content.panels] for each in (read, document))
    is_same = form is not None and before == now and len(now) == len(form.panel) == len(form.place)
    fields = [(p.title, str(i), p.wide, False) for i, p in enumerate(board.panels, 1)]
    if form and is_same:
        fields = [
            (form.panel[i], form.place[i], str(i + 1) in form.wide, str(i + 1) in form.remove)
            for i in range(len(now))
        ]
    return shown(
        "board_edit.html",
        200 if error is None else 409 if isinstance(error, ChangedDocumentError) else 400,
        here=HERE,
        board=document,
        typed=form or board,
        panels=[
            (*field, url_for("ask.ask_page", q=as_json(panel.query)))
            for field, panel in zip(fields, board.panels, strict=True)
        ],
        is_changed=isinstance(error, ChangedDocumentError),
        is_same=is_same,
        fault=fault_of(error, _LABELS) if error else FormFault("", ""),
        history=history,
    )


def _panels(panels: Sequence[Panel], form: EditForm) -> Iterator[Panel]:
    """Yield the panels that stay, with the titles of *form*, by their places."""
    if not len(panels) == len(form.panel) == len(form.place):
        raise QueryError("panel", "must have a title and a place for each panel of the board")
    gone, wide = set(form.remove), set(form.wide)
    changed = []
    for number, panel in enumerate(panels, 1):
        place = number_of(form.place[number - 1], "place")
        title, is_wide = form.panel[number - 1], str(number) in wide
        renewed = msgspec.structs.replace(panel, title=title, wide=is_wide)
        if str(number) not in gone:
            # One moved up to a place comes before what is there, and one moved down after it.
            moved = (place > number) - (place < number)
            changed.append(((place, moved, number), renewed))
    yield from (panel for _, panel in sorted(changed, key=lambda entry: entry[0]))
