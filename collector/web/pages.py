"""The result page: every metric with its chart and table."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from client_sdk.metric import Metric

from ..analytics.rows import Row, units_of
from ..charts import Face, bars
from ..credentials import VIEW
from ..errors import DamagedTallyError, RefusedByStoreError
from ..query import Query, plan, run
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
    cards: list[dict[str, object]] = []
    for metric in visible():
        made = plan(Query(metrics=[metric.name]), visible(), shared.clock())
        card: dict[str, object] = {"metric": metric}
        try:
            reply = run(made, shared.tallies)
            card |= {"reply": reply, "charts": list(_charts(metric, reply.rows, len(cards)))}
        except (DamagedTallyError, RefusedByStoreError) as error:  # the others still have answers
            log.error("metric=%s: cannot be answered: %s", metric.name, error)
        cards.append(card)
    return render_template("overview.html", cards=cards)


def _charts(metric: Metric, rows: Sequence[Row], card: int) -> Iterator[Markup]:
    """Yield one chart a unit, since bars of different units share no scale."""
    for i, unit in enumerate(units_of(rows)):
        some = [row for row in rows if row.unit == unit]
        face = Face(prefix=f"chart-{card}-{i}", heading=False)
        yield Markup(bars(some, metric.title, face))  # noqa: S704  # bars escapes
