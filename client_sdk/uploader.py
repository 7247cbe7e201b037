"""Sending what waits: one pass at a time, in order, until it is done or must be tried later."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from . import outbox
from .consent import ConsentSwitch
from .epoch import DAY, HOUR, day_of
from .errors import TransportError
from .locks import ProcessLock
from .outbox import Sealed
from .randomness import Randomness
from .stats import Reason, Stats
from .store import Store
from .transport import MAX_ANSWER, Answer, Transport

if TYPE_CHECKING:
    from .store import Transaction

MAX_RETRY_AFTER: Final = DAY  # seconds; no collector can silence a device for longer
FIRST_BACKOFF: Final = 30  # seconds; the ceiling after one failure, doubled by each further one
MAX_BACKOFF: Final = 6 * HOUR  # seconds; a collector that returns is found the same day

_ACCEPTED: Final = 202
_TRANSIENT: Final = (408, 425, 429)  # and every 5xx
_PERMANENT: Final = (400, 409, 410, 413, 415, 422)  # these blame the body, nothing else does


class Outcome(Enum):
    """What an answer means for the upload."""

    ACCEPTED = auto()  # durable at the collector: delete
    TRANSIENT = auto()  # keep, and send the same bytes later
    PERMANENT = auto()  # never accepted as it is: drop
    INCAPABLE = auto()  # this key, address or proxy cannot take it now: keep, as if transient


_KEPT: Final = {Outcome.TRANSIENT: Reason.POSTPONED, Outcome.INCAPABLE: Reason.REFUSED}


def outcome_of(status: int) -> Outcome:
    """Return what HTTP *status* means."""
    if status == _ACCEPTED:
        return Outcome.ACCEPTED
    if status in _TRANSIENT or 500 <= status <= 599:
        return Outcome.TRANSIENT
    return Outcome.PERMANENT if status in _PERMANENT else Outcome.INCAPABLE


class Uploader:
    """Moves reports from the outbox to the collector."""

    def __init__(
        self,
        store: Store,
        transport: Transport,
        consent: ConsentSwitch,
        stats: Stats,
        clock: Callable[[], float],
        randomness: Randomness,
    ) -> None:
        """Take everything from outside; *randomness* draws upload ids and waiting times."""
        self._store, self._transport, self._consent = store, transport, consent
        self._stats, self._clock, self._randomness = stats, clock, randomness
        self._pass = ProcessLock()
        self._failures = 0  # in a row
        self._not_before = 0.0  # Unix time

    def flush(self, timeout: float) -> None:
        """Make one pass: send every upload once, and stop at the first that must wait.

        Args:   timeout: seconds after which no upload is begun and no answer awaited.
        Raises: StoreError, EntropyError: what was not acknowledged is kept.
        """
        deadline = self._clock() + timeout
        if not self._pass.acquire(timeout):
            return  # another thread is sending the same uploads
        try:
            if self._must_wait():
                return
            upload = self._begin()
            while upload is not None:
                # no longer than asked, even if the clock was set back meanwhile
                answer = self._send(upload, min(timeout, deadline - self._clock()))
                if answer is None:
                    return
                upload = self._settle(upload, answer, more=self._clock() < deadline)
        finally:
            self._pass.release()

    @property
    def failing(self) -> bool:
        """Whether the last try must be repeated."""
        return self._failures > 0

    def _must_wait(self) -> bool:
        # a wait longer than any that is ever set was computed before the clock was set back
        return 0 < self._not_before - self._clock() <= max(MAX_RETRY_AFTER, MAX_BACKOFF)

    def _begin(self) -> Sealed | None:
        """In one transaction: drop what is too old and take the first upload."""
        with self._store.transaction() as tx:
            too_old = outbox.expire(tx, day_of(self._clock()))
            upload = self._next(tx)
        self._stats.add(Reason.TOO_OLD, too_old)
        return upload

    def _settle(self, upload: Sealed, answer: Answer, *, more: bool) -> Sealed | None:
        """In one transaction: delete the answered *upload* and take the next, if *more*."""
        with self._store.transaction() as tx:
            removed = outbox.remove(tx, upload.upload_id)
            following = self._next(tx) if more else None
        if removed:
            self._count(upload, answer)
        return following

    def _next(self, tx: Transaction) -> Sealed | None:
        if not self._consent.granted:
            return None
        return outbox.next_upload(tx, day_of(self._clock()), self._randomness)

    def _send(self, upload: Sealed, timeout: float) -> Answer | None:
        """Return the answer that settles *upload*, or None if it must be sent later."""
        if timeout <= 0 or not self._consent.granted:  # again: sealing took time
            return None
        try:
            answer = self._transport.send(upload.body, timeout)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not be met in a loop
            lost = isinstance(error, TransportError)
            self._stats.add(Reason.NETWORK if lost else Reason.INTERNAL)
            self._postpone(0.0)
            return None
        reason = _KEPT.get(outcome_of(answer.status))
        if reason is not None:
            self._stats.add(reason)
            self._postpone(answer.retry_after or 0.0)
            self._defer(upload)
            return None
        self._failures = 0
        return answer

    def _defer(self, upload: Sealed) -> None:
        """Let others go first next time: it may be this upload that the collector fails at."""
        with self._store.transaction() as tx:
            outbox.defer(tx, upload.upload_id, day_of(self._clock()), self._randomness)

    def _postpone(self, retry_after: float) -> None:
        """Wait a random part of an exponentially growing time, and at least *retry_after*."""
        self._failures += 1
        ceiling = min(MAX_BACKOFF, FIRST_BACKOFF << min(self._failures - 1, 16))
        jitter = self._randomness.uniform(1_000 * ceiling + 1) / 1_000
        wait = max(jitter, min(retry_after, MAX_RETRY_AFTER))
        self._not_before = self._clock() + wait

    def _count(self, upload: Sealed, answer: Answer) -> None:
        if outcome_of(answer.status) is Outcome.PERMANENT:
            self._stats.add(Reason.REJECTED, upload.reports)
            return
        rejected, duplicate = read_acknowledgement(answer.body)
        rejected = min(rejected, upload.reports)
        self._stats.add(Reason.UPLOADED, upload.reports - rejected)
        self._stats.add(Reason.REJECTED, rejected)
        self._stats.add(Reason.DUPLICATES, int(duplicate))


def read_acknowledgement(body: bytes) -> tuple[int, bool]:
    """Return how many reports were rejected and whether the upload was known, from a 202's body.

    It only feeds the counts, so anything unexpected reads as nothing rejected, not known.
    """
    if len(body) > MAX_ANSWER:
        return 0, False
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return 0, False
    if not isinstance(answer, dict):
        return 0, False
    entries = answer.get("rejected")
    counts = [
        entry.get("count")
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
    ]
    rejected = sum(count for count in counts if type(count) is int and count > 0)
    return rejected, answer.get("duplicate") is True
