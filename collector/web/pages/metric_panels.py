"""The questions that the page of a metric asks: its own, over time, and of each group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from client_sdk.core.epoch import ONCE
from client_sdk.mechanisms import DistributionMechanism
from client_sdk.registry.metric import COUNT, Metric

from ...analytics.comparing.arms import arms_of, control_of
from ...analytics.rows import TIME
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
from ...query import Query
from ...query.run import HOLDS
from ...rendering.wording import capitalized
from .choices import DATES, Choices, granularity
from .items import called, item_needed, items_of
from .panels import OVER_TIME, PanelRequest

# The parts of the page, in order; the main chart stands above them.
BREAKDOWN, DISTRIBUTION, EXPERIMENT, ADOPTED, DEVICES = PARTS = (
    "breakdown",
    "distribution",
    "experiment",
    "adoption",
    "devices",
)
_LINES: Final = 20  # items with a trend without choosing one
LEVELS: Final = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_LEVEL_HINT: Final = "The share of devices below it is in its name: 95 % are below p95."
_DEVICES: Final = "Devices that reported"
_OF_REPORTS: Final = "Exact shares of reports: versions are sent in the clear, without noise."
_OF_SAMPLE: Final = f"Shares of a sample: {HOLDS[OF_ALL]}; only the choice of the sample is random."


def own_panel(metric: Metric, choices: Choices) -> PanelRequest:
    """Return the metric's own question, in the form for its type."""
    if metric.show == COUNT:
        return PanelRequest("answer", _DEVICES, _counted(metric, choices), full=True)
    verb, options, title = _own(metric)
    return PanelRequest(
        "answer",
        title,
        choices.query(metric, verb, options),
        full=metric.every == ONCE or bool(metric.domain.compared),
        part=DISTRIBUTION if isinstance(metric.mechanism, DistributionMechanism) else BREAKDOWN,
    )


def more_panels(metric: Metric, choices: Choices, item: str) -> Iterator[PanelRequest]:
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
            panel_requests.append(PanelRequest(f"count-{dimension}", title, query, part=DEVICES))
        else:
            panel_requests += _by(metric, choices, dimension, item)
    yield from (
        panel_request
        for panel_request in panel_requests
        if load(panel_request.query.verb).refusal(metric) is None
    )


def _counted(metric: Metric, choices: Choices, *by: str) -> Query:
    return choices.query(metric, ACTIVES, AVERAGED, [granularity(metric, choices), *by])


def levels_of(metric: Metric) -> tuple[str, ...]:
    """Return the quantiles that can be followed over time in place of the mean."""
    is_followed = isinstance(metric.mechanism, DistributionMechanism) and metric.every != ONCE
    return tuple(LEVELS) if is_followed else ()


def _own(metric: Metric) -> tuple[str, dict[str, object], str]:
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
        yield PanelRequest("up-to", "Cumulative distribution", query, part=DISTRIBUTION)
        levels = {"levels": [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]}
        query = choices.query(metric, QUANTILE, levels)
        yield PanelRequest(
            "quantiles",
            "Quantiles",
            query,
            "Half of the devices are below the median, nine in ten below p90.",
            part=DISTRIBUTION,
        )


def _over_time(metric: Metric, choices: Choices, item: str) -> Iterator[PanelRequest]:
    if metric.every == ONCE:
        return
    stretch = granularity(metric, choices)
    items = items_of(metric)
    wants_one = len(items) > _LINES or bool(choices.item)
    if choices.item in levels_of(metric):
        query = choices.query(metric, TREND, {"levels": [LEVELS[choices.item]]}, [stretch])
        title = f"{choices.item} over time"
        yield PanelRequest(OVER_TIME, title, query, _LEVEL_HINT, full=True)
    elif not metric.domain.compared and (not wants_one or item):
        options = {"item": item} if wants_one else {}
        title = f"{called(metric, item)} over time" if wants_one else "Over time"
        query = choices.query(metric, TREND, options, [stretch])
        yield PanelRequest(OVER_TIME, title, query, full=metric.show != COUNT)
    if metric.show == COUNT:
        return
    # Stretches longer than an epoch have only bounds.
    in_days = metric.every == "1d" and choices.range != DATES
    counted = f"{TIME}:day" if in_days else stretch
    query = choices.query(metric, ACTIVES, dimensions=[counted])
    yield PanelRequest("devices", _DEVICES, query, part=DEVICES)


def _by(metric: Metric, choices: Choices, dimension: str, item: str) -> Iterator[PanelRequest]:
    name = dimension.replace("_", " ")
    if item_needed(metric) and not item:
        return
    of_one = {"item": item} if item_needed(metric) else {}
    words = called(metric, item)
    if metric.domain.compared:
        words = capitalized(metric.domain.headline(item))
    what = f"{capitalized(words)} by {name}" if of_one else f"By {name}"
    query = choices.query(metric, SEGMENTS, of_one, [dimension])
    yield PanelRequest(f"by-{dimension}", what, query, part=BREAKDOWN)
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
        yield PanelRequest(f"lift-{dimension}", title, query, hint, part=EXPERIMENT)
    spreading = load(ADOPTION).about(metric)
    if dimension in spreading and metric.every != ONCE:
        stretch = granularity(metric, choices)
        query = choices.query(metric, ADOPTION, dimensions=[stretch, dimension])
        hint = _OF_SAMPLE if metric.sample.share < 1 else _OF_REPORTS
        yield PanelRequest(
            f"spread-{dimension}",
            f"Adoption by {name}",
            query,
            hint,
            part=ADOPTED,
        )
