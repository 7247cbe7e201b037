"""What the page of a metric says first: its number with the interval, of when, and what it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from client_sdk.core.epoch import ONCE
from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry.metric import COUNT, Metric

from ...analytics.rows import MEASURE, TIME
from ...core.errors import BusyError, DamagedTallyError, QueryError, RefusedByStoreError
from ...query.headline import headline, is_listed, latest, question
from ...rendering.charts import Mark
from ...rendering.numbers import margin, numbers_of, value_of
from ...rendering.possible import possible
from ...rendering.wording import when_counted
from .changes import Change, change_of_step
from .choices import Choices, granularity
from .panels import Answers
from .remarks import Step, counts_text, period_text


@dataclass(frozen=True)
class Finding:
    """The number that answers the question of a metric."""

    value: str = ""  # in words with its unit; "" if there is none
    margin: str = ""  # half of its interval, or both ends
    what: str = ""  # it is of: an item, or "" of what the title says
    when: str = ""  # it is of, as a sentence
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

    Args: steps: changes of its line; the number is since the first of them.
          marks: the notes that the chart of its line shows.
    """
    if not is_listed(metric):  # only a search tells what there is: no number stands for it
        return Finding()
    verb, options = question(metric, 1)
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
    row = headline(metric, rows)
    if row is None or numbers_of(row) is None:
        return Finding(reason=row.reason or "" if row else "")
    if steps and metric.every != ONCE:
        first, number = steps[0], steps[0].now.row
        each = (change_of_step(metric, step, marks) for step in steps)
        return Finding(
            value_of(number),
            margin(number, in_words=True),
            first.what,
            f"since {first.since}",
            changes=tuple(change for change in each if change),
        )
    what = metric.domain.headline(row.item, row.dimensions.get(MEASURE, ""))
    when = "" if metric.every == ONCE else period_text(reply, answers)
    return Finding(value_of(row), margin(row, in_words=True), what, when)
