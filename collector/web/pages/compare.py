"""Compare: one number now and before, or between segments, and whether it differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final
from urllib.parse import urlencode

from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue
from msgspec import structs

from client_sdk.core.epoch import ONCE
from client_sdk.registry.metric import COUNT, Metric

from ...analytics.rows import AGAINST, TIME, Chart, Period
from ...analytics.verb import ACTIVES, AVERAGED, COMPARE, SEGMENTS, TOP, TREND, load
from ...core.credentials import ASK
from ...query.request import SEGMENT
from ...query.window import PREVIOUS
from ...rendering.charts import Mark
from ...rendering.wording import worded
from ..api.openapi import Operation, in_query
from ..auth import scope
from .choices import (
    EARLIER,
    EARLIER_DAYS,
    Choices,
    choices_of,
    earlier_of,
    filter_rows,
    filters_of,
    require_known,
)
from .files import CSV, FILES, KIND_PARAMETER, name_of
from .items import PERIODS_APART, called, item_needed, items_of, leading_item, leads_of
from .layout import EARLIER_PARAMETERS, RANGE_PARAMETERS, shown
from .panels import Answers, Notice, Panel, PanelRequest, every_of
from .questions import by_length
from .remarks import counts_text, period_text, with_period

blueprint = Blueprint("compare", __name__)

BEFORE: Final = TIME  # what is compared: this stretch of time with the one before
DIFFERENCE: Final = "difference"
MOST_NOTES: Final = 8  # above a difference; the page of notes has all
_COUNTED: Final = "Reports that come late still add to the last days."
_PARAMETERS: Final = (
    in_query("metric", {"type": "string"}, "The name of a metric."),
    in_query("by", {"type": "string"}, "``time`` or a dimension of the metric."),
    in_query(
        "against",
        {"type": "string"},
        "Of time ``previous``, ``year``, ``dates``; of a dimension a value, or all others.",
    ),
    *EARLIER_PARAMETERS,
    in_query("item", {"type": "string"}, "The item that is compared."),
    *RANGE_PARAMETERS,
)
_PANEL: Final = in_query("panel", {"type": "string"}, "Which of the two.")


@blueprint.get("/compare")
@scope(ASK, page=True)
def compare() -> ResponseReturnValue:
    """Show how a number differs from that before, or between segments, with the interval."""
    require_known(request.args, _PARAMETERS, SEGMENT)
    answers, choices = Answers(), choices_of(request.args)
    metrics = [metric for metric in answers.catalog if _is_comparable(metric)]
    metric = _metric(answers, metrics)
    panels: list[Panel] = []
    by = item = ""
    if metric is not None:
        by = _by(metric)
        choices = _over(metric, choices, by, answers)
        item = _item(metric, choices, by, answers)
        panels = [
            _with_compared_periods(
                answers.panel(_led(panel_request, answers), _address(panel_request)), answers
            )
            for panel_request in _panel_requests(metric, choices, by, item)
        ]
    shown_of = () if metric is None else (metric,)
    return shown(
        "compare.html",
        metrics=metrics,
        metric=metric,
        ways=_ways_of(metric) if metric else {},
        by=by,
        against=request.args.get("against", ""),
        earlier=EARLIER if by == BEFORE else {},
        other=[request.args.get(name, "") for name in EARLIER_DAYS],
        filter_rows=filter_rows(metric, filters_of(choices.segment)) if metric else [],
        items=items_of(metric) if metric and metric.show != COUNT else (),
        called=partial(called, metric) if metric else None,
        item=item,
        panels=panels,
        is_empty=not _tells(panels),
        chosen=choices.shown_for(shown_of),
        ranges=choices.ranges(shown_of),
        least="28d" if metric is not None and metric.every == "28d" else "7d",
    )


@blueprint.get("/compare.<kind>")
@scope(ASK, page=True)
@Operation(
    media_type=CSV,
    parameters=(KIND_PARAMETER, *_PARAMETERS, _PANEL),
    alternatives=FILES,
    problems=(400, 404, 406, 500),
)
def compare_file(kind: str) -> ResponseReturnValue:
    """Send a comparison as a file: comma-separated values, Parquet or SVG."""
    require_known(request.args, (*_PARAMETERS, _PANEL), SEGMENT)
    answers, choices = Answers(), choices_of(request.args)
    metric = answers.catalog.metric(request.args.get("metric", ""))
    by = _by(metric)
    panel_requests = list(
        _panel_requests(metric, _over(metric, choices, by, answers), by, choices.item)
    )
    named = {panel_request.id: panel_request for panel_request in panel_requests}
    panel_request = named.get(request.args.get("panel", ""), panel_requests[-1])
    title = f"{metric.title}: {panel_request.title}"
    return answers.file(kind, panel_request, title, name_of(panel_request.query, panel_request.id))


def _is_comparable(metric: Metric) -> bool:
    return bool(_ways_of(metric)) and load(COMPARE).refusal(metric) is None


def _ways_of(metric: Metric) -> dict[str, str]:
    """Return what a metric can be compared by, in words."""
    ways = {} if metric.every == ONCE else {BEFORE: "an earlier period"}
    if metric.show == COUNT:
        return ways
    return ways | {name: name.replace("_", " ") for name in metric.segments}


def _metric(answers: Answers, metrics: list[Metric]) -> Metric | None:
    name = request.args.get("metric")
    if name:
        return answers.catalog.metric(name)
    return next(iter(by_length(metrics)), None)


def _by(metric: Metric) -> str:
    ways = _ways_of(metric)
    by = request.args.get("by") or next(iter(ways), "")
    # The form keeps what was chosen for another metric.
    return by if by in ways else next(iter(ways), "")


def _item(metric: Metric, choices: Choices, by: str, answers: Answers) -> str:
    """Return the item that is compared: the chosen one, or the greatest."""
    items = () if metric.show == COUNT else items_of(metric)
    if not items or choices.item in items or not item_needed(metric):
        return choices.item if choices.item in items else ""
    query = choices.query(metric, TOP)
    if by == BEFORE:
        query = structs.replace(query, against=earlier_of(request.args) or PREVIOUS)
    return leading_item(query, metric, answers) or items[0]


def _over(metric: Metric, choices: Choices, by: str, answers: Answers) -> Choices:
    """Return *choices* with the range that is compared where none was chosen.

    It is the longest before which there are reports, too: of a longer one nothing could be said.
    """
    if choices.range or by != BEFORE:
        return choices
    return replace(choices, range=answers.previous_range(metric))


def _panel_requests(metric: Metric, choices: Choices, by: str, item: str) -> Iterator[PanelRequest]:
    of_one = {"item": item} if item else {}
    if not by:
        return
    hint = "All intervals hold at once. An interval that contains 0 shows no detectable change."
    beside = "Intervals of two numbers may overlap though they differ: see the difference."
    if metric.show == COUNT:
        before = earlier_of(request.args) or PREVIOUS
        counts = structs.replace(choices.query(metric, ACTIVES, AVERAGED), against=before)
        yield PanelRequest(DIFFERENCE, f"{metric.title}: devices that reported", counts, _COUNTED)
        return
    if by == BEFORE:
        before = earlier_of(request.args) or PREVIOUS
        queries = [
            structs.replace(choices.query(metric, verb, of_one, [PERIODS_APART]), against=before)
            for verb in (COMPARE, TREND)
        ]
    else:
        value = request.args.get("against")
        held = {"against": value} if value in metric.segments[by] else {}
        queries = [
            choices.query(metric, COMPARE, {**of_one, **held}, [by]),
            choices.query(metric, SEGMENTS, of_one, [by]),
        ]
    yield PanelRequest(DIFFERENCE, f"{metric.title}: difference", queries[0], hint)
    yield PanelRequest("levels", f"{metric.title}: what is compared", queries[1], beside)


def _led(panel_request: PanelRequest, answers: Answers) -> PanelRequest:
    """Return *panel_request* with its rows as links to the page of their segment or item."""
    return replace(panel_request, link=leads_of(panel_request.query, answers.catalog))


def _tells(panels: list[Panel]) -> bool:
    """Return whether a difference could be computed, or its panel shows why not."""
    reply = next((panel.reply for panel in panels if panel.request.id == DIFFERENCE), None)
    return reply is None or any(row.value is not None for row in reply.rows)


def with_periods(panel: Panel, answers: Answers) -> Panel:
    """Return *panel* with its period in the hint, or with the periods that it compares."""
    compared = _with_compared_periods(panel, answers)
    return with_period(panel, answers) if compared is panel else compared


def _with_compared_periods(panel: Panel, answers: Answers) -> Panel:
    """Return *panel* with the two periods in its hint, if it is of a difference.

    It has no axis of time, so notes on days of either period stand above it.
    """
    reply, panel_request = panel.reply, panel.request
    if reply and panel_request.query.against and (said := counts_text(reply)):
        return replace(
            panel, request=replace(panel_request, hint=f"{said} {panel_request.hint}".strip())
        )
    rows = reply.rows if reply else ()
    pairs = {(row.dimensions.get(TIME), row.dimensions.get(AGAINST)) for row in rows}
    if reply is None or reply.meta.chart != Chart.DIFFERENCES or len(pairs) != 1:
        return panel
    every = every_of(reply)
    shown = worded(rows[:1], every=every)[0].dimensions
    read = (Period.read(label or "", every) for label in pairs.pop())
    stretches = [days for period in read if period and (days := period.days)]
    is_running = any(last > answers.today for _, last in stretches)
    running = " (in progress)" if is_running else ""
    periods = f"{shown.get(TIME, 'Each')}{running} against {shown.get(AGAINST)}."
    if not stretches and (said := period_text(reply, answers)):
        periods = f"{periods} {said}."
    notes = [
        _notice(mark)
        for mark in answers.marks(panel_request.query)
        if any(first.isoformat() <= mark.at <= last.isoformat() for first, last in stretches)
    ]
    if len(notes) > MOST_NOTES:
        more = Notice("", f"and {len(notes) - MOST_NOTES} more", url_for("notes.notes_page"))
        notes = [*notes[:MOST_NOTES], more]
    hint = f"{periods} {panel_request.hint}".strip()
    return replace(
        panel, request=replace(panel_request, hint=hint, notices=(*panel_request.notices, *notes))
    )


def _notice(mark: Mark) -> Notice:
    """Return the notice of a note on a day, with its link."""
    if mark.url:
        return Notice(f"{mark.at}:", mark.text, mark.url)
    return Notice(f"{mark.at}: {mark.text}")


def _address(panel_request: PanelRequest) -> str:
    """Return the address of a panel's file: the page's address, with the item it chose."""
    names = {parameter["name"] for parameter in _PARAMETERS}
    chosen: dict[str, object] = {
        "metric": panel_request.query.metrics[0],
        "panel": panel_request.id,
    }
    if item := panel_request.query.options.get("item"):
        chosen["item"] = item
    carried = [
        (name, value)
        for name, value in request.args.items(multi=True)
        if name not in chosen and (name in names or name.startswith(SEGMENT))
    ]
    file = url_for("compare.compare_file", kind="csv")
    return f"{file}?" + urlencode([*carried, *chosen.items()])
