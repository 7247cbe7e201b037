"""What a page says beside its charts: what a number is now, how many devices that is, notes once.

A number over a stretch of time is an average, which after a step tells neither what it was nor what
it is.  So where its line changed beyond noise, both levels stand beside it with their intervals.
The day of the change is estimated, too: levels are of the days on either side of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final

from msgspec import structs

from client_sdk.core.epoch import ONCE
from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry.metric import Metric

from ...analytics.rows import ITEM, RAW, TIME, Period, Row, moment
from ...analytics.verb import ESTIMATE, load
from ...core.errors import BusyError, DamagedTallyError, QueryError, RefusedByStoreError
from ...core.remarks import Code, Remark
from ...query import Answer, Query
from ...query.basis import Basis
from ...query.headline import latest
from ...rendering.numbers import beside, ends_of, numbers_of, reading, value_of
from ...rendering.possible import possible
from ...rendering.wording import (
    capitalized,
    days_in_words,
    last_day,
    remark_text,
    sentence,
    when_counted,
)
from .panels import OVER_TIME, Answers, Notice, Panel

AT_ONCE: Final = (
    "All intervals hold at once: segments whose intervals are apart do differ. Where they overlap, "
    "segments may differ as well: their difference has an interval of its own, on the page Compare."
)
UNSURE: Final = "No interval is wholly above another: noise may make these differences."
_MOST_ORDERED: Final = 8  # segments whose order is told
MOST_STEPS: Final = 3  # items of which a change is told beside a chart
_PERIODS: Final = {"1h": "hour,", "1d": "day,", "7d": "week, from", "28d": "four weeks, from"}
_FAULTS: Final = (
    BusyError,
    QueryError,
    DamagedTallyError,
    RefusedByStoreError,
    UnknownMetricError,
)


@dataclass(frozen=True)
class Level:
    """A number over the days from *first* to *last*."""

    row: Row
    first: date
    last: date

    @property
    def words(self) -> str:
        """It with its interval and its days."""
        low, high = ends_of(self.row)
        days = f"from {self.first} to {self.last}" if self.first < self.last else f"on {self.first}"
        return f"{value_of(self.row)} ({low} to {high}) {days}"


@dataclass(frozen=True)
class Step:
    """What the number of an item is since the change that was detected in its line, and was."""

    what: str  # in words
    since: str  # the stretch of the change, in words
    now: Level
    before: Level | None

    @property
    def number(self) -> str:
        """The number now, with its interval."""
        return reading(self.now.row)

    @property
    def words(self) -> str:
        """Both sides in a sentence."""
        before = f"; before, {self.before.words}" if self.before else ""
        return f"{self.what}: {self.now.words}{before}."


def steps_of(line: Answer | None, query: Query, metric: Metric, answers: Answers) -> list[Step]:
    """Return the steps of the items of *metric* on its *line* over time, the surest first.

    A stretch that is still running is no evidence of a change, and not in the level after it.

    Args: line: the answer to *query*, a trend.
    """
    if line is None:
        return []
    facts, rows = line.meta.facts, line.rows
    sure = [change for change in facts.get("changes", ()) if change["detected"]][:MOST_STEPS]
    alone = [change for change in sure if change["dimensions"].keys() <= {ITEM}]
    unfinished = [_day_of(label) - timedelta(days=1) for label in facts.get("unfinished", ())]
    ends = (_day_of(rows[0].dimensions[TIME]), min([answers.today, *unfinished])) if alone else None
    steps = [_step(change, query, ends, metric, answers) for change in alone if ends]
    return [step for step in steps if step]


def _step(
    change: dict[str, Any],
    query: Query,
    ends: tuple[date, date],
    metric: Metric,
    answers: Answers,
) -> Step | None:
    item, begins = change["dimensions"].get(ITEM, ""), _day_of(change["changed_at"])
    now = _level(item, query, (begins, ends[1]), answers)
    if now is None:
        return None
    before = _level(item, query, (ends[0], begins - timedelta(days=1)), answers)
    since = moment(change["changed_at"], change["stretch"])
    return Step(metric.domain.headline(item), since, now, before)


def _day_of(label: str) -> date:
    """Return the first day of the stretch of *label*, be it an hour, a day, a week or a month."""
    period = Period.read(label)
    assert period is not None  # noqa: S101 - a line over time has no other labels
    return period.begin.date()


def _level(item: str, query: Query, days: tuple[date, date], answers: Answers) -> Level | None:
    """Return the number of *item* over *days*, None if it has none."""
    if days[0] > days[1]:
        return None
    first, last = (day.isoformat() for day in days)
    whole = structs.replace(
        query, verb=ESTIMATE, date_range=(first, last), dimensions=[], options={}, postprocess=RAW
    )
    try:
        rows = possible(answers.reply(whole, is_checked=False).rows)
    except _FAULTS:
        return None
    row = next((row for row in rows if row.item == item and row.value is not None), None)
    return Level(row, *days) if row else None


def with_levels(
    panels: Sequence[Panel], metric: Metric, answers: Answers
) -> tuple[list[Step], list[Panel]]:
    """Return the steps on the line among *panels*, the first of which tells what it averages.

    Those of segments tell which of them are higher, if any is: AT_ONCE tells of the others.
    """
    first, *others = (with_order(panel, is_sure=True) for panel in panels)
    line = next((panel for panel in others if panel.wish.id == OVER_TIME), None)
    reply = line.reply if line else None
    steps = steps_of(reply, line.wish.query, metric, answers) if line else []
    if first.reply is None:
        return steps, [first, *others]
    average = counts_told(first.reply) or averaged(
        first.reply.meta.metrics[0], steps, reply, answers.today
    )
    return steps, [_with_notice(first, Notice(average)) if average else first, *others]


def counts_told(reply: Answer) -> str:
    """Return the last two counts of a *reply* that counts devices, "" of another."""
    rows = latest(reply.rows)[-2:] if load(reply.meta.verb).counts_devices else []
    if not rows or rows[-1].value is None:
        return ""
    basis, label = reply.meta.metrics[0], rows[-1].dimensions[TIME]
    stretch = next(name for name in (*reply.meta.query.dimensions, TIME) if name.startswith(TIME))
    when = when_counted(label, basis.every, stretch)
    return f"{capitalized(when)}: {beside(rows[-1], rows[0] if rows[1:] else None)}."


def averaged(basis: Basis, steps: Sequence[Step], line: Answer | None, today: date) -> str:
    """Return of which days a number is the average, and what its line did in them.

    "" where it is no average.
    """
    if basis.every == ONCE or basis.window.first == basis.window.last:
        return ""
    rows = line.rows if line else ()
    first = rows[0].dimensions[TIME] if rows else basis.window.first
    days = f"The average of {first} to {end_of(basis, today)}"
    if steps:
        return f"{days}, across a change. {' '.join(step.words for step in steps)}"
    if line is None or not line.meta.facts.get("changes"):
        return f"{days}."
    return f"{days}; no change was detected in them."


def end_of(basis: Basis, today: date) -> str:
    """Return the last day that reports are of, which of a running window is *today*."""
    end = last_day(basis.window.last, basis.every)
    return min(end, today.isoformat()) if basis.window_open and end[:1].isdigit() else end


def with_days(panel: Panel, answers: Answers) -> Panel:
    """Return *panel* with the days that its numbers are of first in its hint, where one tells."""
    said = days_told(panel.reply, answers) if panel.reply else ""
    hint = f"{said} {panel.wish.hint}".strip()
    return replace(panel, wish=replace(panel.wish, hint=hint)) if said else panel


def days_told(reply: Answer, answers: Answers) -> str:
    """Return of which days the numbers of *reply* are; "" of metrics of different windows."""
    windows = {(each.window, each.every) for each in reply.meta.metrics}
    if len(windows) > 1:
        return ""
    window, every = windows.pop()
    if every == ONCE:
        return "Each device is asked once; these are all reports so far."
    period = Period.read(f"{window.first}/{window.last}", every)
    if period is None or (days := period.days) is None:  # hours
        return ""
    first = answers.first_day([each.name for each in reply.meta.metrics], days)
    label = f"{first}/{window.last}"
    words = days_in_words([label], every, today=answers.today)[label]
    before = "; of the days before there are no reports" if first > days[0] else ""
    return f"{words}{before}."


def sample_in_words(metric: Metric, panels: Iterable[Panel]) -> str:
    """Return who answers *metric*, "" if that is everybody or one of *panels* says it."""
    remarks = (each for panel in panels for each in panel.remarks)
    is_said = any(each.code == Code.SAMPLE for each in remarks)
    return "" if is_said else sentence(metric.sample.in_words or "")


def without_title(panel: Panel) -> Panel:
    """Return *panel*, whose heading names its metric, with warnings that need not if it is one."""
    return (
        replace(panel, titles=dict.fromkeys(panel.titles, "")) if len(panel.titles) == 1 else panel
    )


def with_order(panel: Panel, *, is_sure: bool = False) -> Panel:
    """Return *panel* with which of its segments are surely higher than which others.

    Their intervals hold at once, so this is true of all with the level that they have.

    Args: is_sure: nothing is told where none is.
    """
    reply, query = panel.reply, panel.wish.query
    if reply is None:  # and nobody knows whether there is such a verb
        return panel
    rows = reply.rows
    is_ranked = load(query.verb).ranks_segments and query.postprocess == RAW
    if (
        not is_ranked
        or not 1 < len(rows) <= _MOST_ORDERED
        or any(TIME in row.dimensions for row in rows)
    ):
        return panel
    order = order_text(rows)
    return _with_notice(panel, Notice(order or UNSURE)) if order or not is_sure else panel


def order_text(rows: Sequence[Row]) -> str:
    """Return which of *rows* are higher than which others, as their intervals are apart, or ""."""
    numbered = [row for row in rows if numbers_of(row)]
    known = sorted(numbered, key=lambda row: -(row.value or 0.0))
    sure = []
    for row in known:
        lower = [_segment(other) for other in known if (other.ci_high or 0) < (row.ci_low or 0)]
        if lower:
            *others, last = lower
            than = f"{', '.join(others)} and {last}" if others else last
            sure.append(f"{_segment(row)} is higher than {than}")
    return f"More than noise: {'; '.join(sure)}." if sure else ""


def _segment(row: Row) -> str:
    return " · ".join(value for name, value in row.dimensions.items() if name != ITEM)


def _with_notice(panel: Panel, *notices: Notice) -> Panel:
    """Return *panel* with *notices* above its chart, after those that it has."""
    wish = replace(panel.wish, notices=(*panel.wish.notices, *notices))
    return replace(panel, wish=wish)


def said_once(panels: Sequence[Panel]) -> tuple[list[str], list[Panel]]:
    """Return what several of *panels* would say, once, and the panels without it.

    What not all of them say is told after their titles.
    """
    titles: dict[Remark, list[str]] = {}
    for panel in panels:
        for remark in panel.remarks:
            titles.setdefault(remark, []).append(panel.wish.title)
    common = {remark: of for remark, of in titles.items() if len(of) > 1}
    kept = [
        replace(panel, remarks=tuple(each for each in panel.remarks if each not in common))
        for panel in panels
    ]
    return [
        _of_some(remark, of if len(of) < len(panels) else []) for remark, of in common.items()
    ], kept


def _of_some(remark: Remark, titles: Sequence[str]) -> str:
    """Return *remark* after the *titles* of the panels that have it, unless it is of the metric."""
    if remark.metric or not titles:
        return remark_text(remark, {remark.metric: ""})
    return remark_text(remark, {"": ", ".join(titles)})
