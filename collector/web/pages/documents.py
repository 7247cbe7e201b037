"""Documents of any kind: what the visitor may see of them; delete, restore, and the deleted ones.

A kind of documents is a line of ``KINDS``; what it looks like is in the module of its page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeVar

from flask import Blueprint, redirect, request, url_for
from flask.typing import ResponseReturnValue
from msgspec import Struct
from werkzeug.exceptions import NotFound

from ...core.credentials import ASK, EVERY_APP, MANAGE
from ...core.errors import (
    ChangedDocumentError,
    CollectorError,
    ForbiddenError,
    QueryError,
    UnknownDocumentError,
)
from ...workspace.documents import Content, Document
from ...workspace.shelf import Shelf, is_visible
from ..auth import author, reader, scope, visible, writer
from ..forms import form_of, number_of
from ..services import services
from .choices import require_known
from .layout import shown, wants_page

blueprint = Blueprint("documents", __name__)

HERE: Final = "boards.boards_page"  # what the navigation marks
MOST_SHOWN: Final = 200  # documents of a list; the search finds the others
_SEE_OTHER: Final = 303
C = TypeVar("C", bound=Content)


class VersionForm(Struct, forbid_unknown_fields=True):
    """What a button sends that acts on the version that was shown."""

    version: str
    wanted: str = ""  # the version to be restored; "" for this one


class Kind(NamedTuple):
    """What differs between kinds of documents."""

    title: str  # of a list of them
    page: Callable[[str], str]  # from a name to the address where it is seen
    is_restored: bool = True  # a deleted one may come back, and not every analyst may delete it


KINDS: Final = {  # by the name of their shelf
    "boards": Kind("Boards", lambda name: url_for("boards.board_page", key=name)),
    "questions": Kind("Saved questions", lambda _: url_for("boards.boards_page")),
    "notes": Kind("Notes", lambda _: url_for("notes.notes_page")),
    "links": Kind("Shared links", lambda _: url_for("shared.share_page"), is_restored=False),
}


@blueprint.post("/<shelf>/<key>/delete")
@scope(ASK, page=True)
def delete(shelf: str, key: str) -> ResponseReturnValue:
    """Delete a document; a link opens nothing any more, others can be restored."""
    version = number_of(form_of(VersionForm).version, "version")
    documents, kind = shelf_of(shelf), KINDS[shelf]
    document = document_of(documents, key)
    if kind.is_restored:
        _require_may_delete(document)
    documents.delete(key, version, writer())
    return redirect_to(url_for("documents.deleted_page") if kind.is_restored else kind.page(key))


@blueprint.post("/<shelf>/<key>/restore")
@scope(ASK, page=True)
def restore(shelf: str, key: str) -> ResponseReturnValue:
    """Let a document be again what it was in an earlier version, or before it was deleted."""
    form = form_of(VersionForm)
    version = number_of(form.version, "version")
    wanted = number_of(form.wanted or form.version, "wanted")
    documents, kind = shelf_of(shelf), KINDS[shelf]
    now, *before = documents.document(key), *documents.history(key)
    restored = (each for each in before if each.version == wanted)
    if not kind.is_restored or not all(is_readable(each.content) for each in (now, *restored)):
        raise UnknownDocumentError(shelf)
    documents.restore(key, version, wanted, writer())
    return redirect_to(kind.page(key))


@blueprint.get("/boards/deleted")
@scope(ASK, page=True)
def deleted_page() -> ResponseReturnValue:
    """List the documents that were deleted, to be restored."""
    require_known(request.args)
    return shown(
        "deleted.html",
        here=HERE,
        kinds=[
            (shelf, kind.title, readable(shelf_of(shelf).deleted())[:MOST_SHOWN])
            for shelf, kind in KINDS.items()
            if kind.is_restored
        ],
        may_write=may_write(),
    )


def save_form(
    save: Callable[[], str], show: Callable[[CollectorError], ResponseReturnValue]
) -> ResponseReturnValue:
    """Save what a form holds, and lead to the address that *save* returns.

    A browser whose form is refused is shown it again by *show*.
    Raises: ChangedDocumentError, QueryError: a program is refused.
    """
    try:
        return redirect_to(save())
    except (ChangedDocumentError, QueryError) as error:
        if not wants_page():
            raise
        return show(error)


def shelf_of(name: str) -> Shelf[Any]:
    """Return the shelf called *name*.  Raises NotFound."""
    if name not in KINDS:
        raise NotFound
    shelf: Shelf[Any] = getattr(services().workspace, name)
    return shelf


def document_of(shelf: Shelf[C], name: str) -> Document[C]:
    """Return a document that the visitor may see.  Raises UnknownDocumentError."""
    document = shelf.document(name)
    if document.deleted or not is_readable(document.content):
        raise UnknownDocumentError(shelf.kind)
    return document


def readable(documents: Iterable[Document[C]]) -> list[Document[C]]:
    """Return the *documents* that the visitor may see."""
    return [document for document in documents if is_readable(document.content)]


def is_readable(content: Content) -> bool:
    """Return whether the visitor may see *content*."""
    return is_visible(content, visible(), services().catalog)


def may_write() -> bool:
    """Return whether the visitor may keep something."""
    return ASK in reader().scopes


def _require_may_delete(document: Document[Any]) -> None:
    """Raise ForbiddenError unless the visitor began *document* or is an owner of its app."""
    who, app = reader(), document.content.app or EVERY_APP
    is_owner = MANAGE in who.scopes and who.covers(app, "", MANAGE)
    if not is_owner and document.began != author().id:
        raise ForbiddenError("only who began this, or an owner of its app, may delete it")


def redirect_to(address: str) -> ResponseReturnValue:
    """Lead a browser that has sent a form to the page at *address*."""
    return redirect(address, _SEE_OTHER)
