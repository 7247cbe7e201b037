"""The first page: every metric in a tile; of an empty system, what to do next."""

from __future__ import annotations

from flask import Blueprint, request
from flask.typing import ResponseReturnValue

from ...core.credentials import VIEW
from .. import cookie
from ..auth import scope, visible
from ..operations import Operation, documented
from .chosen import WORDS, chosen, require_known
from .layout import CONTENT_TYPE, shown
from .panels import Answers
from .tiles import sure_of_changes, tile_of
from .words import RANGE_PARAMETERS

blueprint = Blueprint("overview", __name__)


@blueprint.get("/")
@scope(VIEW, page=True)
@documented(Operation(None, media_type=CONTENT_TYPE, parameters=RANGE_PARAMETERS, problems=(400,)))
def overview() -> ResponseReturnValue:
    """Show every metric: its number with the interval, its line, and what it rests on."""
    require_known(request.args, RANGE_PARAMETERS)
    picked = chosen(request.args)
    answers = Answers()
    tiles = sure_of_changes([tile_of(metric, picked, answers) for metric in visible()])
    first = next(iter(visible()), None)
    return shown(
        "overview.html",
        tiles=tiles,
        chosen=picked,
        ranges=WORDS,
        is_empty=not any(tile.n for tile in tiles),
        first=first,
        origin=cookie.origin(),
    )
