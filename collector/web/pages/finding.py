"""What the page of a metric says first: its number with the interval, of when, and what it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from client_sdk.core.epoch import ONCE
from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry.metric import COUNT, Metric

from ...analytics.rows import MEASURE, TIME, Row
from ...analytics.verb import ESTIMATE, QUANTILE
from ...core.errors import BusyError, DamagedTallyError, QueryError, RefusedByStoreError
from ...query.headline import headline, is_listed, latest, question
from ...rendering.charts import Mark
from ...rendering.numbers import margin, numbers_of, value_of
from ...rendering.possible import possible
from ...rendering.wording import when_counted
from .changes import Change, change_of_step
from .choices import Choices, granularity
from .items import items_of
from .metric_panels import LEVELS, levels_of
from .panels import Answers
from .remarks import Step, counts_text


@dataclass(frozen=True)
class Finding:
    """The number that answers the question of a metric."""

    value: str = ""  # in words with its unit; "" if there is none
    margin: str = ""  # half of its interval, or both ends
    what: str = ""  # it is of: an item, or "" of what the title says
    when: str = ""  # it is of, where that is not all of the time
    before: str = ""  # beside the time before, of counts
    reason: str = ""  # why there is no number
    changes: tuple[Change, ...] = ()  # of its line, that are more than noise


def finding_of(
    metric: Metric,
    choices: Choices,
    steps: Sequence[Step],
    marks: Sequence[Mark],
    answers: Answers,
) -> Finding:
    """Return what is known of *metric* over the days and segments of *choices*.

    Args: steps: changes of its line; the number is since the one of its item, if there is one.
          marks: the notes that the chart of its line shows.
    """
    if not is_listed(metric):  # only a search tells what there is: no number stands for it
        return Finding()
    verb, options = _question(metric, choices.item)
    stretches = [granularity(metric, choices)] if metric.show == COUNT else []
    try:
        reply = answers.reply(choices.query(metric, verb, options, stretches), is_checked=False)
    except (BusyError, DamagedTallyError, QueryError, RefusedByStoreError, UnknownMetricError):
        return Finding()  # the panels say why
    rows = possible(reply.rows, reply.meta.chart)
    if metric.show == COUNT:
        counted = latest(rows)
        if not counted or counted[-1].value is None:
            return Finding(reason="No reports in these days.")
        last = counted[-1]
        when = when_counted(last.dimensions[TIME], metric.every, stretches[0])
        return Finding(value_of(last), margin(last), "", when, counts_text(reply))
    own = [row for row in rows if row.item == choices.item]
    row = own[0] if own else headline(metric, rows)
    if row is None or numbers_of(row) is None:
        return Finding(reason=row.reason or "" if row else "")
    each = (change_of_step(metric, step, marks) for step in steps if metric.every != ONCE)
    changes = tuple(change for change in each if change)
    step = next((step for step in steps if step.now.row.item == row.item), None)
    if step is not None and changes:
        number = step.now.row
        return Finding(
            value_of(number),
            margin(number, in_words=True),
            subject_of(metric, number),
            f"since {step.since}",
            changes=changes,
        )
    what = choices.item if choices.item in levels_of(metric) else subject_of(metric, row)
    return Finding(value_of(row), margin(row, in_words=True), what, changes=changes)


def subject_of(metric: Metric, row: Row) -> str:
    """Return what the number of a *row* of *metric* is of, in words that follow it."""
    if metric.domain.boolean:
        return "of devices"
    return metric.domain.headline(row.item, row.dimensions.get(MEASURE, ""))


def _question(metric: Metric, item: str) -> tuple[str, dict[str, object]]:
    """Return verb and options of the number that stands for *metric*, or for a chosen *item*."""
    if item in levels_of(metric):
        return QUANTILE, {"levels": [LEVELS[item]]}
    if item in items_of(metric) and not metric.domain.compared:
        return ESTIMATE, {}  # one item that was not picked for its size
    return question(metric, 1)
