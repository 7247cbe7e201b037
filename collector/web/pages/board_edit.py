"""Change a board: its texts, the order of its panels, and what it was before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue
from msgspec import Struct, field

from ...core.credentials import ASK
from ...core.errors import ChangedDocumentError, CollectorError, QueryError
from ...query.options import as_json
from ...workspace.documents import MAX_PANELS, MAX_WORDS, Board, Document, Panel
from ..auth import scope, writer
from ..forms import LARGE_FORM, fault_of, form_of, number_of
from ..services import services
from .boards import LABELS, board_of, with_panel
from .choices import require_known
from .documents import HERE, readable, save_form
from .layout import shown

blueprint = Blueprint("board_edit", __name__)

_LABELS: Final = LABELS | {
    f"panels.{i}.{part}": f"{part.capitalize()} of panel {i + 1}"
    for i in range(MAX_PANELS)
    for part in ("title", "text")
}


class EditForm(Struct, forbid_unknown_fields=True):
    """What the form of a board sends: of each panel a title and a place, in the order shown.

    Of a panel of text its text, too, and perhaps a new one.
    """

    version: str
    title: str
    group: str = ""
    about: str = ""
    panel: list[str] = field(default_factory=list)  # titles
    place: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)  # of the panels that have one
    wide: list[str] = field(default_factory=list)  # numbers of panels, from 1
    remove: list[str] = field(default_factory=list)  # the same
    new_title: str = ""
    new_text: str = ""  # in a panel of its own, after the others


class PanelField(NamedTuple):
    """The fields of a panel as they are shown, with what was typed."""

    panel: Panel
    place: str
    is_removed: bool = False

    @property
    def url(self) -> str:
        """The address of its question; "" of a text."""
        query = self.panel.query
        return url_for("ask.ask_page", q=as_json(query)) if query else ""


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
    if form.new_title or form.new_text.strip():
        board = with_panel(board, Panel(form.new_title, text=form.new_text))
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
    before, now = ([(p.query, p.text) for p in each.content.panels] for each in (read, document))
    typed = _typed(board.panels, form) if form and before == now else None
    fields = [PanelField(panel, str(i)) for i, panel in enumerate(board.panels, 1)]
    if form and typed:
        fields = [
            PanelField(panel, place, str(i) in form.remove)
            for i, (panel, place) in enumerate(zip(typed, form.place, strict=True), 1)
        ]
    return shown(
        "board_edit.html",
        error.status if error else 200,
        here=HERE,
        board=document,
        typed=form or board,
        fields=fields,
        is_changed=isinstance(error, ChangedDocumentError),
        is_same=before == now,
        fault=fault_of(error, _LABELS),
        longest=MAX_WORDS,
        history=history,
    )


def _typed(panels: Sequence[Panel], form: EditForm) -> list[Panel]:
    """Return *panels* with what was typed of each in *form*.

    Raises: QueryError: it has not as many titles, places and texts.
    """
    texts = iter(form.text)
    count = len(panels), len(panels), sum(not panel.query for panel in panels)
    if count != (len(form.panel), len(form.place), len(form.text)):
        rule = "must have a title and a place for each panel of the board, and a text if it has one"
        raise QueryError("panel", rule)
    return [
        msgspec.structs.replace(
            panel,
            title=title,
            wide=str(number) in form.wide,
            text="" if panel.query else next(texts),
        )
        for number, (panel, title) in enumerate(zip(panels, form.panel, strict=True), 1)
    ]


def _panels(panels: Sequence[Panel], form: EditForm) -> Iterator[Panel]:
    """Yield the panels that stay, with what was typed in *form*, by their places."""
    changed = []
    for number, panel in enumerate(_typed(panels, form), 1):
        place = number_of(form.place[number - 1], "place")
        if str(number) not in form.remove:
            # One moved up to a place comes before what is there, and one moved down after it.
            moved = (place > number) - (place < number)
            changed.append(((place, moved, number), panel))
    yield from (panel for _, panel in sorted(changed, key=lambda entry: entry[0]))
