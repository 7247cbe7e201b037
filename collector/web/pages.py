"""The result page: every metric with its chart and table."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from client_sdk.metric import Metric

from ..analytics import Answer
from ..charts import bars
from ..credentials import VIEW
from ..errors import DamagedTallyError, RefusedByStoreError
from ..query import ask, reply
from .auth import scope, visible
from .operations import Operation, documented
from .services import services

blueprint = Blueprint("pages", __name__)
log = logging.getLogger("hearsay.web")


@blueprint.get("/")
@scope(VIEW, page=True)
@documented(Operation(None, media_type="text/html; charset=utf-8"))
def overview() -> ResponseReturnValue:
    """Show the last thirty days of every metric."""
    shared = services()
    cards = []
    for metric in visible():
        question = ask(metric, {}, shared.clock())
        card: dict[str, object] = {"metric": metric, "question": question}
        try:
            answer, n, _ = reply(question, shared.tallies)
            card |= {"answer": answer, "n": n, "charts": list(_charts(metric, answer))}
        except (DamagedTallyError, RefusedByStoreError) as error:  # the others still have answers
            log.error("metric=%s: cannot be answered: %s", metric.name, error)
        cards.append(card)
    return render_template("overview.html", cards=cards)


def _charts(metric: Metric, answer: Answer) -> Iterator[Markup]:
    """Yield one chart a unit, since bars of different units share no scale."""
    for unit in dict.fromkeys(row.unit for row in answer.rows):
        rows = [row for row in answer.rows if row.unit == unit]
        yield Markup(bars(rows, metric.title, unit))  # noqa: S704  # bars escapes
