"""The report of a week: what changed, what watches said, and a line a metric.

One file of HTML that loads nothing and runs nothing, to be kept, sent or printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from html import escape
from typing import Any, Final

from client_sdk.core.epoch import DAY, LENGTHS, ONCE, epoch_of
from client_sdk.core.errors import UnknownMetricError
from client_sdk.privacy.wording import counted
from client_sdk.registry.metric import COUNT, Metric

from ...analytics.answer import MEAN
from ...analytics.rows import LEFT_OUT, MEASURE, SHARE, TIME, Row, moment
from ...analytics.verb import ACTIVES, ESTIMATE, load
from ...analytics.verbs.actives import latest
from ...core.catalog import Catalog
from ...core.errors import CollectorError, StorageUnavailableError
from ...estimation.precision import ALPHA
from ...estimation.significance import holm
from ...query import Answer, Query, plan, run
from ...query.window import PREVIOUS, days_of_epochs
from ...rendering.charts import Face, chart_of
from ...rendering.charts.svg import CSS
from ...rendering.numbers import beside, numbers_of, reading
from ...rendering.possible import possible
from ...rendering.tables import table_of
from ...rendering.wording import when_counted, worded
from ...storage.protocols import TallyStore
from ...storage.records import FIRING, UNABLE, UNKNOWN, WatchState

MOST_ITEMS: Final = 3  # of a line
MOST_ROWS: Final = 40  # of a table
MOST_CHANGES: Final = 8  # of one metric
RECENT_DAYS: Final = 35  # in which a store that is in use has a report
_TOP: Final = 8  # items of a list, the most common ones
_ABOUT: Final = (
    "Every report was randomized on its device. Intervals are of 95 % and show what the noise"
    " leaves open; counts of devices are exact. Reports that come late still add to these numbers"
    " for four weeks."
)
_QUIET: Final = "All watches were quiet."
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin: 2rem 0 .25rem }
h3 { margin: 1rem 0 0; font-size: 1rem; break-after: avoid }
p, ul { margin: 0 }
section { break-inside: avoid-page }
svg { max-width: 100%; height: auto }
table { border-collapse: collapse; font-size: .875rem; width: 100% }
th, td { text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid #8884 }
.scroll { overflow-x: auto }
.soft { opacity: .75 }
"""


@dataclass(frozen=True)
class Report:
    """A week as a page, and in a few lines for those who read mail as text."""

    first: date
    last: date
    html: str
    text: str


def week_of(now: float, back: int = 1) -> tuple[date, date]:
    """Return Monday and Sunday of the week that ended last, or *back* - 1 weeks before it."""
    today = datetime.fromtimestamp(now, UTC).date()
    monday = today - timedelta(days=today.weekday() + 7 * back)
    return monday, monday + timedelta(days=6)


def has_reports(catalog: Catalog, storage: TallyStore, now: float, back: int = 1) -> bool:
    """Return whether there is any report of the week, or of the last RECENT_DAYS.

    Raises: StorageUnavailableError.
    """
    monday = datetime.combine(week_of(now, back)[0], datetime.min.time(), UTC).timestamp()
    spans = ((now - RECENT_DAYS * DAY, now), (monday, monday + 7 * DAY - 1))
    return any(
        storage.index(metric.digest, _epochs(metric.every, *span)).cells
        for metric in catalog
        for span in spans
    )


def _epochs(every: str, begin: float, end: float) -> range:
    return range(epoch_of(every, begin), epoch_of(every, end) + 1)


def report(
    catalog: Catalog, storage: TallyStore, state: WatchState, now: float, back: int = 1
) -> Report:
    """Return the report of the week that ended last: what changed, then a line a metric.

    Raises: StorageUnavailableError.
    """
    first, last = week_of(now, back)
    entries = [_Entry.of(_Asker(metric, catalog, storage, now, last)) for metric in catalog]
    changes = list(_changes(entries)) or ["No change that is more than noise."]
    parts = list(_watched(state, first, last))
    heading = f"Week of {first.isoformat()} to {last.isoformat()}"
    lines = [heading, "", "What changed:", *(f"  {text}" for text in changes), ""]
    lines += [*parts, ""] if parts else []
    lines += [f"{entry.metric.title}: {entry.line}" for entry in entries]
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{heading}</title><style>{CSS}{_STYLE}</style></head><body><main>"
        f"<h1>{heading}</h1><h2>What changed</h2>{_listed(changes)}"
        + (f"<h2>Watches</h2>{_listed(parts)}" if parts else "")
        + f"<h2>{counted(len(entries), 'metric')}</h2>"
        + "".join(entry.html for entry in entries)
        + f'<p class="soft">{_ABOUT}</p></main></body></html>\n'
    )
    return Report(first, last, page, "\n".join([*lines, "", _ABOUT]) + "\n")


def _listed(texts: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"


def _changes(entries: Sequence[_Entry]) -> Iterator[str]:
    """Yield what changed by more than noise, the surest first: of many metrics some seem to."""
    tested = [entry for entry in entries if entry.changes]
    chances = holm([entry.changes[0][0] for entry in tested])
    for chance, entry in sorted(zip(chances, tested, strict=True), key=lambda pair: pair[0]):
        if chance <= ALPHA:
            texts = [text for each, text in entry.changes if each <= ALPHA]
            more = f", and {len(texts) - MOST_CHANGES} more" if texts[MOST_CHANGES:] else ""
            what = f"{', '.join(texts[:MOST_CHANGES])}{more}"
            yield f"{entry.metric.title}: {what}, against {entry.before}"


@dataclass(frozen=True)
class _Asker:
    """Asks about one metric in the week that ends on *last*, or in its last longer period."""

    metric: Metric
    catalog: Catalog
    storage: TallyStore
    now: float
    last: date

    @property
    def days(self) -> tuple[date, date]:
        """The first and the last day of the last whole period that had ended by then."""
        every, first = self.metric.every, self.last - timedelta(days=6)
        if LENGTHS.get(every, 0) <= 7 * DAY:
            return first, self.last
        end = datetime.combine(self.last + timedelta(days=1), datetime.min.time(), UTC)
        ended = epoch_of(every, end.timestamp()) - 1
        return days_of_epochs(every, range(ended, ended + 1))

    def __call__(self, verb: str, options: dict[str, Any], against: Any = None) -> Answer:
        first, last = (day.isoformat() for day in self.days)
        query = Query([self.metric.address], verb, (first, last), against, options=options)
        return run(plan(query, self.catalog, self.now), self.storage)


@dataclass(frozen=True)
class _Entry:
    """What is said of one metric: a line, what changed with its chance, and its chart."""

    metric: Metric
    number: str
    change: str = ""
    changes: tuple[tuple[float, str], ...] = ()  # p-value and words, the surest first
    before: str = ""  # what it was held against
    drawn: str = ""

    @classmethod
    def of(cls, ask: _Asker) -> _Entry:
        """Ask about the metric; one that cannot be answered says so.

        Raises: StorageUnavailableError.
        """
        metric, (first, last) = ask.metric, ask.days
        before = "the week before" if (last - first).days < 7 else "the four weeks before"
        try:
            answer = ask(*_question(metric))
            entry = cls(metric, _number(metric, answer, ask), before=before)
            entry = replace(entry, drawn=_drawn(metric, answer))
            return entry if metric.show == COUNT else _compared(entry, ask)
        except StorageUnavailableError:
            raise
        except (CollectorError, UnknownMetricError) as error:
            return cls(metric, f"no number: {error}")

    @property
    def line(self) -> str:
        """The number, and whether it changed."""
        return "; ".join(filter(None, (self.number, self.change)))

    @property
    def html(self) -> str:
        """The line, with chart and table behind it."""
        metric = self.metric
        behind = f"<p>{escape(metric.question)}</p>{self.drawn}"
        return (
            f"<section><h3>{escape(metric.title)}</h3><p>{escape(self.line)}</p>"
            f"<details><summary>Chart and table</summary>{behind}</details></section>"
        )


def _number(metric: Metric, answer: Answer, ask: _Asker) -> str:
    """Return the number of *metric* in words, with its period if that is not the week."""
    label = answer.meta.metrics[0].window.first
    when = f"{moment(label, metric.every)}: " if metric.every == "28d" else ""
    left_out = "".join(f"; {text}" for text in answer.meta.facts.get(LEFT_OUT, ()))
    end = f"; {counted(answer.meta.n, 'report')}{left_out}"
    if metric.show == COUNT:
        *earlier, row = [None, *latest(ask(ESTIMATE, {}, PREVIOUS).rows)]
        if row is None:
            return f"{when}no reports{left_out}"
        words = when_counted(row.dimensions[TIME], metric.every)
        return f"{beside(row, earlier[-1])}, {words}{end}"
    if answer.meta.verb == ACTIVES:  # of strings without a list
        return f"its page looks for common strings{end}"
    rows = _headlines(metric, possible(answer.rows, answer.meta.verb))
    named = [f"{reading(row)} {_name(metric, row)}".rstrip() for row in rows if numbers_of(row)]
    if not named:
        return when + (next((row.reason for row in rows if row.reason), None) or "no number") + end
    more = f", and {len(named) - MOST_ITEMS} more" if named[MOST_ITEMS:] else ""
    return f"{when}{', '.join(named[:MOST_ITEMS])}{more}{end}"


def _headlines(metric: Metric, rows: Sequence[Row]) -> Sequence[Row]:
    """Return those of *rows* that stand in the line: of numbers mean and median."""
    if metric.domain.grid:
        return [row for row in rows if row.item in (MEAN, "p50")]
    if metric.domain.compared:
        measure = rows[0].dimensions.get(MEASURE) if rows else None
        return [row for row in rows if row.dimensions.get(MEASURE) == measure]
    if metric.domain.numbers:
        return rows
    return sorted(rows, key=lambda row: -(row.value or 0.0))


def _name(metric: Metric, row: Row) -> str:
    """Return what the number of *row* is of."""
    if metric.domain.grid:
        return "on average" if row.item == MEAN else "in the middle"
    return metric.domain.headline(row.item, row.dimensions.get(MEASURE, ""))


def _compared(entry: _Entry, ask: _Asker) -> _Entry:
    """Return *entry* with what changed against its own period before."""
    metric = entry.metric
    if load("compare").refusal(metric) or metric.every == ONCE:
        return entry
    rows = ask("compare", {}, PREVIOUS).rows
    known = [row for row in possible(rows, "compare") if numbers_of(row)]
    if not known:
        return replace(entry, change=f"{entry.before} has not enough reports to compare with")
    tested = [(1.0 if row.p_value is None else row.p_value, row) for row in known]
    tested.sort(key=lambda pair: pair[0])
    changes = tuple((p, f"{_item(row)}{reading(row, signed=True)}") for p, row in tested)
    sure = [text for p, text in changes if p <= ALPHA]
    words = ", ".join(sure[:MOST_ITEMS]) or "no change that is more than noise"
    return replace(entry, change=f"against {entry.before} {words}", changes=changes)


def _item(row: Row) -> str:
    """Return the item before its difference, "" of what has one number."""
    return f"{row.item} " if row.item not in ("", "true", MEAN) else ""


def _drawn(metric: Metric, answer: Answer) -> str:
    """Return chart and table of *answer*."""
    rows = worded(answer.rows, metric.domain.boolean, metric.every, answer.meta.verb)
    face = Face(f"m-{metric.digest.hex()}", heading=False)
    facts = answer.meta.facts
    chart = chart_of(answer.meta.verb, rows, metric.title, face, facts=facts)
    table = table_of(rows, metric.title, most=MOST_ROWS)
    return f'{chart}<div class="scroll">{table}</div>'


def _question(metric: Metric) -> tuple[str, dict[str, Any]]:
    """Return the verb by which a reader gets the metric's number."""
    domain = metric.domain
    if domain.compared:
        return domain.verb, {}
    if load(ESTIMATE).refusal(metric) is not None:
        return "actives", {}
    if len(domain.answer_items()) > _TOP and domain.unit == SHARE and not domain.numbers:
        return "top_k", {"k": _TOP}
    return ESTIMATE, {}


def _watched(state: WatchState, first: date, last: date) -> Iterator[str]:
    """Yield what watches said in the week that somebody should know, oldest first."""
    said = [
        (verdict.last, name, verdict)
        for name, series in state.series.items()
        for verdict in series.verdicts
        if first.isoformat() <= verdict.last <= last.isoformat()
        if verdict.state in (FIRING, UNABLE)
    ]
    for day, name, verdict in sorted(said, key=lambda entry: entry[:2]):
        yield f"{day} {name}: {verdict.text}"
    states = [
        verdict.state
        for series in state.series.values()
        for verdict in series.verdicts
        if first.isoformat() <= verdict.last <= last.isoformat()
    ]
    if not state.ledger.cursors:
        return
    if not states:
        yield "Nothing is kept of what watches said of these days."
    elif not said:
        unknown = states.count(UNKNOWN)
        answers = f"{counted(unknown, 'answer')} of {len(states)}"
        yield f"No alarm; {answers} had not enough reports." if unknown else _QUIET
