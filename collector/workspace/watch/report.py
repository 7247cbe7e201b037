"""The report of a week: what changed, what watches said, and a line a metric.

One file of HTML that loads nothing and runs nothing, to be kept, sent or printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from html import escape
from types import MappingProxyType
from typing import Any, Final

from client_sdk.core.epoch import DAY, LENGTHS, ONCE, epoch_of
from client_sdk.core.errors import UnknownMetricError
from client_sdk.privacy.wording import counted
from client_sdk.registry.metric import COUNT, Metric

from ...analytics.answer import MEAN
from ...analytics.rows import LEFT_OUT, MEASURE, TIME, Row, moment
from ...analytics.verb import COMPARE, ESTIMATE, load
from ...core.catalog import Catalog
from ...core.errors import CollectorError, StorageUnavailableError
from ...estimation.precision import ALPHA
from ...estimation.significance import holm
from ...query import Answer, Query, plan, run
from ...query.headline import headline, is_listed, latest, question
from ...query.window import PREVIOUS, days_of_epochs
from ...rendering.charts import ChartOptions, chart_of
from ...rendering.charts.svg import CSS
from ...rendering.numbers import beside, movement, numbers_of, reading
from ...rendering.possible import possible
from ...rendering.tables import table_of
from ...rendering.wording import when_counted, worded
from ...storage.protocols import TallyStore
from ...storage.records import FIRING, UNABLE, UNKNOWN, WatchState

MOST_ROWS: Final = 40  # of a table
_MOST_CHANGES: Final = 3  # of one metric
RECENT_DAYS: Final = 35  # in which a store that is in use has a report
_ALONE: Final = ("", "true", MEAN)  # items that need no name after their metric's
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
    entries = [_Asker(metric, catalog, storage, now, last).entry() for metric in catalog]
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
    """Yield the changes beyond noise, the surest first; of many metrics some are by chance.

    That a metric changed makes its further changes no surer: each counts all metrics (Bonferroni).
    """
    tested = [entry for entry in entries if entry.chances]
    firsts = holm([entry.chances[0] for entry in tested])
    for first, entry in sorted(zip(firsts, tested, strict=True), key=lambda each: each[0]):
        others = (chance * len(tested) for chance in entry.chances[1:])
        for chance, sentence in zip((first, *others), entry.sentences, strict=False):
            if chance <= ALPHA:
                yield sentence


@dataclass(frozen=True)
class _Entry:
    """What is said of one metric: its number, how that changed, and a chart behind both."""

    metric: Metric
    number: str
    changes: str = ""
    chances: tuple[float, ...] = ()  # of each item, were there no change, the surest first
    sentences: tuple[str, ...] = ()  # what changed, of the first of these
    drawn: str = ""

    @property
    def line(self) -> str:
        """The number, and how it changed."""
        return "; ".join(filter(None, (self.number, self.changes)))

    @property
    def html(self) -> str:
        """The line, with chart and table behind it."""
        behind = f"<p>{escape(self.metric.question)}</p>{self.drawn}"
        return (
            f"<section><h3>{escape(self.metric.title)}</h3><p>{escape(self.line)}</p>"
            f"<details><summary>Chart and table</summary>{behind}</details></section>"
        )


@dataclass(frozen=True)
class _Asker:
    """Asks about one metric in the week that ends on *last*, or in its last longer period."""

    metric: Metric
    catalog: Catalog
    storage: TallyStore
    now: float
    last: date

    def entry(self) -> _Entry:
        """Ask; a metric that cannot be answered says so.  Raises StorageUnavailableError."""
        metric = self.metric
        verb, options = question(metric, _TOP)
        try:
            answer = self._ask(verb, options)
            number = f"{self._number(answer)}; {counted(answer.meta.n, 'report')}"
            number = "; ".join((number, *answer.meta.facts.get(LEFT_OUT, ())))
            return _Entry(metric, number, *self._changes(), drawn=_drawn(metric, answer))
        except StorageUnavailableError:
            raise
        except (CollectorError, UnknownMetricError) as error:
            return _Entry(metric, f"no number: {error}")

    def _ask(
        self,
        verb: str,
        options: Any = MappingProxyType({}),
        against: Any = None,
        *,
        back: int = 0,
    ) -> Answer:
        """Ask about the week, or about the last whole period of *metric* if that is longer.

        Args: back: periods before it.
        """
        every, last = self.metric.every, self.last - timedelta(days=7 * back)
        days = last - timedelta(days=6), last
        if LENGTHS.get(every, 0) > 7 * DAY:
            end = datetime.combine(self.last + timedelta(days=1), datetime.min.time(), UTC)
            ended = epoch_of(every, end.timestamp()) - 1 - back
            days = days_of_epochs(every, range(ended, ended + 1))
        texts = (days[0].isoformat(), days[1].isoformat())
        query = Query([self.metric.address], verb, texts, against, options=dict(options))
        return run(plan(query, self.catalog, self.now), self.storage)

    def _number(self, answer: Answer) -> str:
        """Return the number in words, with its period if that is not the week."""
        metric = self.metric
        if metric.show == COUNT:
            *earlier, row = [None, *latest(self._ask(ESTIMATE, against=PREVIOUS).rows)]
            if row is None:
                return "no reports"
            return f"{beside(row, earlier[-1])}, {when_counted(row.dimensions[TIME], metric.every)}"
        if not is_listed(metric):
            return "its page looks for common strings"
        label = answer.meta.metrics[0].window.first
        when = f"{moment(label, metric.every)}: " if metric.every == "28d" else ""
        top = headline(metric, possible(answer.rows, answer.meta.chart))
        if top is None or numbers_of(top) is None:
            return f"{when}{(top and top.reason) or 'no number'}"
        what = metric.domain.headline(top.item, top.dimensions.get(MEASURE, ""))
        return f"{when}{reading(top)} {what}"

    def _changes(self) -> tuple[str, tuple[float, ...], tuple[str, ...]]:
        """Return how the number changed against the period before, and the chance of each item.

        Returns: the same in sentences, too: from which number to which.
        """
        metric = self.metric
        if load(COMPARE).refusal(metric) or metric.every == ONCE or metric.show == COUNT:
            return "", (), ()
        before = f"the {'four weeks' if metric.every == '28d' else 'week'} before"
        rows = possible(self._ask(COMPARE, against=PREVIOUS).rows)
        known = [row for row in rows if numbers_of(row) and row.p_value is not None]
        if not known:
            return f"{before} has not enough reports to compare with", (), ()
        known.sort(key=lambda row: row.p_value or 0.0)
        chances = tuple(row.p_value or 0.0 for row in known)
        sure = [row for row in known if (row.p_value or 0.0) <= ALPHA][:_MOST_CHANGES]
        each = [
            f"{'' if row.item in _ALONE else f'{row.item} '}{reading(row, signed=True)}"
            for row in sure
        ]
        words = ", ".join(each) or "no change that is more than noise"
        sentences = tuple(self._sentences(sure, before)) if sure else ()
        return f"{words} against {before}", chances, sentences

    def _sentences(self, changes: Sequence[Row], before: str) -> Iterator[str]:
        """Yield each of *changes* as a sentence, with the numbers of both periods."""
        then, now = (
            {row.item: row for row in possible(self._ask(ESTIMATE, back=back).rows)}
            for back in (1, 0)
        )
        for change in changes:
            item, title = change.item, self.metric.title
            what = title if item in _ALONE else f"{title} ({self.metric.domain.headline(item)})"
            if item in then and item in now:
                yield f"{what} {movement(then[item], now[item])} against {before}."
            else:
                yield f"{what}: {reading(change, signed=True)} against {before}."


def _drawn(metric: Metric, answer: Answer) -> str:
    """Return chart and table of *answer*."""
    rows = worded(answer.rows, metric.domain.boolean, metric.every, answer.meta.chart)
    options = ChartOptions(f"m-{metric.digest.hex()}", heading=False)
    chart = chart_of(answer.meta.chart, rows, metric.title, options, facts=answer.meta.facts)
    return f'{chart}<div class="scroll">{table_of(rows, metric.title, most=MOST_ROWS)}</div>'


def _watched(state: WatchState, first: date, last: date) -> Iterator[str]:
    """Yield the alarms of watches in the week, oldest first."""
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
