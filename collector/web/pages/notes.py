"""Notes and releases: what happened on a day, to be seen on every time axis that it is about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue
from msgspec import Struct

from ...core.credentials import ASK, VIEW
from ...core.errors import CollectorError, ForbiddenError, QueryError
from ...workspace.documents import Document, Note
from ...workspace.notes import is_planned, readable
from ...workspace.shelf import app_of, matching, place_of
from ..api.openapi import in_query
from ..auth import reader, scope, visible, writer
from ..forms import fault_of, form_of
from ..services import services
from .choices import require_known
from .documents import HERE, MOST_SHOWN, may_write, save_form
from .layout import shown

blueprint = Blueprint("notes", __name__)

_SEARCH: Final = in_query("q", {"type": "string"}, "Words of a note, a metric or a day.")
_LABELS: Final = {"at": "Day", "text": "Text", "about": "About", "app": "About", "url": "Link"}


class NoteForm(Struct, forbid_unknown_fields=True):
    """What the form of a note sends; ``about`` is an app, a metric, or "" for all."""

    at: str
    text: str
    about: str = ""
    url: str = ""


@blueprint.get("/notes")
@scope(VIEW, page=True)
def notes_page() -> ResponseReturnValue:
    """List the notes, the last day first, with a form for another."""
    require_known(request.args, (_SEARCH,))
    return _list(request.args.get("q", ""))


def _list(
    words: str, typed: NoteForm | None = None, error: CollectorError | None = None
) -> ResponseReturnValue:
    """Return the page of the notes that match *words*.

    Args: typed: a note that was not kept, because of *error*.
    """
    notes, now = matching(readable_notes(), words), services().clock()
    return shown(
        "notes.html",
        error.status if error else 200,
        here=HERE,
        typed=typed,
        fault=fault_of(error, _LABELS),
        q=words,
        total=len(notes),
        most=MOST_SHOWN,
        notes=[(note, is_planned(note.content, now)) for note in notes[:MOST_SHOWN]],
        today=datetime.fromtimestamp(now, UTC).date().isoformat(),
        metrics=list(visible()),
        own_apps=visible().apps,
        may_write=may_write(),
    )


@blueprint.post("/notes")
@scope(ASK, page=True)
def new_note() -> ResponseReturnValue:
    """Keep a note."""
    form = form_of(NoteForm)

    def save() -> str:
        keep(_note_of(form))
        return url_for("notes.notes_page")

    return save_form(save, lambda error: _list("", form, error))


def _note_of(form: NoteForm) -> Note:
    """Return the note in *form*.  Raises QueryError: it is about neither a metric nor an app."""
    kind, _, name = form.about.partition(":")
    if kind not in ("", "app", "metric"):
        raise QueryError("about", "must be app:<name>, metric:<name>, or nothing for all")
    return Note(
        at=form.at,
        text=form.text,
        metric=name if kind == "metric" else "",
        app=name if kind == "app" else "",
        url=form.url,
    )


def keep(note: Note) -> Document[Note]:
    """Keep *note*, of the app of its metric, or of the only one that the writer may see.

    Raises: QueryError, UnknownMetricError, ForbiddenError: it is about what is not the writer's.
    """
    view = visible()
    about = [note.metric] if note.metric else []
    app = (not note.metric and note.app) or app_of(about, view, services().catalog)
    if not app and view is not services().catalog:
        raise QueryError("app", f"must be one of {', '.join(view.apps) or 'none'}")
    if app and app not in view.apps:
        raise QueryError("app", f"must be one of {', '.join(view.apps) or 'none'}")
    if reader().metrics is not None and not note.metric:
        raise ForbiddenError("this token is for some metrics only: name one of them in the note")
    metric = (
        note.metric and services().catalog.metric("/".join(place_of(view, note.metric))).address
    )
    note = Note(at=note.at, text=note.text, metric=metric, app=app, url=note.url)
    return services().workspace.notes.add(note, writer())


def readable_notes() -> list[Document[Note]]:
    """Return the notes that the visitor may see, the last day first."""
    shared = services()
    return readable(shared.workspace.notes.documents(), visible(), shared.catalog)
