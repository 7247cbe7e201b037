"""The remarks of a page: current numbers, counts of devices, rankings, and shared warnings.

A number over a stretch of time is an average, which after a step shows neither the old level nor
the new one.  So where the line changed beyond noise, both levels are given with their intervals.
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

from ...analytics.rows import AGAINST, ITEM, MEASURE, RAW, SHARE, TIME, Chart, Period, Row
from ...analytics.verb import ESTIMATE, load
from ...core.errors import BusyError, DamagedTallyError, QueryError, RefusedByStoreError
from ...core.remarks import Code, Remark
from ...query import Answer, Query
from ...query.basis import Basis
from ...query.headline import latest
from ...rendering.charts.frame import named
from ...rendering.numbers import POINTS, beside, ends_of, margin, numbers_of, value_of
from ...rendering.possible import possible
from ...rendering.wording import (
    capitalized,
    days_in_words,
    remark_text,
    sentence,
    since_in_words,
    when_counted,
)
from .panels import OVER_TIME, Answers, Notice, Panel

AT_ONCE: Final = (
    "All intervals hold at once: segments whose intervals are apart do differ. Where they overlap, "
    "segments may differ as well: their difference has an interval of its own, on the page Compare."
)
UNSURE: Final = "No interval is wholly above another: noise may make these differences."
_MOST_ORDERED: Final = 8  # segments that are ranked
MOST_STEPS: Final = 3  # items whose change is described
# What is true of all numbers of a page and changes none of them: its drawer tells it once.
_GENERAL: Final = frozenset(
    {
        Code.SAMPLE,
        Code.FURTHEST_STEP,
        Code.ONLY_REPORTING,
        Code.PERIODS,
        Code.ONCE_EACH,
        Code.LOOK_ONCE,
        Code.NOT_DRAWN,
        Code.EXACT,
        Code.CHANGE,  # the head of the page tells it
    }
)
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
        label = f"{self.first}/{self.last}"
        return f"{value_of(self.row)} ({low} to {high}), {days_in_words([label])[label]}"


@dataclass(frozen=True)
class Step:
    """What the number of an item is since the change that was detected in its line, and was."""

    what: str  # in words
    label: str  # of the stretch of the change, as an answer by time has it
    stretch: str  # how long it is, as metrics say how often they are reported
    now: Level
    before: Level | None

    @property
    def since(self) -> str:
        """The stretch of the change, in words."""
        return since_in_words(self.label, self.stretch)

    @property
    def stretch_end(self) -> date:
        """The last day of that stretch."""
        period = Period.read(self.label, self.stretch)
        return period.days[1] if period and period.days else self.now.first

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
    what = metric.domain.headline(item)
    return Step(what, change["changed_at"], change["stretch"], now, before)


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
    """Return the steps on the line among *panels*, and the panels with their remarks.

    The first panel gets the period that it averages.  Panels of segments get a ranking, if any
    segment is higher: AT_ONCE explains the others.
    """
    first, *others = (with_ranking(panel, is_sure=True) for panel in panels)
    line = next((panel for panel in others if panel.request.id == OVER_TIME), None)
    reply = line.reply if line else None
    steps = steps_of(reply, line.request.query, metric, answers) if line else []
    if first.reply is None:
        return steps, [first, *others]
    counts = load(first.reply.meta.verb).counts_devices
    basis = first.reply.meta.metrics[0]
    average = "" if counts else average_text(basis, steps, reply, answers.today)
    return steps, [_with_notice(first, Notice(average)) if average else first, *others]


def counts_text(reply: Answer) -> str:
    """Return the last two counts of a *reply* in words; "" if it counts none, or by groups."""
    rows = latest(reply.rows)[-2:] if load(reply.meta.verb).counts_devices else []
    if not rows or rows[-1].value is None or rows[-1].dimensions.keys() > {TIME}:
        return ""
    basis, label = reply.meta.metrics[0], rows[-1].dimensions[TIME]
    stretch = next(name for name in (*reply.meta.query.dimensions, TIME) if name.startswith(TIME))
    when = when_counted(label, basis.every, stretch)
    return f"{capitalized(when)}: {beside(rows[-1], rows[0] if rows[1:] else None)}."


def average_text(basis: Basis, steps: Sequence[Step], line: Answer | None, today: date) -> str:
    """Return the days that a number averages and the changes in them; "" if it is no average."""
    if basis.every == ONCE or basis.window.first == basis.window.last:
        return ""
    rows = line.rows if line else ()
    first = rows[0].dimensions[TIME] if rows else basis.window.first
    label = f"{first}/{basis.window.last}"
    words = days_in_words([label], basis.every, today=today)
    days = f"The average of {words.get(label, label)}"
    if steps:
        return f"{days}, across a change. {' '.join(step.words for step in steps)}"
    if line is None or not line.meta.facts.get("changes"):
        return f"{days}."
    return f"{days}; no change was detected in them."


def with_period(panel: Panel, answers: Answers) -> Panel:
    """Return *panel* with the period of its numbers at the start of its hint, if it is known."""
    said = period_text(panel.reply, answers) if panel.reply else ""
    hint = f"{said}. {panel.request.hint}".strip()
    return replace(panel, request=replace(panel.request, hint=hint)) if said else panel


def period_text(reply: Answer, answers: Answers) -> str:
    """Return the period of *reply*'s numbers in words; "" if its metrics have different windows."""
    windows = {(each.window, each.every) for each in reply.meta.metrics}
    if len(windows) > 1:
        return ""
    window, every = windows.pop()
    if every == ONCE:
        return "Each device is asked once; these are all reports so far"
    period = Period.read(f"{window.first}/{window.last}", every)
    if period is None or (days := period.days) is None:  # hours
        return ""
    first = answers.first_day([each.name for each in reply.meta.metrics], days)
    label = f"{first}/{window.last}"
    words = days_in_words([label], every, today=answers.today)[label]
    before = "; there are no reports before" if first > days[0] else ""
    return f"{words}{before}"


def sample_in_words(metric: Metric, panels: Iterable[Panel]) -> str:
    """Return the sample of *metric* in words; "" if it is everyone or one of *panels* shows it."""
    remarks = (each for panel in panels for each in panel.remarks)
    is_said = any(each.code == Code.SAMPLE for each in remarks)
    return "" if is_said else sentence(metric.sample.in_words or "")


def without_title(panel: Panel) -> Panel:
    """Return *panel* with warnings that do not name its metric, if it has only one."""
    return (
        replace(panel, titles=dict.fromkeys(panel.titles, "")) if len(panel.titles) == 1 else panel
    )


def with_ranking(panel: Panel, *, is_sure: bool = False) -> Panel:
    """Return *panel* with a ranking of its segments where their intervals are apart.

    A panel of several differences gets those that are more than noise.  The intervals hold
    simultaneously, so the ranking has their level.

    Args: is_sure: add no remark if no segment is surely higher.
    """
    reply, query = panel.reply, panel.request.query
    if reply is None:  # then the verb may not exist
        return panel
    rows = reply.rows
    if reply.meta.chart == Chart.DIFFERENCES and (sure := differences_text(rows)):
        return _with_notice(panel, Notice(sure))
    is_ranked = load(query.verb).ranks_segments and query.postprocess == RAW
    if (
        not is_ranked
        or not 1 < len(rows) <= _MOST_ORDERED
        or any(TIME in row.dimensions for row in rows)
    ):
        return panel
    order = ranking_text(rows)
    return _with_notice(panel, Notice(order or UNSURE)) if order or not is_sure else panel


def ranked_hints(panels: Iterable[Panel]) -> list[str]:
    """Return what a reader must know of rankings, if any of *panels* has groups to rank."""
    verbs = {panel.request.query.verb for panel in panels if panel.reply}
    return [AT_ONCE] if any(load(verb).ranks_segments for verb in verbs) else []


def ranking_text(rows: Sequence[Row]) -> str:
    """Return which of *rows* are higher than which others by their intervals, or ""."""
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


def differences_text(rows: Sequence[Row]) -> str:
    """Return which of several differences, of the first measure of *rows*, leave zero out.

    It is "" of a single one, of very many, and where none has a number.
    """
    own = [row for row in rows if row.dimensions.get(MEASURE) == rows[0].dimensions.get(MEASURE)]
    if not any(map(numbers_of, own)) or not 1 < len(own) <= _MOST_ORDERED:
        return ""
    sure = [
        f"{label} {value_of(row, unit, signed=True)} {margin(row, unit)}"
        for label, row in zip(named(own, (AGAINST,))[0], own, strict=True)
        for unit in (POINTS if row.unit == SHARE else row.unit,)
        if (numbers := numbers_of(row)) and (numbers.low > 0 or numbers.high < 0)
    ]
    return f"More than noise: {'; '.join(sure)}." if sure else "No difference is more than noise."


def _segment(row: Row) -> str:
    return " · ".join(value for name, value in row.dimensions.items() if name != ITEM)


def _with_notice(panel: Panel, *notices: Notice) -> Panel:
    """Return *panel* with *notices* added above its chart."""
    request = replace(panel.request, notices=(*panel.request.notices, *notices))
    return replace(panel, request=request)


def told_once(panels: Sequence[Panel]) -> tuple[list[str], list[str], list[Panel]]:
    """Return the warnings that several of *panels* share, what is general, and the panels without.

    A warning that only some share names their titles, as does what is general.
    """
    titles: dict[Remark, list[str]] = {}
    for panel in panels:
        for remark in panel.remarks:
            titles.setdefault(remark, []).append(panel.request.title)
    general = {remark for remark in titles if remark.code in _GENERAL}
    shared = {remark for remark, of in titles.items() if len(of) > 1} - general
    kept = [
        replace(
            panel,
            remarks=tuple(each for each in panel.remarks if each not in general | shared),
        )
        for panel in panels
    ]
    said, doubts = (
        [_of_some(each, of if len(of) < len(panels) else []) for each, of in some]
        for some in (
            [(each, titles[each]) for each in titles if each in shared],
            [(each, titles[each]) for each in titles if each in general],
        )
    )
    return said, doubts, kept


def _of_some(remark: Remark, titles: Sequence[str]) -> str:
    """Return *remark* after the *titles* of the panels that have it, unless it is of the metric."""
    if remark.metric or not titles:
        return remark_text(remark, {remark.metric: ""})
    return remark_text(remark, {"": ", ".join(titles)})
