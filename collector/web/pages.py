"""The result page: every metric with its chart and table."""

from __future__ import annotations

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from ..charts import bars
from ..query import ask, reply
from .auth import require_page_reader
from .services import services

blueprint = Blueprint("pages", __name__)


@blueprint.get("/")
def overview() -> ResponseReturnValue:
    """Show the last thirty days of every metric."""
    require_page_reader()
    shared = services()
    cards = []
    for metric in shared.catalog:
        question = ask(metric, {}, shared.clock())
        answer, n = reply(question, shared.storage)
        svg = Markup(bars(answer.rows, metric.title, answer.unit))  # noqa: S704  # bars escapes
        cards.append({"metric": metric, "question": question, "answer": answer, "n": n, "svg": svg})
    return render_template("overview.html", cards=cards)
