"""The page of a metric: all that its type can tell, over time and by segment."""

from __future__ import annotations

from collections.abc import Iterator

from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response

from client_sdk.privacy.budget import odds
from client_sdk.registry.metric import Metric

from ...analytics.sums import is_joined
from ...core.credentials import VIEW
from ...query.request import SEGMENT
from ...rendering.tables import csv_of
from ..auth import scope
from ..operations import Operation, documented, in_path, in_query
from .chosen import WORDS, Chosen, chosen, require_known
from .layout import CONTENT_TYPE, shown
from .panels import Answers, Panel, PanelRequest, in_columns
from .questions import first_wish, further_wishes, has_choice, item_needed, items_of, usual_item
from .words import RANGE_PARAMETERS

blueprint = Blueprint("metric", __name__)

CSV = "text/csv; charset=utf-8"
_NAME = in_path("name", "^[a-z0-9_.]+$", "The name of a metric.")
_PANEL = in_path("panel", "^[A-Za-z0-9_-]+$", "The name of a panel of the page.")
_ITEM = in_query("item", {"type": "string"}, "The item that segments and lines are about.")
_PARAMETERS = (_ITEM, *RANGE_PARAMETERS)


@blueprint.get("/metric/<name>")
@scope(VIEW, page=True)
@documented(
    Operation(
        None,
        media_type=CONTENT_TYPE,
        parameters=(_NAME, *_PARAMETERS),
        problems=(400, 404),
    )
)
def metric_page(name: str) -> ResponseReturnValue:
    """Show all that a metric can tell: its answer, over time, and by segment."""
    require_known(request.args, _PARAMETERS, SEGMENT)
    answers, picked = Answers(), chosen(request.args)
    metric = answers.catalog.metric(name)
    wish = first_wish(metric, picked)
    first = answers.panel(wish, _csv(metric, wish, picked))
    item = _item(metric, picked, first)
    panels = [
        first,
        *(
            answers.panel(wish, _csv(metric, wish, picked))
            for wish in further_wishes(metric, picked, item)
        ),
    ]
    return shown(
        "metric.html",
        metric=metric,
        columns=in_columns(panels),
        panels=panels,
        basis=first.reply.meta.metrics[0] if first.reply else None,
        chosen=picked,
        ranges=WORDS,
        items=items_of(metric) if has_choice(metric) else (),
        unchosen="last" if is_joined(metric.domain) else "most common",
        odds=odds(metric.most_nano, metric.mechanism.delta),
    )


@blueprint.get("/metric/<name>/<panel>.csv")
@scope(VIEW, page=True)
@documented(
    Operation(
        None,
        media_type=CSV,
        parameters=(_NAME, _PANEL, *_PARAMETERS),
        problems=(400, 404, 500),
    )
)
def metric_csv(name: str, panel: str) -> ResponseReturnValue:
    """Send the numbers of one panel as comma-separated values."""
    require_known(request.args, _PARAMETERS, SEGMENT)
    answers, picked = Answers(), chosen(request.args)
    metric = answers.catalog.metric(name)
    for wish in _wishes(metric, picked):
        if wish.id == panel:
            return csv_file(csv_of(answers.reply(wish.query).rows), f"{metric.name}-{wish.id}.csv")
    raise NotFound


def csv_file(text: str, name: str) -> Response:
    """Return *text* as a file called *name*, of plain letters."""
    response = Response(text, content_type=CSV)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _wishes(metric: Metric, picked: Chosen) -> Iterator[PanelRequest]:
    yield first_wish(metric, picked)
    yield from further_wishes(metric, picked, picked.item)


def _csv(metric: Metric, wish: PanelRequest, picked: Chosen) -> str:
    """Return the address of the file of a panel; its item is in it, as it was chosen for it."""
    item = str(wish.query.options.get("item", ""))
    address = Chosen(**{**vars(picked), "item": item}).address()
    return url_for("metric.metric_csv", name=metric.name, panel=wish.id) + address


def _item(metric: Metric, picked: Chosen, first: Panel) -> str:
    """Return the item that segments are told of: the chosen one, or else the greatest."""
    items = items_of(metric)
    if not item_needed(metric) or picked.item in items:
        return picked.item if picked.item in items else ""
    return usual_item(metric, first.reply.rows if first.reply else ())
