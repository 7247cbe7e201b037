"""Watches: what each asks and said last, and of one all that it said before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from flask import Blueprint, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from client_sdk.core.errors import UnknownMetricError

from ...core.credentials import VIEW
from ...core.errors import CollectorError
from ...storage.records import FIRING, QUIET, UNABLE, UNKNOWN, Verdict, WatchSeries, WatchState
from ..auth import scope, visible
from ..services import services
from .layout import shown

STOPPED_S = 600  # seconds without a round after which watches are held to have stopped
MOST = 100  # watches of a page, those first that need attention
_ORDER = (FIRING, UNABLE, UNKNOWN, QUIET)
WORDS = {FIRING: "firing", QUIET: "quiet", UNKNOWN: "not enough reports", UNABLE: "no answer"}
_LEVELS = {FIRING: "fault", UNABLE: "warning", UNKNOWN: "note", QUIET: "good"}
blueprint = Blueprint("watches", __name__)


@dataclass(frozen=True)
class WatchRow:
    """A watch as the page shows it."""

    name: str
    title: str
    state: str
    since: str
    text: str
    days: str  # that the text is of
    url: str  # of its metric; "" if there is none
    rate: str
    history: tuple[tuple[str, str, str], ...]  # days, state and text

    @property
    def word(self) -> str:
        """Its state in words."""
        return WORDS.get(self.state, self.state)

    @property
    def level(self) -> str:
        """The class of its colour."""
        return _LEVELS.get(self.state, "note")


@blueprint.get("/watches/<watch>")
@scope(VIEW, page=True)
def history(watch: str) -> ResponseReturnValue:
    """Show what one watch asks, what it said last, and what it said before."""
    row = next((row for row in rows_of(services().watches()) if row.name == watch), None)
    if row is None:
        raise NotFound
    return shown("watch.html", watch=row)


@blueprint.get("/watches")
@scope(VIEW, page=True)
def watches() -> ResponseReturnValue:
    """Show what each watch asks, and what it said last."""
    state, whole = services().watches(), _sees_all()
    rows = sorted(rows_of(state), key=lambda row: (_ORDER.index(row.state), row.name))
    ledger = state.ledger
    looked = datetime.fromtimestamp(ledger.looked, UTC)
    return shown(
        "watches.html",
        watches=rows[:MOST],
        more=len(rows) - MOST,
        firing=sum(row.state == FIRING for row in rows),
        has_stopped=bool(ledger.holder and services().clock() - ledger.looked > STOPPED_S),
        looked=looked.isoformat(timespec="seconds") if ledger.looked else "",
        looked_text=f"{looked:%Y-%m-%d %H:%M} UTC",
        share=f"{100 * ledger.false_alarms:.3g} %",
        every=len(ledger.cursors),
        bounded=sum(series.rate > 0 for series in state.series.values()),
        waiting=len(ledger.outbox) if whole else 0,
        given_up=ledger.given_up if whole else 0,
    )


def rows_of(state: WatchState) -> Iterator[WatchRow]:
    """Yield the watches of metrics that the visitor may see; who sees all, sees those that are
    gone, too.
    """
    whole = _sees_all()
    for name, cursor in state.ledger.cursors.items():
        series = state.series.get(name)
        url = _address(series.metric) if series else ""
        if series is None or not series.verdicts or not (url or whole):
            continue
        last = series.verdicts[0]
        yield WatchRow(
            name=name,
            title=series.title,
            state=cursor.state if cursor.state in _ORDER else UNKNOWN,
            since=cursor.since,
            text=last.text,
            days=_days(last),
            url=url,
            rate=_odds(series),
            history=tuple((_days(v), WORDS.get(v.state, v.state), v.text) for v in series.verdicts),
        )


def _sees_all() -> bool:
    """Return whether the visitor may see every metric: a removed one may have had any owner."""
    return visible() is services().catalog


def _address(metric: str) -> str:
    try:
        return url_for("metric.metric_page", name=visible().metric(metric).address)
    except (UnknownMetricError, CollectorError):
        return ""


def _odds(series: WatchSeries) -> str:
    """Return how often an evaluation of the watch may err: "1 in 365,000"."""
    return f"1 in {round(1 / series.rate):,}" if series.rate else ""


def _days(verdict: Verdict) -> str:
    return " to ".join(dict.fromkeys((verdict.first, verdict.last)))
