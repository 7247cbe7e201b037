"""The first page: every metric in a tile; of an empty system, what to do next.

A tile has the metric's number with its interval, its line over time, and what it rests on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue
from markupsafe import Markup
from werkzeug.exceptions import NotFound

from client_sdk.core.epoch import ONCE
from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry.metric import Metric

from ...analytics.answer import MEAN
from ...analytics.rows import ITEM, MEASURE, Row
from ...analytics.verb import ESTIMATE, load
from ...core.credentials import VIEW
from ...core.errors import DamagedTallyError, QueryError, RefusedByStoreError
from ...estimation.precision import ALPHA
from ...estimation.significance import holm
from ...query import Answer, Query
from ...query.window import DEFAULT_RANGE, usual_range
from ...rendering.charts import Face
from ...rendering.charts.spark import spark
from ...rendering.numbers import margin, numbers_of, reading, value_of
from .. import auth
from ..api.openapi import Operation, in_path
from ..auth import scope, visible
from .choices import WORDS, Choices, choices_of, require_known
from .layout import CONTENT_TYPE, RANGE_PARAMETERS, shown
from .metric import granularity
from .panels import NOTHING, Answers, greatest, identifier

_OTHERS = 3  # items told beside the greatest
_SEARCH = "Common strings are looked for when this is opened."
_APP = in_path("app", "^[a-z0-9_.]+$", "An app of the registries.")
blueprint = Blueprint("overview", __name__)


@dataclass(frozen=True)
class Tile:
    """What the overview shows of a metric."""

    metric: Metric
    url: str
    label: str = ""  # what the number is of
    value: str = ""
    margin: str = ""
    quality: str = ""
    n: int = 0
    period: str = ""  # of its reports, if it is not that of the page
    is_open: bool = False
    reason: str = ""  # why there is no number
    others: tuple[tuple[str, str], ...] = ()  # the next items, each with its number
    line: Markup = NOTHING
    change: str = ""  # what the line did, if that is more than noise
    p_value: float | None = None  # of the change that is likeliest, had nothing changed


def tile_of(metric: Metric, choices: Choices, answers: Answers) -> Tile:
    """Return the tile of *metric*; what is damaged costs no other tile."""
    url = url_for("metric.metric_page", name=metric.address) + choices.address()
    try:
        reply = answers.reply(_question(metric, choices))
        row = _headline(metric, reply)
        tile = _with_number(metric, url, row, reply, choices)
        if row is None or not tile.value or metric.every == ONCE:
            return tile
        line, change, p_value = _line(metric, choices, row.item, answers)
    except (DamagedTallyError, RefusedByStoreError):
        reason = "The stored counts are damaged or cannot be read. Run hearsay fsck."
        return Tile(metric, url, reason=reason)
    except (QueryError, UnknownMetricError) as error:
        return Tile(metric, url, reason=str(error))
    return replace(tile, line=line, change=change, p_value=p_value)


def sure_of_changes(tiles: Sequence[Tile]) -> list[Tile]:
    """Return *tiles* with those changes only that are more than noise on a page of so many.

    Each line is tested, and of many lines without a change some look as if they had one.
    """
    tested = [tile.p_value for tile in tiles if tile.p_value is not None]
    corrected = iter(holm(tested))
    return [
        tile if tile.p_value is None or next(corrected) <= ALPHA else replace(tile, change="")
        for tile in tiles
    ]


def _question(metric: Metric, choices: Choices) -> Query:
    """Return what is asked for the number: the greatest item needs intervals that hold at once."""
    verb, options = ESTIMATE, dict[str, Any]()
    domain = metric.domain
    if domain.compared:
        verb = domain.verb
    elif len(domain.answer_items()) > 1 and not domain.numbers:
        verb, options = "top_k", {"k": 1 + _OTHERS}
    elif not _is_listed(metric):
        verb = "actives"  # to look for common strings takes too long for a tile
    return choices.query(metric, verb, options)


def _is_listed(metric: Metric) -> bool:
    return load(ESTIMATE).refusal(metric) is None


def _headline(metric: Metric, reply: Answer) -> Row | None:
    rows = reply.rows
    if metric.domain.compared:
        measure = rows[0].dimensions[MEASURE] if metric.domain.largest else None
        return next(
            (
                row
                for row in reversed(rows)
                if measure is None or row.dimensions[MEASURE] == measure
            ),
            None,
        )
    if metric.domain.grid:
        return next((row for row in rows if row.item == MEAN), None)
    shares = [row for row in rows if row.unit == rows[0].unit]
    return greatest(shares) or (rows[0] if rows else None)


def _with_number(
    metric: Metric, url: str, row: Row | None, reply: Answer, choices: Choices
) -> Tile:
    usual = usual_range([metric])
    tile = Tile(
        metric,
        url,
        n=reply.meta.n,
        period="" if choices.range or usual == DEFAULT_RANGE else WORDS[usual],
        is_open=reply.meta.metrics[0].window_open,
    )
    if not _is_listed(metric):
        return replace(tile, reason=_SEARCH)
    if row is None:
        return replace(tile, reason="no answer")
    if numbers_of(row) is None:
        return replace(tile, reason=row.reason or "no number")
    return replace(
        tile,
        label=metric.domain.headline(row.item, row.dimensions.get(MEASURE, "")),
        value=value_of(row),
        margin=margin(row),
        quality=row.quality,
        others=_others(metric, row, reply.rows),
    )


def _others(metric: Metric, first: Row, rows: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    if metric.domain.verb == "map" or metric.domain.grid:
        return ()
    if metric.domain.compared:
        same = [row for row in rows if row.dimensions[MEASURE] == first.dimensions[MEASURE]]
        return tuple((row.item, reading(row)) for row in same if row is not first)[-_OTHERS:]
    rest = [row for row in rows if row is not first and row.unit == first.unit and row.value]
    sure = sorted((row for row in rest if (row.ci_low or 0) > 0), key=lambda row: -(row.value or 0))
    return tuple((row.item, reading(row)) for row in sure[:_OTHERS])


def _line(
    metric: Metric, choices: Choices, item: str, answers: Answers
) -> tuple[Markup, str, float | None]:
    """Return the line of the number, how it changed most, and the chance had nothing changed."""
    if metric.domain.compared:
        return NOTHING, "", None
    options = {} if metric.domain.grid else {ITEM: item}
    query = choices.query(metric, "trend", options, [granularity(metric, choices)])
    reply = answers.reply(query)
    face = Face(prefix=identifier(f"line-{metric.address}"), heading=False)
    drawn = Markup(spark(reply.rows, f"{metric.title} over time", face))  # noqa: S704  # it escapes
    return drawn, *_change(reply)


def _change(reply: Answer) -> tuple[str, float | None]:
    """Return the surest change in words, and its p-value; nothing of a line that has none."""
    for change in reply.meta.facts.get("changes", ())[:1]:
        how = "higher" if change["after"] > change["before"] else "lower"
        return f"{how} since {change['changed_at']}", change["p_value"]
    return "", None


@blueprint.get("/")
@scope(VIEW, page=True)
@Operation(media_type=CONTENT_TYPE, parameters=RANGE_PARAMETERS, problems=(400,))
def overview() -> ResponseReturnValue:
    """Show every metric: its number with the interval, its line, and what it rests on."""
    return _overview(list(visible()))


@blueprint.get("/apps/<app>")
@scope(VIEW, page=True)
@Operation(media_type=CONTENT_TYPE, parameters=(_APP, *RANGE_PARAMETERS), problems=(400, 404))
def app_overview(app: str) -> ResponseReturnValue:
    """Show the metrics of one app, as the overview shows all."""
    metrics = visible().of_app(app)
    if not metrics:
        raise NotFound(f"There is no app {app} here. The overview shows all that you may read.")
    return _overview(metrics, app)


def _overview(metrics: Sequence[Metric], app: str = "") -> ResponseReturnValue:
    require_known(request.args, RANGE_PARAMETERS)
    choices = choices_of(request.args)
    answers = Answers()
    tiles = sure_of_changes([tile_of(metric, choices, answers) for metric in metrics])
    first = next(iter(metrics), None)
    return shown(
        "overview.html",
        tiles=tiles,
        app=app,
        chosen=choices.shown_for(()),
        ranges=choices.ranges(()),
        is_empty=not any(tile.n for tile in tiles),
        first=first,
        origin=auth.origin(),
    )
