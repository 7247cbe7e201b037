"""Shared links: made and revoked by people, and opened by anyone with the address.

A link's questions and metrics were fixed when it was made.  Its page has no cookie, token or menu,
and leads nowhere else.
"""

from __future__ import annotations

from typing import Final

from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue
from msgspec import Struct

from ...core.credentials import ASK, OPEN
from ...core.errors import QueryError
from ...query.options import as_json
from ...workspace.documents import Document, Grant
from ...workspace.documents import Panel as BoardPanel
from ...workspace.links import DAYS
from ...workspace.shelf import app_of, knows
from .. import auth
from ..api.openapi import in_query
from ..auth import scope, visible, writer
from ..forms import LARGE_FORM, form_of, number_of
from ..services import services
from .boards import answered, board_of, known_question
from .choices import require_known
from .documents import HERE, MOST_SHOWN, readable, redirect_to
from .layout import OPENED, shown
from .panels import Answers

blueprint = Blueprint("shared", __name__)

_TEXT: Final = {"type": "string"}
_PARAMETERS: Final = (
    in_query("q", _TEXT, "One question, in JSON; or else:"),
    in_query("board", _TEXT, "The name of a board."),
    in_query("title", _TEXT, "How the question is called."),
)


class ShareForm(Struct, forbid_unknown_fields=True):
    """What the form of a link sends: a question or a board, and for how long."""

    days: str
    title: str = ""
    q: str = ""
    board: str = ""


@blueprint.get("/share")
@scope(ASK, page=True)
def share_page() -> ResponseReturnValue:
    """Ask for how long an answer or a board is to be shared, and list the links there are."""
    require_known(request.args, _PARAMETERS)
    board, q = request.args.get("board", ""), request.args.get("q", "")
    content = board_of(board).content if board else None
    title = content.title if content else request.args.get("title", "")[:120]
    if q:
        q = as_json(known_question(q))
    shared = services()
    links = readable(shared.workspace.links.documents())
    good = sorted(filter(shared.links.is_good, links), key=lambda link: -link.at)
    return shown(
        "share.html",
        here=HERE,
        board=board,
        q=q,
        title=title or "An answer",
        left_out=len(content.panels) - len(_opened(content.panels)) if content else 0,
        days=DAYS,
        good=[(link, _address(link)) for link in good[:MOST_SHOWN]],
        embed_origins=shared.config.embed_origins,
    )


@blueprint.post("/share")
@scope(ASK, page=True)
def share() -> ResponseReturnValue:
    """Make a link that opens one answer or one board for some days."""
    form, shared = form_of(ShareForm, LARGE_FORM), services()
    if bool(form.q) == bool(form.board):
        raise QueryError("form", "must hold a question as q, or the name of a board")
    if form.board:
        board = board_of(form.board).content
        title, panels, app, about = board.title, _opened(board.panels), board.app, board.about
        if not panels:
            raise QueryError("board", "has no panels to be shared; pin a question to it first")
    else:
        query = known_question(form.q)
        title, panels, about = form.title, [BoardPanel(form.title, query, wide=True)], ""
        app = app_of(query.metrics, visible(), shared.catalog)
    _, document = shared.links.share(
        title,
        panels,
        number_of(form.days, "days"),
        visible(),
        author=writer(),
        board=form.board,
        app=app,
        about=about,
    )
    return redirect_to(url_for("shared.share_page") + f"#{document.name}")


@blueprint.get("/shared/<address>")
@scope(OPEN)
def shared_page(address: str) -> ResponseReturnValue:
    """Show what a shared link opens, and nothing else."""
    require_known(request.args)
    shared = services()
    document, catalog = shared.links.open(address, shared.catalog)
    response = shown(
        "shared.html",
        grant=document.content,
        panels=answered(document.content.panels, Answers(catalog)),
    )
    response.headers["X-Robots-Tag"] = "noindex"
    return response


def _opened(panels: list[BoardPanel]) -> list[BoardPanel]:
    """Return the *panels* that a link can open: their metrics are still there."""
    view = visible()
    return [panel for panel in panels if all(knows(view, name) for name in panel.metrics)]


def _address(document: Document[Grant]) -> str:
    """Return the whole address of a link."""
    end = services().links.address(document)
    return auth.origin() + url_for(OPENED, address=end)
