"""Change a board: its texts, the order of its panels, and what it was before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue
from msgspec import Struct, field

from ...core.credentials import ASK
from ...core.errors import ChangedDocumentError, CollectorError, QueryError
from ...query.options import as_json
from ...workspace.documents import Board, Document, Panel
from ..auth import scope, writer
from ..forms import LARGE_FORM, fault_of, form_of, number_of
from ..services import services
from .boards import LABELS, board_of
from .choices import require_known
from .documents import HERE, readable, save_form
from .layout import shown

blueprint = Blueprint("board_edit", __name__)


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
    return save_form(
        lambda: _save(document, version, form), lambda error: _form(board_of(key), form, error)
    )


def _save(document: Document[Board], version: int, form: EditForm) -> str:
    """Keep what *form* says in place of *version*; return the board's address.

    Raises: as ``Shelf.replace``.
    """
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
    return url_for("boards.board_page", key=document.name)


def _form(
    document: Document[Board],
    form: EditForm | None = None,
    error: CollectorError | None = None,
) -> ResponseReturnValue:
    """Return the form of a board; one that was not kept with what was typed, and why.

    What was typed of panels is shown again where the board still asks the same questions.
    """
    shelf, board = services().workspace.boards, document.content
    history = readable(shelf.history(document.name))
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
        error.status if error else 200,
        here=HERE,
        board=document,
        typed=form or board,
        panels=[
            (*field, url_for("ask.ask_page", q=as_json(panel.query)))
            for field, panel in zip(fields, board.panels, strict=True)
        ],
        is_changed=isinstance(error, ChangedDocumentError),
        is_same=is_same,
        fault=fault_of(error, LABELS),
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
