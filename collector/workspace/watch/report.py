"""The report of a week: every metric with its numbers, what changed, and what watches said.

One file of HTML that loads nothing and runs nothing, to be kept, sent or printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from html import escape
from typing import Any, Final

from client_sdk.core.epoch import DAY, epoch_of
from client_sdk.core.errors import UnknownMetricError
from client_sdk.privacy.wording import counted
from client_sdk.registry.metric import Metric

from ...analytics.rows import LEFT_OUT, SHARE, Row
from ...analytics.verb import ESTIMATE, load
from ...core.catalog import Catalog
from ...core.errors import CollectorError, StorageUnavailableError
from ...query import Answer, Query, plan, run
from ...rendering.charts import Face, chart_of
from ...rendering.charts.svg import CSS
from ...rendering.numbers import POINTS, reading
from ...rendering.tables import table_of
from ...storage.protocols import TallyStore
from ...storage.records import FIRING, UNABLE, UNKNOWN, WatchState

MOST_ITEMS: Final = 8  # of a list of items, the most common ones
MOST_ROWS: Final = 40  # of a table
MOST_CHANGES: Final = 8
RECENT_DAYS: Final = 35  # in which a store that is in use has a report
_QUIET: Final = "All watches were quiet."
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin: 2.5rem 0 .25rem; break-after: avoid }
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
    """Return the report of the week that ended last.

    Raises: StorageUnavailableError.
    """
    first, last = week_of(now, back)
    sections = [_Section(metric, catalog, storage, now, (first, last)) for metric in catalog]
    parts = list(_watched(state, first, last))
    heading = f"Week of {first.isoformat()} to {last.isoformat()}"
    lines = [heading, "", *parts, *(line for section in sections for line in section.lines)]
    items = "".join(f"<li>{escape(part)}</li>" for part in parts)
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{heading}</title><style>{CSS}{_STYLE}</style></head><body><main>"
        f"<h1>{heading}</h1>"
        f"<p>{counted(len(sections), 'metric')}. Every report was randomized on its device; "
        "intervals are of 95 % and show what the noise leaves open.</p>"
        + (f"<h2>Watches</h2><ul>{items}</ul>" if items else "")
        + "".join(section.html for section in sections)
        + "</main></body></html>\n"
    )
    return Report(first, last, page, "\n".join(lines) + "\n")


class _Section:
    """What is said of one metric; one that cannot be answered says so."""

    def __init__(
        self,
        metric: Metric,
        catalog: Catalog,
        storage: TallyStore,
        now: float,
        days: tuple[date, date],
    ) -> None:
        self._metric, self._catalog, self._storage, self._now = metric, catalog, storage, now
        self._days = tuple(day.isoformat() for day in days)
        self.lines = [f"{metric.title}:"]
        self.html = f"<section><h2>{escape(metric.title)}</h2>"
        self.html += f'<p class="soft">{escape(metric.question)}</p>'
        try:
            self._number()
            self._changes()
        except StorageUnavailableError:
            raise
        except (CollectorError, UnknownMetricError) as error:
            self._say(f"No number: {error}")
        self.html += "</section>"
        self.lines.append("")

    def _say(self, text: str) -> None:
        self.lines.append(f"  {text}")
        self.html += f"<p>{escape(text)}</p>"

    def _number(self) -> None:
        verb, options = _question(self._metric)
        answer = self._ask(verb, options)
        self._say(f"{counted(answer.meta.n, 'report')}{_settled(answer)}")
        for text in answer.meta.facts.get(LEFT_OUT, ()):
            self._say(text)
        self.lines += [f"  {_worded(row)}" for row in answer.rows[:MOST_ITEMS]]
        face = Face(f"m-{self._metric.digest.hex()}", heading=False)
        chart = chart_of(verb, answer.rows, self._metric.title, face, facts=answer.meta.facts)
        table = table_of(answer.rows, self._metric.title, most=MOST_ROWS)
        self.html += f'{chart}<details><summary>Table</summary><div class="scroll">{table}</div>'
        self.html += "</details>"

    def _changes(self) -> None:
        verb = load("compare")
        if verb.refusal(self._metric) or self._metric.every == "once":
            return
        rows = self._ask("compare", {}, ["time:period"]).rows
        sure = [row for row in rows if row.value is not None and not row.note]
        if not rows or all(row.value is None for row in rows):
            self._say("Nothing to compare with: the week before has not enough reports.")
        elif not sure:
            self._say("Against the week before: no change that is more than noise.")
        for row in sure[:MOST_CHANGES]:
            unit = POINTS if row.unit == "share" else None
            item = f"{row.item}: " if row.item not in ("", "true", "mean") else ""
            self._say(f"Against the week before: {item}{reading(row, unit, signed=True)}")
        if len(sure) > MOST_CHANGES:
            self._say(f"and {len(sure) - MOST_CHANGES} more changed")

    def _ask(self, verb: str, options: dict[str, Any], dimensions: Sequence[str] = ()) -> Answer:
        query = Query(
            metrics=[self._metric.address],
            verb=verb,
            date_range=(self._days[0], self._days[1]),
            dimensions=list(dimensions),
            options=options,
        )
        return run(plan(query, self._catalog, self._now), self._storage)


def _question(metric: Metric) -> tuple[str, dict[str, Any]]:
    """Return the verb by which a reader gets the metric's number."""
    domain = metric.domain
    if domain.compared:
        return domain.verb, {}
    if load(ESTIMATE).refusal(metric) is not None:
        return "actives", {}
    if len(domain.answer_items()) > MOST_ITEMS and domain.unit == SHARE and not domain.numbers:
        return "top_k", {"k": MOST_ITEMS}
    return ESTIMATE, {}


def _settled(answer: Answer) -> str:
    return "" if answer.meta.metrics[0].version is not None else "; more may still come"


def _worded(row: Row) -> str:
    name = " ".join(value for value in row.dimensions.values() if value)
    return f"{name}: {reading(row)}" if name else reading(row)


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
        yield "No watch was asked."
    elif not states:
        yield "Nothing is kept of what watches said of these days."
    elif not said:
        unknown = states.count(UNKNOWN)
        answers = f"{counted(unknown, 'answer')} of {len(states)}"
        yield f"No alarm; {answers} had not enough reports." if unknown else _QUIET
