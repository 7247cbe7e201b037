"""The items of a metric that its pages show one of, and the pages that their rows lead to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from client_sdk.core.epoch import ONCE
from client_sdk.registry.metric import Metric

from ...analytics.rows import TIME, Row
from ...analytics.verb import TOP
from ...core.catalog import Catalog
from ...core.errors import BusyError, DamagedTallyError, QueryError, RefusedByStoreError
from ...query import Query
from ...query.headline import greatest
from ...query.window import PERIOD
from .choices import DATES, Choices, segment_of
from .drill import leads
from .panels import Answers

PERIODS_APART: Final = f"{TIME}:{PERIOD}"  # the dimension of two periods that are compared


def item_needed(metric: Metric) -> bool:
    """Return whether an item must be chosen for numbers of segments."""
    return len(metric.domain.answer_items()) > 1


def items_of(metric: Metric) -> tuple[str, ...]:
    """Return the items that can be chosen: steps to reach, periods to come back in, or values."""
    return metric.domain.compared or (metric.domain.labels if item_needed(metric) else ())


def usual_item(metric: Metric, rows: Sequence[Row]) -> str:
    """Return the item that is shown if none is chosen: the greatest, or the end of a funnel."""
    items = items_of(metric)
    if metric.domain.compared:
        return items[-1]
    leading = greatest([row for row in rows if row.item in items])
    return leading.item if leading else ""


def leading_item(query: Query, metric: Metric, answers: Answers) -> str:
    """Return the usual item of *metric* over the reports of *query*; "" if that cannot be asked.

    Of two periods that is the greatest of both together: the greatest of one owes some of that to
    noise, which the other has not, so the difference would be one by the choice alone.
    """
    top = Query([metric.address], TOP, query.date_range, filters=query.filters)
    if query.against is not None:
        top = structs.replace(top, dimensions=[PERIODS_APART], against=query.against)
    try:
        rows = [row for row in answers.reply(top).rows if row.value is not None]
    except (BusyError, DamagedTallyError, QueryError, RefusedByStoreError):
        return ""
    totals = defaultdict[str, float](float)
    for row in rows:
        totals[row.item] += row.value or 0.0
    return usual_item(metric, [structs.replace(row, value=totals[row.item]) for row in rows])


def called(metric: Metric, item: str) -> str:
    """Return *item* as people call it; a cell of a map by its degrees."""
    domain = metric.domain
    if not domain.coded or item not in domain.labels:
        return item
    return domain.item_in_words(domain.labels.index(item))


def has_choice(metric: Metric) -> bool:
    """Return whether the page of *metric* has a part about one item."""
    is_line = metric.every != ONCE and not metric.domain.compared
    return item_needed(metric) and (is_line or bool(metric.segments))


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
    return leads(metric, chosen, items_of(metric) if has_choice(metric) else (), stretch)
