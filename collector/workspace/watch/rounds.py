"""Rounds of one watching process: evaluate what was published, then send what waits.

Law: each watch is evaluated once for each period that is published, whatever dies.  The cursor
moves in the same step that puts the message into the outbox, and that step compares: who read an
older ledger changes nothing.  A verdict is written before it; after a death in between it is
computed anew, from tallies that do not change any more, and is the same.

Messages of a channel are sent in their order, the next only when the one before was taken.  Where
the answer of a receiver was lost the message is sent again, under the same id.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from client_sdk.core.epoch import ONCE
from client_sdk.registry.metric import Metric

from ...analytics.rows import SHARE
from ...analytics.verb import ESTIMATE
from ...core.catalog import Catalog
from ...core.errors import CollectorError
from ...rendering.numbers import POINTS, number
from ...storage.protocols import TallyStore
from ...storage.records import (
    FIRING,
    QUIET,
    UNABLE,
    UNKNOWN,
    Verdict,
    WatchCursor,
    WatchLedger,
    WatchMessage,
    WatchSeries,
    WatchStore,
)
from .delivery import DeliveryError
from .evaluation import due, evaluate, label, metric_of, newest, period_from
from .rules import Channel, Watch, Watches, is_bounded

LEASE_S: Final = 120  # for which no other process evaluates or sends; a try takes half a minute
RENEW_S: Final = 60  # left of it, at which it is renewed
_HISTORY: Final = 60  # verdicts that are kept of a watch
MOST_WAITING: Final = 1_000  # messages; then the oldest are given up
_FIRST_RETRY_S: Final = 5
LAST_RETRY_S: Final = 300
GIVEN_UP_S: Final = 7 * 86_400  # seconds after which a message is sent no more
PERIOD_S: Final = 30.0  # between two rounds

_log = logging.getLogger("hearsay.watch")
Deliver = Callable[[Channel, WatchMessage, int], None]


class LostLeaseError(CollectorError):
    """Another process has taken over; it does what is left."""


@dataclass(frozen=True)
class Outcome:
    """What a round leaves: how many watches say what, what ails some, and what waits.

    ``unanswered``: of each watch that is unknown or unable its name, that word and the reason.
    """

    states: Mapping[str, int]
    waiting: int
    unanswered: Sequence[tuple[str, str, str]] = ()


class Rounds:
    """The rounds of this process.  Any number of processes may share a store; one works."""

    def __init__(
        self,
        watches: Watches,
        catalog: Catalog,
        tallies: TallyStore,
        store: WatchStore,
        deliver: Deliver,
        holder: str = "",
    ) -> None:
        """Evaluate *watches* over *tallies*, keep all else in *store*, send by *deliver*."""
        self._watches, self._catalog, self._tallies = watches, catalog, tallies
        self._store, self._deliver = store, deliver
        self._holder = holder or secrets.token_hex(8)
        self._read, self._ledger = b"", WatchLedger()
        self._failure = ""

    def run(self, stop: threading.Event) -> None:
        """Go on until *stop* is set.  A store that is away is asked again."""
        _log.info("watching: %d watches", len(self._watches.watch))
        while not stop.is_set():
            try:
                self.round()
                self._failure = ""
            except CollectorError as error:
                if str(error) != self._failure:
                    _log.warning("watches are not evaluated: %s", error)
                self._failure = str(error)
            stop.wait(PERIOD_S)
        self.release()

    def round(self) -> Outcome | None:
        """Evaluate and send all that is due; None if another process does.

        Raises: StorageUnavailableError, StorageFullError: what is committed stays so.
        """
        now = self._store.now()
        self._read, self._ledger = self._store.ledger()
        if self._ledger.holder not in ("", self._holder) and self._ledger.until > now:
            return None
        try:
            self._take(now)
            for watch in self._watches.watch:
                self._evaluate(watch, now)
            self._send()
            self._commit(replace(self._ledger, looked=now))
        except LostLeaseError:
            return None
        states: dict[str, int] = {}
        for cursor in self._ledger.cursors.values():
            states[cursor.state] = states.get(cursor.state, 0) + 1
        return Outcome(states, len(self._ledger.outbox), tuple(self._unanswered()))

    def _unanswered(self) -> Iterator[tuple[str, str, str]]:
        series = self._store.series()
        for name, cursor in self._ledger.cursors.items():
            if cursor.state in (UNKNOWN, UNABLE):
                said = series[name].verdicts if name in series else ()
                yield name, cursor.state, said[0].text if said else "no reason is kept"

    def release(self) -> None:
        """Let another process go on at once."""
        try:
            self._read, self._ledger = self._store.ledger()
            if self._ledger.holder == self._holder:
                self._commit(replace(self._ledger, holder="", until=0))
        except CollectorError as error:
            _log.warning("%s; the next process waits %d s", error, LEASE_S)

    def _commit(self, ledger: WatchLedger) -> None:
        """Write *ledger* unless another process has.  Raises LostLeaseError."""
        text = self._store.replace(self._read, ledger)
        if text is None:
            raise LostLeaseError("watch: another process has taken over")
        self._read, self._ledger = text, ledger

    def _take(self, now: int) -> None:
        """Take or renew the lease; forget watches and channels that are no more."""
        names = {watch.name for watch in self._watches.watch}
        channels = {channel.name for channel in self._watches.channel}
        outbox = [
            replace(message, left={c: at for c, at in message.left.items() if c in channels})
            for message in self._ledger.outbox
        ]
        cursors = {name: c for name, c in self._ledger.cursors.items() if name in names}
        self._commit(
            replace(
                self._ledger,
                holder=self._holder,
                until=now + LEASE_S,
                false_alarms=self._watches.false_alarms,
                cursors=cursors,
                outbox=tuple(message for message in outbox if message.left),
            )
        )
        self._store.forget(sorted(self._store.series().keys() - names))

    def _renew(self) -> int:
        """Return the time; renew the lease if little of it is left.  Raises LostLeaseError."""
        now = self._store.now()
        if self._ledger.until - now < RENEW_S:
            self._commit(replace(self._ledger, until=now + LEASE_S))
        return now

    def _evaluate(self, watch: Watch, now: int) -> None:
        metric = metric_of(watch, self._catalog)
        cursor = self._ledger.cursors.get(watch.name)
        if cursor and cursor.definition != watch.definition:
            cursor = None  # another question: it begins anew
        last = None if cursor is None else period_from(metric, cursor.last)
        for period in due(last, newest(watch, metric, now)):
            self._renew()
            verdict = evaluate(self._watches, watch, self._catalog, self._tallies, period, now)
            self._keep(watch, verdict)
            before = self._ledger.cursors.get(watch.name)
            known = before if before and before.definition == watch.definition else None
            self._settle(watch, verdict, known, label(metric, period))

    def _settle(
        self, watch: Watch, verdict: Verdict, before: WatchCursor | None, period: str
    ) -> None:
        """Move the cursor and put the messages into the outbox, in one step."""
        same = before is not None and before.state == verdict.state
        since = before.since if before is not None and same else period
        reported = before.reported if before is not None else QUIET
        after = reported if verdict.state == UNKNOWN else verdict.state
        cursor = WatchCursor(watch.definition, period, verdict.state, since, after)
        outbox, given_up = self._ledger.outbox, self._ledger.given_up
        channels = self._watches.channels_of(watch)
        if channels and _is_news(watch, verdict.state, reported):
            message = WatchMessage(
                id=_id(watch, period),
                watch=watch.name,
                metric=watch.metric,
                at=verdict.at,
                note=watch.note,
                verdict=verdict,
                left=dict.fromkeys(channels, (0, 0)),
            )
            given_up += max(len(outbox) + 1 - MOST_WAITING, 0)
            outbox = (*outbox, message)[-MOST_WAITING:]
        cursors = {**self._ledger.cursors, watch.name: cursor}
        self._commit(replace(self._ledger, cursors=cursors, outbox=outbox, given_up=given_up))

    def _keep(self, watch: Watch, verdict: Verdict) -> None:
        """Append the verdict of the watch to its series; repeatable."""
        known = self._store.series().get(watch.name)
        verdicts: tuple[Verdict, ...] = ()
        if known is not None and known.definition == watch.definition:
            verdicts = tuple(each for each in known.verdicts if each.last != verdict.last)
        metric = metric_of(watch, self._catalog)
        rate = 0.0
        if metric is not None and metric.every != ONCE and is_bounded(watch):
            rate = self._watches.rate(metric.every)
        series = WatchSeries(
            name=watch.name,
            metric=f"{metric.app}/{metric.name}" if metric else watch.metric,
            title=title_of(watch, metric),
            definition=watch.definition,
            rate=rate,
            verdicts=(verdict, *verdicts)[:_HISTORY],
        )
        self._store.put(series)

    def _send(self) -> None:
        for channel in self._watches.channel:
            for message in self._waiting(channel):
                now = self._renew()
                tries, at = message.left[channel.name]
                if now - message.at > GIVEN_UP_S:
                    _log.error("channel=%s: a message is given up", channel.name)
                    self._settled(message, channel, 0, 1)
                    continue
                if at > now:
                    break
                try:
                    self._deliver(channel, message, now)
                except DeliveryError as error:
                    _log.warning("%s; it is sent again", error)
                    wait = min(_FIRST_RETRY_S * 2**tries, LAST_RETRY_S)
                    left = {**message.left, channel.name: (min(tries + 1, 20), now + wait)}
                    self._exchange(message, replace(message, left=left))
                    break
                self._settled(message, channel, 1, 0)

    def _waiting(self, channel: Channel) -> Iterator[WatchMessage]:
        """Yield the messages that wait for *channel*, as they are when their turn comes."""
        while message := next((m for m in self._ledger.outbox if channel.name in m.left), None):
            yield message

    def _settled(self, message: WatchMessage, channel: Channel, sent: int, lost: int) -> None:
        left = {name: at for name, at in message.left.items() if name != channel.name}
        counts = {"sent": self._ledger.sent + sent, "given_up": self._ledger.given_up + lost}
        self._ledger = replace(self._ledger, **counts)
        self._exchange(message, replace(message, left=left) if left else None)

    def _exchange(self, message: WatchMessage, other: WatchMessage | None) -> None:
        changed = (other if each is message else each for each in self._ledger.outbox)
        self._commit(replace(self._ledger, outbox=tuple(each for each in changed if each)))


def _is_news(watch: Watch, state: str, before: str) -> bool:
    """Return whether to send a message that a watch is in *state*, if the last one was *before*.

    Each change is sent, as each is of other periods; a threshold is sent when it begins and ends.
    A state that is unknown for lack of reports ends nothing.
    """
    if state in (FIRING, UNABLE):
        return state != before or (watch.changed is not None and state == FIRING)
    return state == QUIET and before in (FIRING, UNABLE) and watch.changed is None


def title_of(watch: Watch, metric: Metric | None) -> str:
    """Return the question of *watch* in words; None: its metric is gone."""
    title, unit = (metric.title, metric.domain.unit) if metric else (watch.metric, "")
    what = watch.item or ("" if watch.verb == ESTIMATE else watch.verb)
    named = f"{title}, {what}:" if what else f"{title}:"
    where = "".join(
        f", {name} {'is' if kind == 'is' else 'is not'} {' or '.join(values)}"
        for kind, name, values in watch.filters
    )
    if watch.silent is not None:
        return f"{title}: fewer than {100 * watch.silent:g} % of the usual reports{where}"
    if watch.changed is not None:
        points = POINTS if unit == SHARE else unit
        least = f" by more than {number(watch.changed, points, 0.0)}" if watch.changed else ""
        return f"{named} changed{least}{where}"
    limit = watch.above if watch.above is not None else watch.below or 0.0
    return f"{named} {watch.kind} {number(limit, unit, 0.0)}{where}"


def _id(watch: Watch, period: str) -> str:
    """Return the same id for the same alarm, for every sender and every try."""
    text = f"{watch.name} {watch.definition} {period}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]
