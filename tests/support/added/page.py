"""Today: which metrics are asked."""

from __future__ import annotations

from flask import Blueprint
from flask.typing import ResponseReturnValue

from collector.core.credentials import VIEW
from collector.web.auth import scope, visible
from collector.web.pages.layout import shown

blueprint = Blueprint("today", __name__)


@blueprint.get("/today")
@scope(VIEW, page=True)
def today() -> ResponseReturnValue:
    """Show the metrics that the reader may see."""
    return shown("today.html", metrics=list(visible()))
