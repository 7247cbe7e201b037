"""The page of a metric: all that its type can answer, over time and by segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from flask import Blueprint, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from client_sdk.core.epoch import ONCE
from client_sdk.mechanisms import DistributionMechanism
from client_sdk.privacy.budget import odds
from client_sdk.registry.metric import COUNT, Metric

from ...analytics.comparing.arms import arms_of, control_of
from ...analytics.rows import TIME, Row
from ...analytics.sums import is_joined
from ...analytics.verb import (
    ACTIVES,
    ADOPTION,
    AVERAGED,
    CDF,
    HISTOGRAM,
    LIFT,
    OF_ALL,
    QUANTILE,
    SEGMENTS,
    TREND,
    load,
    summary,
)
from ...core.catalog import ADDRESS, Catalog
from ...core.credentials import ASK, VIEW
from ...core.text_tables import above
from ...query import Query
from ...query.headline import greatest
from ...query.request import SEGMENT
from ...query.run import HOLDS
from ...query.window import PREVIOUS
from ...rendering.wording import capitalized
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
    granularity,
    require_known,
    segment_of,
)
from .drill import leads
from .files import CSV, FILES, KIND_PARAMETER, name_of
from .layout import RANGE_PARAMETERS, shown
from .panels import (
    ALL_DRAWN,
    MOST_DRAWN,
    OVER_TIME,
    PERIODS,
    Answers,
    Notice,
    Panel,
    PanelRequest,
    in_columns,
)
from .remarks import AT_ONCE, end_of, sample_in_words, shared_warnings, with_levels

_MUCH_LATE: Final = 0.2  # share of late reports from which it is shown
_LINES: Final = 20  # items with a trend without choosing one
LEVELS: Final = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_LEVEL_HINT: Final = "The share of devices below it is in its name: 95 % are below p95."
blueprint = Blueprint("metric", __name__)
_NAME = in_path("name", f"^{ADDRESS}$", "The name of a metric, or app/name.")
_DEVICES: Final = "Devices that reported"
_OF_REPORTS: Final = "Exact shares of reports: versions are sent in the clear, without noise."
_OF_SAMPLE: Final = f"Shares of a sample: {HOLDS[OF_ALL]}; only the choice of the sample is random."
_PANEL = in_path("panel", "^[A-Za-z0-9_-]+$", "The name of a panel of the page.")
_ITEM = in_query("item", {"type": "string"}, "The item that segments and lines are about.")
_ALL = in_query("all", {"type": "string"}, "The name of a panel whose chart has all its rows.")
BEFORE_PARAMETER: Final = in_query(
    "before", {"enum": [*PERIODS, ""]}, "The earlier period that is drawn below lines."
)
_PARAMETERS = (_ITEM, *RANGE_PARAMETERS)
_SHOWN = (_ALL, BEFORE_PARAMETER)


def _main_panel(metric: Metric, choices: Choices) -> PanelRequest:
    """Return the metric's own question, in the form for its type."""
    if metric.show == COUNT:
        return PanelRequest("answer", _DEVICES, _counted(metric, choices))
    verb, options, title = _own(metric)
    return PanelRequest("answer", title, choices.query(metric, verb, options))


def _more_panels(metric: Metric, choices: Choices, item: str) -> Iterator[PanelRequest]:
    """Yield the further questions.

    Args: item: the item of segments and lines where one must be chosen; "" for none.
    """
    panel_requests: list[PanelRequest] = []
    if metric.show != COUNT or not metric.domain.boolean:  # where every report is true
        panel_requests += [*_of_numbers(metric, choices), *_over_time(metric, choices, item)]
    for dimension in metric.segments:
        if metric.show == COUNT:
            title = f"{_DEVICES}, by {dimension.replace('_', ' ')}"
            query = _counted(metric, choices, dimension)
            panel_requests.append(PanelRequest(f"count-{dimension}", title, query))
        else:
            panel_requests += _by(metric, choices, dimension, item)
    yield from (
        panel_request
        for panel_request in panel_requests
        if load(panel_request.query.verb).refusal(metric) is None
    )


def _counted(metric: Metric, choices: Choices, *by: str) -> Query:
    return choices.query(metric, ACTIVES, AVERAGED, [granularity(metric, choices), *by])


def item_needed(metric: Metric) -> bool:
    """Return whether an item must be chosen for numbers of segments."""
    return len(metric.domain.answer_items()) > 1


def items_of(metric: Metric) -> tuple[str, ...]:
    """Return the items that can be chosen: steps to reach, periods to come back in, or values."""
    return metric.domain.compared or (metric.domain.labels if item_needed(metric) else ())


def _levels_of(metric: Metric) -> tuple[str, ...]:
    """Return the quantiles that can be followed over time in place of the mean."""
    is_followed = isinstance(metric.mechanism, DistributionMechanism) and metric.every != ONCE
    return tuple(LEVELS) if is_followed else ()


def leads_of(query: Query, catalog: Catalog) -> Callable[[Row], str] | None:
    """Return the function from a row of the answer to *query* to the page that it links to.

    None for a question about several metrics: their rows have no pages.
    """
    if len(query.metrics) != 1:
        return None
    metric, days = catalog.metric(query.metrics[0]), query.date_range
    chosen = Choices(days or "") if days is None or isinstance(days, str) else Choices(DATES, *days)
    segment = (pair for pair in segment_of(query.filters) if pair[0] in metric.segments)
    chosen = replace(chosen, segment=tuple(segment), item=str(query.options.get("item", "")))
    stretch = next((name for name in query.dimensions if name.startswith(TIME)), TIME)
    return leads(metric, chosen, items_of(metric) if _has_choice(metric) else (), stretch)


def usual_item(metric: Metric, rows: Sequence[Row]) -> str:
    """Return the item that is shown if none is chosen: the greatest, or the end of a funnel."""
    items = items_of(metric)
    if metric.domain.compared:
        return items[-1]
    leading = greatest([row for row in rows if row.item in items])
    return leading.item if leading else ""


def called(metric: Metric, item: str) -> str:
    """Return *item* as people call it; a cell of a map by its degrees."""
    domain = metric.domain
    if not domain.coded or item not in domain.labels:
        return item
    return domain.item_in_words(domain.labels.index(item))


def _has_choice(metric: Metric) -> bool:
    """Return whether the page of *metric* has a part about one item."""
    is_line = metric.every != ONCE and not metric.domain.compared
    return item_needed(metric) and (is_line or bool(metric.segments))


def _own(metric: Metric) -> tuple[str, dict[str, Any], str]:
    """Return verb, options and title of the metric's own question."""
    verb, size = metric.domain.verb, len(metric.domain.labels)
    if isinstance(metric.mechanism, DistributionMechanism):
        verb = HISTOGRAM
    own = load(verb)
    if 0 < size <= own.panel.get("k", 0):  # sorted where it is shown, so intervals hold at once
        return verb, {"k": size}, "Share of devices"
    return verb, dict(own.panel), own.title or summary(verb).rstrip(".")


def _of_numbers(metric: Metric, choices: Choices) -> Iterator[PanelRequest]:
    if isinstance(metric.mechanism, DistributionMechanism):
        query = choices.query(metric, CDF)
        yield PanelRequest("up-to", "Cumulative distribution", query)
        levels = {"levels": [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]}
        query = choices.query(metric, QUANTILE, levels)
        yield PanelRequest(
            "quantiles",
            "Quantiles",
            query,
            "Half of the devices are below the median, nine in ten below p90.",
        )


def _over_time(metric: Metric, choices: Choices, item: str) -> Iterator[PanelRequest]:
    if metric.every == ONCE:
        return
    stretch = granularity(metric, choices)
    items = items_of(metric)
    wants_one = len(items) > _LINES or bool(choices.item)
    if choices.item in _levels_of(metric):
        query = choices.query(metric, TREND, {"levels": [LEVELS[choices.item]]}, [stretch])
        yield PanelRequest(OVER_TIME, f"{choices.item} over time", query, _LEVEL_HINT)
    elif not metric.domain.compared and (not wants_one or item):
        options = {"item": item} if wants_one else {}
        title = f"{called(metric, item)} over time" if wants_one else "Over time"
        yield PanelRequest(OVER_TIME, title, choices.query(metric, TREND, options, [stretch]))
    if metric.show == COUNT:
        return
    # Stretches longer than an epoch have only bounds.
    in_days = metric.every == "1d" and choices.range != DATES
    counted = f"{TIME}:day" if in_days else stretch
    query = choices.query(metric, ACTIVES, dimensions=[counted])
    yield PanelRequest("devices", _DEVICES, query)


def _by(metric: Metric, choices: Choices, dimension: str, item: str) -> Iterator[PanelRequest]:
    name = dimension.replace("_", " ")
    if item_needed(metric) and not item:
        return
    of_one = {"item": item} if item_needed(metric) else {}
    words = called(metric, item)
    if metric.domain.compared:
        words = capitalized(metric.domain.headline(item))
    what = f"{words} by {name}" if of_one else f"By {name}"
    hint = AT_ONCE if dimension == next(iter(metric.segments)) else ""  # it is true of all
    query = choices.query(metric, SEGMENTS, of_one, [dimension])
    yield PanelRequest(f"by-{dimension}", what, query, hint)
    if dimension in arms_of(metric):
        options = {"dimension": dimension, "control": control_of(metric.segments[dimension])}
        alone = of_one if choices.item or len(items_of(metric)) > _LINES else {}
        query = choices.query(metric, LIFT, {**options, **alone}, [dimension])
        hint = "This assumes that devices are in their arms by chance."
        treated = [value for value in metric.segments[dimension] if value != options["control"]]
        arms = treated[0] if len(treated) == 1 else "each arm"
        title = f"Experiment: {arms} vs {options['control']}"
        if alone and metric.domain.compared:
            title = f"{title}: {metric.domain.headline(item)}"
        yield PanelRequest(f"lift-{dimension}", title, query, hint)
    spreading = load(ADOPTION).about(metric)
    if dimension in spreading and metric.every != ONCE:
        stretch = granularity(metric, choices)
        query = choices.query(metric, ADOPTION, dimensions=[stretch, dimension])
        hint = _OF_SAMPLE if metric.sample.share < 1 else _OF_REPORTS
        yield PanelRequest(f"spread-{dimension}", f"Adoption by {name}", query, hint)


@blueprint.get("/metric/<metric:name>")
@scope(VIEW, page=True)
def metric_page(name: str) -> ResponseReturnValue:
    """Show all answers of a metric: its own question, over time, and by segment."""
    require_known(request.args, (*_PARAMETERS, *_SHOWN), SEGMENT)
    answers, choices = Answers(relay=services().config.relay), choices_of(request.args)
    metric = answers.catalog.metric(name)
    notices = tuple(_notices(metric, choices, answers))
    panel_request = _shown(_main_panel(metric, choices), metric, choices, notices)
    first = answers.panel(panel_request, _csv(metric, panel_request, choices))
    item = _item(metric, choices, first)
    panels = [
        first,
        *(
            answers.panel(
                _shown(panel_request, metric, choices, notices),
                _csv(metric, panel_request, choices),
            )
            for panel_request in _more_panels(metric, choices, item)
        ),
    ]
    steps, panels = with_levels(panels, metric, answers)
    basis = first.reply.meta.metrics[0] if first.reply else None
    sample = sample_in_words(metric, panels)
    notes, panels = shared_warnings(panels)
    return shown(
        "metric.html",
        metric=metric,
        sample=sample,
        notes=notes,
        columns=in_columns(panels),
        panels=panels,
        basis=basis,
        last_day=basis and end_of(basis, answers.today),
        steps=steps,
        shuffled=(basis and basis.epsilon_shuffled) or None,
        above=above,
        chosen=choices.shown_for([metric]),
        ranges=choices.ranges([metric]),
        items=_levels_of(metric) or (items_of(metric) if _has_choice(metric) else ()),
        called=partial(called, metric),
        is_number=bool(_levels_of(metric)),
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
    yield _main_panel(metric, choices)
    yield from _more_panels(metric, choices, choices.item)


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
    if answers.has_earlier(metric, _main_panel(metric, choices).query, choices.against):
        return
    if choices.against != PREVIOUS:
        yield Notice("There are no reports of the same dates a year ago.")
        return
    longest = answers.previous_range(metric)
    whole, named = replace(whole, range=longest), WORDS[longest]
    if answers.has_earlier(metric, _main_panel(metric, whole).query, PREVIOUS):
        url = page + whole.address()
        words = f"Choose {named} to compare"
        yield Notice("The previous period has no reports.", words, url)
    else:
        yield Notice("The previous period has no reports, for this range or any shorter one.")


def _shown(
    panel_request: PanelRequest, metric: Metric, choices: Choices, notices: tuple[Notice, ...]
) -> PanelRequest:
    """Return *panel_request* with the links of its rows and the period to compare with."""
    is_over_time = any(name.startswith(TIME) for name in panel_request.query.dimensions)
    stretch = next((name for name in panel_request.query.dimensions if name.startswith(TIME)), TIME)
    own = replace(choices, item=str(panel_request.query.options.get("item", "")) or choices.item)
    page = url_for("metric.metric_page", name=metric.address) + choices.address()
    return replace(
        panel_request,
        link=leads(metric, own, items_of(metric) if _has_choice(metric) else (), stretch),
        against=choices.against,
        rows=ALL_DRAWN if request.args.get("all") == panel_request.id else MOST_DRAWN,
        notices=notices if is_over_time else (),
        all_rows=f"{page}{'&' if '?' in page else '?'}all={panel_request.id}#{panel_request.id}",
    )


def _csv(metric: Metric, panel_request: PanelRequest, choices: Choices) -> str:
    """Return the address of a panel's file, which includes the panel's item."""
    item = str(panel_request.query.options.get("item", ""))
    if "levels" in panel_request.query.options and panel_request.id == OVER_TIME:
        item = choices.item
    is_over_time = any(name.startswith(TIME) for name in panel_request.query.dimensions)
    against = choices.against if is_over_time else ""
    address = replace(choices, item=item, against=against).address()
    file = url_for("metric.metric_file", name=metric.address, panel=panel_request.id, kind="csv")
    return file + address


def _item(metric: Metric, choices: Choices, first: Panel) -> str:
    """Return the item of segments: the chosen one, or else the greatest."""
    items = items_of(metric)
    if not item_needed(metric) or choices.item in items:
        return choices.item if choices.item in items else ""
    return usual_item(metric, first.reply.rows if first.reply else ())
