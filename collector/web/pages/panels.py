"""Panels: a query with its answer as a page shows it: chart, table, and how to ask it elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Final

from markupsafe import Markup
from msgspec import structs
from werkzeug.wrappers import Response

from client_sdk.core.epoch import ONCE, epoch_start
from client_sdk.core.errors import UnknownMetricError
from client_sdk.registry.metric import Metric

from ...analytics.rows import AGAINST, ALL, ITEM, TIME, Chart, Period, Row
from ...analytics.verb import COMPARE, load
from ...core.catalog import Catalog
from ...core.config import RelayTerms
from ...core.credentials import ASK
from ...core.errors import (
    BusyError,
    DamagedTallyError,
    ForbiddenError,
    QueryError,
    RefusedByStoreError,
)
from ...core.remarks import Code, Remark, remark
from ...query import Answer, Plan, Query, Reader, answer, earlier, options, plan
from ...query.window import PERIOD, days_for, epochs_of
from ...rendering.charts import Before, Mark
from ...rendering.wording import days_in_words, remark_text
from ...storage.connection import allowed
from ...workspace.documents import MAX_TITLE, Document, Note
from ...workspace.notes import is_planned, notes_on, readable
from .. import auth
from ..api.openapi import in_query
from ..auth import reader, visible
from ..services import services
from .drawings import Subject, drawing_of
from .drill import earlier_questions
from .files import SVG, file_of, files_of, name_of

ALL_DRAWN: Final = 200  # rows of a chart, if all are asked for
MOST_DRAWN: Final = 20  # rows of a chart, if not all are asked for
_RANGES: Final = ("30d", "28d", "14d", "7d")  # to be compared with the previous period
_LONG_RANGES: Final = ("6mo", "91d", "28d")
PERIODS: Final[Mapping[str, str]] = {"previous": "previous period", "year": "a year ago"}
BEFORE_PARAMETER: Final = in_query(
    "before", {"enum": [*PERIODS, ""]}, "The earlier period that is drawn below lines."
)
_WITHOUT_ROWS: Final = frozenset({Chart.MAP, Chart.CURVE, Chart.BUCKETS})  # all are drawn
# What else must be known of an earlier period: what is gone of it, left out, or not there.
_OF_PAST: Final = frozenset(
    {
        Code.PRUNED,
        Code.EXCLUSION,
        Code.EXCLUDED,
        Code.EXCLUDED_LATER,
        Code.NO_EARLIER_REPORTS,
        Code.EARLIER_LEFT_OUT,
    }
)
OVER_TIME: Final = "time"  # the panel of a line of the metric's own numbers
_BOOLEAN: Final = "boolean"
NOTHING: Final = Markup("")
_DAMAGED: Final = (
    "The stored counts of this metric are damaged or cannot be read, so there is no answer. "
    "Run hearsay fsck to see which."
)
_log = logging.getLogger("hearsay.web")


@dataclass(frozen=True)
class Notice:
    """A text above a chart, and its link, if any: words and address."""

    text: str
    words: str = ""
    url: str = ""


@dataclass(frozen=True)
class PanelRequest:
    """A question, and how its panel is named."""

    id: str  # of letters, digits and hyphens: it is part of ids and addresses
    title: str
    query: Query
    hint: str = ""  # what a reader must know about it
    wide: bool = False  # it takes the whole width
    full: bool = False  # its chart has the whole width of the page
    part: str = ""  # of the page that it stands in
    link: Callable[[Row], str] | None = None  # where a row of its chart leads, "" for nowhere
    against: str = ""  # "previous" or "year": a period drawn below lines over time
    rows: int = MOST_DRAWN  # of a chart at most
    all_rows: str = ""  # the address of the same page with a chart of all rows
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class Panel:
    """A panel with its answer: a chart, or the reason why there is none."""

    request: PanelRequest
    reply: Answer | None
    fault: str = ""
    charts: tuple[tuple[str, Markup], ...] = ()  # each with its heading, "" if there is one
    table: Markup = NOTHING
    curl: str = ""
    python: str = ""
    json: str = ""
    csv: str = ""  # the address of the file
    title: str = ""  # by which it is pinned and shared; "" if it is not to be
    remarks: tuple[Remark, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)  # of metrics, "" if not to be named
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """What a reader must know about its numbers, in words."""
        return [remark_text(remark, self.titles) for remark in self.remarks]

    @property
    def files(self) -> list[tuple[str, str]]:
        """The name and address of each file of it."""
        return list(files_of(self.csv, self.request.query.verb)) if self.csv else []

    @property
    def earlier(self) -> list[tuple[str, str]]:
        """Questions about each earlier definition alone, where the query may be shown."""
        return earlier_questions(self.request.query, self.reply) if self.reply and self.json else []

    @property
    def file_name(self) -> str:
        """The name of its files, without their kind; a question alone is named by its verb."""
        is_of_page = not self.csv.startswith("/ask.")
        return name_of(self.request.query, self.request.id if is_of_page else "")

    @property
    def hides_rows(self) -> bool:
        """Whether the chart leaves rows out, which another address shows."""
        if not self.request.all_rows or not self.reply or self.reply.meta.chart in _WITHOUT_ROWS:
            return False
        is_over_time = any(name.startswith(TIME) for name in self.request.query.dimensions)
        return not is_over_time and len(self.reply.rows) > self.request.rows


class Answers:
    """Answers of one request: what several questions read is read from the store once."""

    def __init__(self, granted: Catalog | None = None, *, relay: RelayTerms | None = None) -> None:
        """Answer for the visitor, or only about the metrics that a shared link has *granted*.

        Args: relay: its declared terms, if answers must say what it leaves of ε.
        """
        shared = services()
        self._catalog = visible() if granted is None else granted
        self._now = shared.clock()
        self.is_shared = granted is not None
        self.may_ask = granted is None and ASK in reader().scopes
        self._pressure = shared.pressure
        self._reader = Reader(shared.tallies, shared.gate, shared.pages)
        self._relay = relay

    @property
    def today(self) -> date:
        """The current day; there are no later reports."""
        return datetime.fromtimestamp(self._now, UTC).date()

    @property
    def catalog(self) -> Catalog:
        """The metrics that may be asked about."""
        return self._catalog

    def reply(self, query: Query, *, is_checked: bool = True) -> Answer:
        """Return the answer to *query*, for fakes too.  Raises what ``plan`` and ``run`` raise."""
        self._pressure.require_contents()
        resolved = self.plan(query)
        auth.admit_question(resolved)
        return answer(resolved, self._reader, is_checked=is_checked, relay=self._relay)

    def plan(self, query: Query) -> Plan:
        """Return what must be read for *query*."""
        return plan(query, self._catalog, self._now)

    def previous_range(self, metric: Metric) -> str:
        """Return the longest usual range whose previous period is covered by reports.

        If there is none, the shortest range: it will be the first.
        """
        ranges = _LONG_RANGES if metric.every == "28d" else _RANGES
        for words in ranges:
            days = days_for(words, [metric], self._now, "range", compared=True)
            epochs = epochs_of(metric, *days, "range")
            looked = range(epochs.start - len(epochs), epochs.stop)
            first = min(self._epochs(metric, looked), default=epochs.stop)
            if first <= looked.start:
                return words
        return ranges[-1]

    def _epochs(self, metric: Metric, looked: Sequence[int]) -> Iterator[int]:
        """Yield the epochs in *looked* with reports, under any definition of *metric*."""
        for definition in self._catalog.definitions(metric):
            yield from (cell.epoch for cell in self._reader.index(definition.digest, looked).cells)

    def first_day(self, names: Iterable[str], days: tuple[date, date]) -> date:
        """Return the first day of *days* with reports of the metrics *names*."""
        first = days[1]
        for metric in map(self._catalog.metric, names):
            looked = epochs_of(metric, *days, "range")
            begins = min(self._epochs(metric, looked), default=looked.start)
            seconds = epoch_start(metric.every, begins)
            first = min(first, max(days[0], datetime.fromtimestamp(seconds, UTC).date()))
        return first

    def has_earlier(
        self, metric: Metric, query: Query, against: str, *, whole: bool = False
    ) -> bool:
        """Return whether *metric* has reports in the period *against* which *query* is compared.

        True also if this cannot be known: the chart then says so.

        Args: whole: from the first of several epochs on, and known to have them.
        """
        try:
            held = structs.replace(query, against=against)
            ends = earlier(held, self._catalog, self._now).date_range
            if not isinstance(ends, tuple):  # it always is one: of dates
                return True
            first, last = map(date.fromisoformat, ends)
            looked = epochs_of(metric, first, last, "against")
            begins = min(self._epochs(metric, looked), default=looked.stop)
            return begins <= looked.start < looked[-1] if whole else begins < looked.stop
        except (BusyError, QueryError, DamagedTallyError, RefusedByStoreError):
            return not whole

    def marks(self, query: Query) -> list[Mark]:
        """Return the notes that charts of *query* show; a shared link opens none."""
        if self.is_shared:
            return []
        notes = notes_on(self._notes, query.metrics, self._catalog)
        past = (note for note in notes if not is_planned(note, self._now))
        return [Mark(note.at, note.text, note.url) for note in past]

    @cached_property
    def _notes(self) -> list[Document[Note]]:
        """The notes that the visitor may see; none if the store's user may not read them."""
        shared = services()
        notes = allowed(shared.workspace.notes.documents, [])
        return readable(notes, self._catalog, shared.catalog)

    def panel(self, request: PanelRequest, csv: str = "") -> Panel:
        """Return *request* with its answer; an error is shown in this panel only."""
        try:
            reply = self.reply(request.query)
        except (BusyError, ForbiddenError, QueryError, UnknownMetricError) as error:
            return Panel(request, None, in_page(error))
        except (DamagedTallyError, RefusedByStoreError) as error:
            _log.error("panel=%s: cannot be answered: %s", request.id, error)
            return Panel(request, None, _DAMAGED)
        panel = build_panel(
            request,
            reply,
            csv,
            self.marks(request.query),
            self.before(request, reply),
        )
        if self.is_shared:  # a visitor with only the link cannot ask by these
            return replace(panel, title="", curl="", python="", json="", csv="")
        return panel if self.may_ask else replace(panel, title="")

    def file(self, kind: str, request: PanelRequest, title: str, name: str) -> Response:
        """Return the answer to *request* as a file; a chart has the notes and the earlier period.

        Raises: as ``reply`` and ``file_of``.
        """
        reply = self.reply(request.query)
        if kind != SVG:
            return file_of(kind, reply, title, name)
        before = self.before(request, reply)
        if before is not None:
            rows = [row for row in before.rows if row.dimensions.get(TIME) != ALL]
            before = replace(before, rows=rows)
        return file_of(kind, reply, title, name, self.marks(request.query), before)

    def before(self, request: PanelRequest, reply: Answer) -> Before | None:
        """Return the period that *request* compares its lines or groups with, None for none."""
        query = structs.replace(request.query, against=request.against or None)
        is_over_time = any(name.startswith(TIME) for name in query.dimensions)
        has_none = not request.against or every_of(reply) == ONCE
        if has_none or not (is_over_time or load(query.verb).ranks_segments):
            return None
        words = PERIODS[request.against]
        try:
            other = self.reply(
                earlier(query, self._catalog, self._now) if is_over_time else _differences(query)
            )
        except (BusyError, QueryError, DamagedTallyError, RefusedByStoreError) as error:
            return Before((), 0, words, in_page(error))
        remarks = tuple(
            structs.replace(each, group=f"compared with {words}")
            for each in other.meta.warnings
            if each.code in _OF_PAST and each not in reply.meta.warnings
        )
        if not is_over_time:
            return _changed(other, remarks)
        now, then = (answer.meta.metrics[0].window for answer in (reply, other))
        begins = [Period.read(window.first) for window in (now, then)]
        hours = [0.0 if period is None else period.hours for period in begins]
        label = f"{then.first}/{then.last}"
        name = f"{words}, {days_in_words([label], every_of(other)).get(label, label)}"
        return Before(other.rows, round((hours[0] - hours[1]) / 24), name, remarks=remarks)


def _differences(query: Query) -> Query:
    """Return what each group of *query* differs by from the period that it is held against."""
    options = {**query.options, "by": TIME}
    dimensions = (*query.dimensions, f"{TIME}:{PERIOD}")
    return structs.replace(query, verb=COMPARE, dimensions=dimensions, options=options)


def _changed(reply: Answer, remarks: tuple[Remark, ...]) -> Before:
    """Return the differences of *reply* between two periods, which are whole and may end earlier.

    Each row is of the same two.
    """
    names = [row.dimensions[name] for row in reply.rows[:1] for name in (TIME, AGAINST)]
    words = days_in_words(names, alone=True)
    periods = " against ".join(words.get(name, name) for name in names)
    return Before((), 0, periods, changes=reply.rows, remarks=remarks)


def in_page(error: Exception) -> str:
    """Return *error* for people, without the place of a metric in a document."""
    if isinstance(error, QueryError) and error.place.startswith("metrics."):
        return error.rule
    return str(error)


def build_panel(
    request: PanelRequest,
    reply: Answer,
    csv: str = "",
    marks: Sequence[Mark] = (),
    before: Before | None = None,
) -> Panel:
    """Return the panel of a *reply*, with *marks* on its time axes and the period *before*."""
    query, origin, facts = request.query, auth.origin(), reply.meta.facts
    rows, note = _without_common_note(_with_title(reply.meta.verb, reply))
    subject = Subject(
        id=request.id,
        title=request.title,
        chart=reply.meta.chart,
        is_boolean=all(metric.type == _BOOLEAN for metric in reply.meta.metrics),
        every=every_of(reply),
        most_rows=request.rows,
        link=request.link,
        full=request.full,
    )
    drawing = drawing_of(subject, rows, facts, marks, before)
    # Without the remark that the head of the page shows.
    remarks = (each for each in reply.meta.warnings if each.code != Code.IN_PROGRESS)
    return Panel(
        request,
        reply,
        charts=drawing.charts,
        table=drawing.table,
        curl=options.curl(query, origin),
        python=options.python(query, origin),
        json=options.as_json(query),
        csv=csv,
        title=_whole_title(request, reply),
        remarks=(*note, *remarks, *(before.remarks if before else ())),
        titles={metric.name: metric.title for metric in reply.meta.metrics},
        facts=facts,
    )


def _with_title(verb: str, reply: Answer) -> Sequence[Row]:
    """Return the rows of *reply*; a lone difference named "yes" gets the metric's title."""
    (metric, *others), rows = reply.meta.metrics, reply.rows
    is_alone = load(verb).compares and len(rows) == 1 and not others and metric.type == _BOOLEAN
    if not is_alone:
        return rows
    name = {ITEM: f"{metric.title}: yes"}
    return [structs.replace(row, dimensions={**row.dimensions, **name}) for row in rows]


def every_of(reply: Answer) -> str:
    """Return the length of the epochs of all metrics of *reply*, "" if it differs."""
    lengths = {metric.every for metric in reply.meta.metrics}
    return lengths.pop() if len(lengths) == 1 else ""


def _whole_title(request: PanelRequest, reply: Answer) -> str:
    """Return the title of a panel together with its metrics' titles."""
    of_what = " and ".join(metric.title for metric in reply.meta.metrics)
    named = request.title if of_what in request.title else f"{of_what}: {request.title}"
    return named[:MAX_TITLE]


def _without_common_note(rows: Sequence[Row]) -> tuple[Sequence[Row], tuple[Remark, ...]]:
    """Return *rows* without the note that all of them share, and this note, if any.

    Notes of differences stay, as their chart shows them.
    """
    notes = {row.note for row in rows if row.p_value is None}
    note = notes.pop() if len(notes) == 1 and len(rows) > 1 else None
    if not note:
        return rows, ()
    return [structs.replace(row, notes=()) for row in rows], (remark(Code.NOTE, text=note),)
