"""The first page: every metric in a tile; of an empty system, what to do next.

A tile has the metric's number with its interval, its line over time, and what it rests on.
Many metrics are found by words, stand under headings, and take several pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import groupby
from typing import Final
from urllib.parse import urlencode

from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue
from markupsafe import Markup
from msgspec import structs
from werkzeug.exceptions import NotFound

from client_sdk.core.epoch import ONCE
from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry.metric import COUNT, Metric

from ...analytics.rows import (
    ITEM,
    LEFT_OUT,
    MEASURE,
    TIME,
    Period,
    Row,
)
from ...analytics.verb import TREND
from ...core.credentials import ASK, VIEW
from ...core.errors import DamagedTallyError, QueryError, RefusedByStoreError
from ...estimation.precision import ALPHA
from ...estimation.significance import holm
from ...query import Answer, Query
from ...query.headline import headline, is_listed, latest, question
from ...query.window import DEFAULT_RANGE, usual_range
from ...rendering.charts import ChartOptions
from ...rendering.charts.spark import spark
from ...rendering.numbers import margin, numbers_of, reading, value_of
from ...rendering.possible import possible
from ...rendering.wording import last_day, since_in_words, when_counted
from .. import auth
from ..api.openapi import in_query
from ..auth import scope, visible
from .actives import UNREADABLE, cards_of, missing_lines
from .arrivals import Progress, is_short, progress, silent_since, stretches_of, whole_days
from .changes import Change, change_of_step
from .choices import DATES, WORDS, Choices, choices_of, granularity, require_known
from .drawings import identifier
from .finding import subject_of
from .layout import RANGE_PARAMETERS, shown
from .panels import NOTHING, Answers, in_page
from .remarks import steps_of

_OTHERS = 3  # further items after the greatest
_SEARCH = "Open it to search for common strings."
_MOST_PAGES: Final = 99_999
MOST_TILES: Final = 18  # of a page: read and answered at once
_FEW: Final = 6  # metrics that are seen without searching
_ORDERS: Final = {
    "group": "by group",
    "owner": "by owner",
    "name": "by name",
    "registry": "as registered",
}
_SHORT: Final = frozenset({"7d", "14d", "month"})  # ranges that hold few weeks, or part of one
_WEEKS: Final = frozenset({"7d", "28d"})
_REST: Final = "Other"  # the heading of metrics without a group
_PARAMETERS: Final = (
    *RANGE_PARAMETERS,
    in_query("search", {"type": "string"}, "Words that are in the metric's texts."),
    in_query("order", {"enum": [*_ORDERS, ""]}, "In which order, and under which headings."),
    in_query("sheet", {"type": "string", "pattern": "^[1-9][0-9]{0,4}$"}, "Which page, from 1."),
)
blueprint = Blueprint("overview", __name__)


@dataclass(frozen=True)
class Tile:
    """What the overview shows of a metric."""

    metric: Metric
    url: str
    label: str = ""  # what the number is of
    value: str = ""
    margin: str = ""
    n: int = 0
    period: str = ""  # of its reports, if it differs from the page's
    is_open: bool = False
    reason: str = ""  # why there is no number
    progress: Progress | None = None  # of its reports, where they are too few for a number
    fault: str = ""  # what is wrong
    others: tuple[tuple[str, str], ...] = ()  # the next items, each with its number
    line: Markup = NOTHING
    change: str = ""  # what the line did, if that is more than noise
    now: tuple[str, str] = ("", "")  # number and margin since then: the others' are an average
    sentence: Change | None = None  # the change in words
    left_out: tuple[str, ...] = ()  # what operators have taken out, in sentences
    p_value: float | None = None  # of the change that is likeliest, had nothing changed


@dataclass(frozen=True)
class Selection:
    """Which metrics are shown, in which order, and which page of them."""

    search: str = ""
    order: str = ""  # one of _ORDERS; "" for groups where there are any
    page: int = 1

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Selection:
        """Read the selection of an address.  Raises QueryError: there is no such order or page."""
        order, page = parameters.get("order", ""), parameters.get("sheet") or "1"
        if order not in ("", *_ORDERS):
            raise QueryError("order", f"must be one of {', '.join(_ORDERS)}")
        if not (page.isascii() and page.isdigit() and 1 <= int(page[:6]) <= _MOST_PAGES):
            raise QueryError("sheet", f"must be a number from 1 to {_MOST_PAGES}")
        return cls(" ".join(parameters.get("search", "").split()), order, int(page))

    def among(self, metrics: Sequence[Metric]) -> list[tuple[str, Metric]]:
        """Return the metrics that have all words, each after its heading, "" for none."""
        words = self.search.casefold().split()
        kept = [metric for metric in metrics if all(word in _texts(metric) for word in words)]
        order = self.order or ("group" if any(metric.group for metric in metrics) else "registry")
        if order == "registry":
            return [("", metric) for metric in kept]
        if order == "name":
            return [("", metric) for metric in sorted(kept, key=_title)]
        headings = [metric.group if order == "group" else metric.owner for metric in kept]
        known = sorted(filter(None, headings), key=str.casefold) if order == "owner" else headings
        place = {heading: i for i, heading in enumerate(dict.fromkeys(filter(None, known)))}
        headed = sorted(
            zip(headings, kept, strict=True), key=lambda pair: place.get(pair[0], len(place))
        )
        return [(heading or _REST, metric) for heading, metric in headed]

    def address(self, choices: Choices, page: int) -> str:
        """Return the address of another *page* of the same."""
        chosen = {"search": self.search, "order": self.order, "sheet": "" if page == 1 else page}
        own = urlencode({name: value for name, value in chosen.items() if value})
        period = choices.address().removeprefix("?")
        return f"{request.path}?" + "&".join(filter(None, (period, own)))


def _texts(metric: Metric) -> str:
    texts = (metric.address, metric.title, metric.question, metric.group, metric.owner)
    return "\n".join(texts).casefold()


def _title(metric: Metric) -> str:
    return metric.title.casefold()


def _tile_of(metric: Metric, choices: Choices, answers: Answers) -> Tile:
    """Return the tile of *metric*; damaged tallies affect no other tile."""
    url = url_for("metric.metric_page", name=metric.address) + choices.address()
    try:
        verb, options = question(metric, 1 + _OTHERS)
        stretches = [granularity(metric, choices)] if metric.show == COUNT else []
        query = choices.query(metric, verb, options, stretches)
        reply = answers.reply(query, is_checked=False)
        reply = structs.replace(reply, rows=tuple(possible(reply.rows, reply.meta.chart)))
        if metric.show == COUNT:
            return _counted(metric, url, reply, choices, answers.today)
        row = headline(metric, reply.rows)
        tile = _with_number(metric, url, row, reply, choices)
        if row is not None and is_short(row) and is_listed(metric):
            return replace(
                tile, reason="", progress=_progress(metric, row.n, query, reply, choices, answers)
            )
        if row is None or not tile.value or metric.every == ONCE:
            return tile
        return _with_line(tile, choices, row.item, answers)
    except (DamagedTallyError, RefusedByStoreError):
        return Tile(metric, url, fault=UNREADABLE)
    except (QueryError, UnknownMetricError) as error:
        return Tile(metric, url, reason=in_page(error))


def _sure_of_changes(tiles: Sequence[Tile]) -> list[Tile]:
    """Return *tiles* with those changes only that are more than noise on a page of so many.

    Each line is tested, and of many lines without a change some look as if they had one.
    """
    tested = [tile.p_value for tile in tiles if tile.p_value is not None]
    corrected = iter(holm(tested))
    return [
        tile
        if tile.p_value is None or next(corrected) <= ALPHA
        else replace(tile, change="", now=("", ""), sentence=None)
        for tile in tiles
    ]


def _progress(
    metric: Metric, n: int, query: Query, reply: Answer, choices: Choices, answers: Answers
) -> Progress:
    """Return how far *n* reports of *metric* are on the way to a number.

    Args: reply: the answer to *query*, which has no number.
    """
    least, window = metric.min_reports, reply.meta.metrics[0].window
    period = Period.read(f"{window.first}/{window.last}", metric.every)
    if not n or period is None or choices.range == DATES:
        return Progress(n, least)
    stretch = granularity(metric, choices)
    try:
        by_time = answers.reply(structs.replace(query, dimensions=[stretch]), is_checked=False)
    except QueryError:  # more stretches than its verb takes
        return Progress(n, least)
    arrived = stretches_of(by_time.rows, metric, stretch)
    return progress(n, least, arrived, whole_days(period), answers.today)


def _counted(metric: Metric, url: str, reply: Answer, choices: Choices, today: date) -> Tile:
    """Return the tile of a metric that shows how many devices reported, with the time before."""
    tile, rows = _basis(metric, url, reply, choices), latest(reply.rows)
    if not rows or not reply.meta.n:
        return replace(tile, reason="no reports in these days")
    stretch = granularity(metric, choices)
    *_, row = named = [
        (when_counted(row.dimensions[TIME], metric.every, stretch), row) for row in rows
    ]
    return replace(
        tile,
        label=row[0],
        value=reading(row[1]),
        is_open=row[1].is_open,
        others=tuple((words, reading(before)) for words, before in named[-2:-1]),
        line=_spark(metric, reply.rows),
        fault=_silence(metric, reply.rows, choices, today),
    )


def _silence(metric: Metric, rows: Sequence[Row], choices: Choices, today: date) -> str:
    """Return since when no reports arrive, by the *rows* by time; "" where they still should."""
    if choices.range == DATES or metric.expires < today:
        return ""
    last = silent_since(stretches_of(rows, metric, granularity(metric, choices)), today)
    return f"No reports since {last.day} {last:%b %Y}." if last else ""


def _basis(metric: Metric, url: str, reply: Answer, choices: Choices) -> Tile:
    """Return the tile of *metric* with the basis of its answer."""
    return Tile(
        metric,
        url,
        n=reply.meta.n,
        period=_period(metric, reply, choices),
        is_open=reply.meta.metrics[0].window_open and metric.every != ONCE,
        left_out=tuple(reply.meta.facts.get(LEFT_OUT, ())),
    )


def _with_number(
    metric: Metric, url: str, row: Row | None, reply: Answer, choices: Choices
) -> Tile:
    tile = _basis(metric, url, reply, choices)
    if not is_listed(metric):
        return replace(tile, reason=_SEARCH)
    if row is None:
        return replace(tile, reason="no answer")
    if numbers_of(row) is None:
        return replace(tile, reason=row.reason or "no number")
    return replace(
        tile,
        label=subject_of(metric, row),
        value=_number(row)[0],
        margin=_number(row)[1],
        others=_others(metric, row, reply.rows),
    )


def _number(row: Row) -> tuple[str, str]:
    """Return the number of *row* and its margin, in words."""
    return value_of(row), margin(row, in_words=True)


def _period(metric: Metric, reply: Answer, choices: Choices) -> str:
    """Return the period of the reports if it differs from the page's, else "".

    A short range counts only weeks that begin in it, so seven days are often one week: a number
    of a few days must not pass for a number of seven.
    """
    usual = usual_range([metric])
    if not choices.range and usual != DEFAULT_RANGE:
        return f"in {WORDS[usual]}"
    if choices.range not in _SHORT or metric.every not in _WEEKS:
        return ""
    basis = reply.meta.metrics[0]
    last = "" if basis.window_open else f" to {last_day(basis.window.last, metric.every)}"
    return f"{'from' if last else 'since'} {basis.window.first}{last}" if reply.meta.n else ""


def _others(metric: Metric, first: Row, rows: Sequence[Row]) -> tuple[tuple[str, str], ...]:
    if metric.domain.compared:
        same = [row for row in rows if row.dimensions[MEASURE] == first.dimensions[MEASURE]]
        return tuple((row.item, reading(row)) for row in same if row is not first)[-_OTHERS:]
    if metric.domain.coded or metric.domain.grid:
        return ()
    rest = [row for row in rows if row is not first and row.unit == first.unit and row.value]
    sure = sorted((row for row in rest if (row.ci_low or 0) > 0), key=lambda row: -(row.value or 0))
    return tuple((row.item, reading(row)) for row in sure[:_OTHERS])


def _with_line(tile: Tile, choices: Choices, item: str, answers: Answers) -> Tile:
    """Return *tile* with the line of *item*, and with what it did if that is more than noise."""
    metric = tile.metric
    if metric.domain.compared:
        return tile
    options = {} if metric.domain.grid else {ITEM: item}
    query = choices.query(metric, TREND, options, [granularity(metric, choices)])
    reply = answers.reply(query, is_checked=False)
    steps = steps_of(reply, query, metric, answers)
    change, p_value = _change(reply)
    marks = answers.marks(query) if steps else []
    return replace(
        tile,
        line=_spark(metric, possible(reply.rows, reply.meta.chart)),
        change=change,
        p_value=p_value,
        now=_number(steps[0].now.row) if steps else ("", ""),
        sentence=change_of_step(metric, steps[0], marks) if steps else None,
        fault=_silence(metric, reply.rows, choices, answers.today),
    )


def _spark(metric: Metric, rows: Sequence[Row]) -> Markup:
    options = ChartOptions(prefix=identifier(f"line-{metric.address}"), heading=False)
    return Markup(spark(rows, f"{metric.title} over time", options))  # noqa: S704  # it escapes


def _change(reply: Answer) -> tuple[str, float | None]:
    """Return the surest change in words, and its p-value; nothing for a line without one."""
    for change in reply.meta.facts.get("changes", ())[:1]:
        how = "higher" if change["after"] > change["before"] else "lower"
        at = since_in_words(change["changed_at"], change["stretch"])
        return f"{how} since {at}", change["p_value"]
    return "", None


@blueprint.get("/")
@scope(VIEW, page=True)
def overview() -> ResponseReturnValue:
    """Show every metric: its number with the interval, its line, and what it rests on."""
    return _overview(list(visible()))


@blueprint.get("/apps/<app>")
@scope(VIEW, page=True)
def app_overview(app: str) -> ResponseReturnValue:
    """Show the metrics of one app, as the overview shows all."""
    metrics = visible().of_app(app)
    if not metrics:
        raise NotFound(f"There is no app {app} here. The overview shows all that you may read.")
    return _overview(metrics, app)


def _overview(metrics: Sequence[Metric], app: str = "") -> ResponseReturnValue:
    require_known(request.args, _PARAMETERS)
    choices, selection = choices_of(request.args), Selection.of(request.args)
    answers = Answers()
    chosen = selection.among(metrics)
    pages = max(-(-len(chosen) // MOST_TILES), 1)
    page = min(selection.page, pages)
    shown_here = chosen[(page - 1) * MOST_TILES : page * MOST_TILES]
    tiles = _sure_of_changes([_tile_of(metric, choices, answers) for _, metric in shown_here])
    headed = zip((heading for heading, _ in shown_here), tiles, strict=True)
    is_empty = len(metrics) == len(tiles) and not any(tile.n for tile in tiles)
    is_first = page == 1 and not selection.search and not is_empty
    changed = [(tile, tile.sentence) for tile in tiles if tile.sentence]
    changed.sort(key=lambda pair: pair[1].at, reverse=True)
    counted_apps = {metric.app for metric in metrics if metric.show == COUNT}
    return shown(
        "overview.html",
        groups=[
            (heading, [tile for _, tile in some])
            for heading, some in groupby(headed, lambda pair: pair[0])
        ],
        changed=changed,
        is_tested=any(tile.p_value is not None for tile in tiles),
        count=len(chosen),
        app=app,
        chosen=choices.shown_for(()),
        ranges=choices.ranges(()),
        is_empty=is_empty,
        cards=list(cards_of(metrics, answers)) if is_first and len(counted_apps) == 1 else [],
        missing=missing_lines(metrics) if is_first and len(counted_apps) < 2 else [],
        is_of_apps=is_first and len(counted_apps) > 1,
        first=metrics[0] if metrics else None,
        known=len(metrics),
        origin=auth.origin(),
        may_ask=ASK in auth.reader().scopes,
        selection=selection,
        orders=_orders(metrics) if len(metrics) > _FEW else {},
        page=page,
        pages=[(number, selection.address(choices, number)) for number in range(1, pages + 1)],
    )


def _orders(metrics: Sequence[Metric]) -> dict[str, str]:
    """Return the orders, in words, that make a difference; the usual one first."""
    alike = {
        "group": not any(metric.group for metric in metrics),
        "owner": len({metric.owner for metric in metrics}) == 1,
    }
    names = [name for name in _ORDERS if not alike.get(name)]
    usual = "registry" if alike["group"] else "group"
    return {name: _ORDERS[name] for name in sorted(names, key=lambda name: name != usual)}
