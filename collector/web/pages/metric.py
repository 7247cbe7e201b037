"""The page of a metric: all that its type can answer, over time and by segment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue
from msgspec import structs
from werkzeug.exceptions import NotFound

from client_sdk.core.epoch import ONCE
from client_sdk.privacy.budget import odds
from client_sdk.registry.metric import Metric

from ...analytics.rows import TIME
from ...analytics.sums import is_joined
from ...core.catalog import ADDRESS
from ...core.credentials import ASK, VIEW
from ...core.text_tables import above
from ...query.request import SEGMENT
from ...query.window import PREVIOUS
from ..api.openapi import Operation, in_path, in_query
from ..auth import scope, visitor
from ..services import services
from .choices import (
    DATES,
    WORDS,
    Choices,
    choices_of,
    filter_rows,
    filters_of,
    require_known,
)
from .drill import leads
from .files import CSV, FILES, KIND_PARAMETER, name_of
from .finding import finding_of
from .items import called, has_choice, item_needed, items_of, leading_item, usual_item
from .layout import RANGE_PARAMETERS, shown
from .metric_panels import BREAKDOWN, PARTS, levels_of, more_panels, own_panel
from .panels import (
    ALL_DRAWN,
    BEFORE_PARAMETER,
    MOST_DRAWN,
    OVER_TIME,
    PERIODS,
    Answers,
    Notice,
    Panel,
    PanelRequest,
)
from .remarks import period_text, ranked_hints, sample_in_words, told_once, with_levels

_MUCH_LATE: Final = 0.2  # share of late reports from which it is shown
blueprint = Blueprint("metric", __name__)
_NAME = in_path("name", f"^{ADDRESS}$", "The name of a metric, or app/name.")
_PANEL = in_path("panel", "^[A-Za-z0-9_-]+$", "The name of a panel of the page.")
_ITEM = in_query("item", {"type": "string"}, "The item that segments and lines are about.")
_ALL = in_query("all", {"type": "string"}, "The name of a panel whose chart has all its rows.")
_PARAMETERS = (_ITEM, *RANGE_PARAMETERS)
_SHOWN = (_ALL, BEFORE_PARAMETER)


@blueprint.get("/metric/<metric:name>")
@scope(VIEW, page=True)
def metric_page(name: str) -> ResponseReturnValue:
    """Show all answers of a metric: its own question, over time, and by segment."""
    require_known(request.args, (*_PARAMETERS, *_SHOWN), SEGMENT)
    answers, choices = Answers(relay=services().config.relay), choices_of(request.args)
    metric = answers.catalog.metric(name)
    notices = tuple(_notices(metric, choices, answers))
    first = _panel(own_panel(metric, choices), metric, choices, notices, answers)
    item = _item(metric, choices, first, answers)
    panels = [
        first,
        *(
            _panel(panel_request, metric, choices, notices, answers)
            for panel_request in more_panels(metric, choices, item)
        ),
    ]
    steps, panels = with_levels(panels, metric, answers)
    basis = first.reply.meta.metrics[0] if first.reply else None
    sample = sample_in_words(metric, panels)
    notes, doubts, panels = told_once(panels)
    main = next((panel for panel in panels if panel.request.full), panels[0])
    others = [panel for panel in panels if panel is not main]
    parts = {
        part: [panel for panel in others if (panel.request.part or BREAKDOWN) == part]
        for part in PARTS
    }
    return shown(
        "metric.html",
        metric=metric,
        finding=finding_of(metric, choices, steps, answers.marks(main.request.query), answers),
        doubts=[text for text in (sample, *doubts, *ranked_hints(panels)) if text],
        notes=notes,
        main=main,
        unasked="previous period, line only" if main.request.against else "nothing",
        parts={part: panels for part, panels in parts.items() if panels},
        basis=basis,
        period=first.reply and period_text(first.reply, answers),
        shuffled=(basis and basis.epsilon_shuffled) or None,
        above=above,
        chosen=choices.shown_for([metric]),
        ranges=choices.ranges([metric]),
        items=levels_of(metric) or (items_of(metric) if has_choice(metric) else ()),
        called=partial(called, metric),
        is_number=bool(levels_of(metric)),
        unchosen="last" if is_joined(metric.domain) else "most common",
        much_late=_MUCH_LATE,
        filter_rows=filter_rows(metric, filters_of(choices.segment)),
        can_ask=ASK in (who.scopes if (who := visitor()) else ()),
        earlier=PERIODS if metric.every != ONCE else {},
        odds=odds(metric.most_nano, metric.mechanism.delta),
    )


@blueprint.get("/metric/<metric:name>/<panel>.<kind>")
@scope(VIEW, page=True)
@Operation(
    media_type=CSV,
    parameters=(_NAME, _PANEL, KIND_PARAMETER, *_PARAMETERS, BEFORE_PARAMETER),
    alternatives=FILES,
    problems=(400, 404, 406, 500),
)
def metric_file(name: str, panel: str, kind: str) -> ResponseReturnValue:
    """Send one panel as a file: comma-separated values, Parquet, GeoJSON or SVG."""
    require_known(request.args, (*_PARAMETERS, BEFORE_PARAMETER), SEGMENT)
    answers, choices = Answers(), choices_of(request.args)
    metric = answers.catalog.metric(name)
    for panel_request in _panel_requests(metric, choices):
        if panel_request.id == panel:
            title = f"{metric.title}: {panel_request.title}"
            own = replace(panel_request, against=choices.against)
            return answers.file(kind, own, title, name_of(panel_request.query, panel_request.id))
    raise NotFound


def _panel_requests(metric: Metric, choices: Choices) -> Iterator[PanelRequest]:
    yield own_panel(metric, choices)
    yield from more_panels(metric, choices, choices.item)


def _notices(metric: Metric, choices: Choices, answers: Answers) -> Iterator[Notice]:
    """Yield the notices above charts over time: how to show all days, and missing periods."""
    page = url_for("metric.metric_page", name=metric.address)
    whole = replace(choices, first="", last="")
    if choices.range == DATES:
        days = " – ".join(dict.fromkeys((choices.first, choices.last)))
        yield Notice(
            f"Only {days} is shown.", "Show all days", page + replace(whole, range="").address()
        )
    if not choices.against or metric.every == ONCE:
        return
    if answers.has_earlier(metric, own_panel(metric, choices).query, choices.against):
        return
    if choices.against != PREVIOUS:
        yield Notice("There are no reports of the same dates a year ago.")
        return
    longest = answers.previous_range(metric)
    whole, named = replace(whole, range=longest), WORDS[longest]
    if answers.has_earlier(metric, own_panel(metric, whole).query, PREVIOUS):
        url = page + whole.address()
        words = f"Choose {named} to compare"
        yield Notice("The previous period has no reports.", words, url)
    else:
        yield Notice("The previous period has no reports, for this range or any shorter one.")


def _panel(
    panel_request: PanelRequest,
    metric: Metric,
    choices: Choices,
    notices: tuple[Notice, ...],
    answers: Answers,
) -> Panel:
    """Return the answer to *panel_request*, with links of its rows and the period before.

    A main line that is alone has the previous period where that has reports from its beginning.
    """
    is_over_time = any(name.startswith(TIME) for name in panel_request.query.dimensions)
    stretch = next((name for name in panel_request.query.dimensions if name.startswith(TIME)), TIME)
    own = replace(choices, item=str(panel_request.query.options.get("item", "")) or choices.item)
    page = url_for("metric.metric_page", name=metric.address) + choices.address()
    query, against = panel_request.query, choices.against
    is_alone = bool(query.options) or not has_choice(metric)
    if not against and panel_request.full and is_over_time and is_alone:
        against = PREVIOUS if answers.has_earlier(metric, query, PREVIOUS, whole=True) else ""
    whole = replace(
        panel_request,
        link=leads(metric, own, items_of(metric) if has_choice(metric) else (), stretch),
        against=against,
        rows=ALL_DRAWN if request.args.get("all") == panel_request.id else MOST_DRAWN,
        notices=notices if is_over_time else (),
        all_rows=f"{page}{'&' if '?' in page else '?'}all={panel_request.id}#{panel_request.id}",
    )
    return answers.panel(whole, _csv(metric, whole, choices))


def _csv(metric: Metric, panel_request: PanelRequest, choices: Choices) -> str:
    """Return the address of a panel's file, which includes the panel's item."""
    item = str(panel_request.query.options.get("item", ""))
    if "levels" in panel_request.query.options and panel_request.id == OVER_TIME:
        item = choices.item
    is_over_time = any(name.startswith(TIME) for name in panel_request.query.dimensions)
    against = panel_request.against if is_over_time else ""
    address = replace(choices, item=item, against=against).address()
    file = url_for("metric.metric_file", name=metric.address, panel=panel_request.id, kind="csv")
    return file + address


def _item(metric: Metric, choices: Choices, first: Panel, answers: Answers) -> str:
    """Return the item of segments: the chosen one, or else the greatest."""
    items = items_of(metric)
    if not item_needed(metric) or choices.item in items:
        return choices.item if choices.item in items else ""
    if choices.against and metric.every != ONCE:
        both = structs.replace(first.request.query, against=choices.against)
        if item := leading_item(both, metric, answers):
            return item
    return usual_item(metric, first.reply.rows if first.reply else ())
