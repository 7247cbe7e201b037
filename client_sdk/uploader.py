"""Sending what waits: one pass at a time, in order, until it is done or must be tried later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from . import outbox, sealing, sent
from .answers import Outcome, outcome_of, read_acknowledgement
from .bounds import DEVICE, Bounds
from .consent import ConsentSwitch
from .epoch import day_of
from .errors import TransportError
from .locks import ProcessLock
from .randomness import Randomness
from .schedule import UPLOAD_EVERY, Schedule
from .sealing import Sealed, Sealer
from .stats import Reason, Stats
from .store import Store
from .transport import Answer, Transport

if TYPE_CHECKING:
    from .store import Transaction

_KEPT: Final = {Outcome.TRANSIENT: Reason.POSTPONED, Outcome.INCAPABLE: Reason.REFUSED}


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
        bounds: Bounds = DEVICE,
    ) -> None:
        """Take everything from outside; *randomness* draws upload ids and waiting times."""
        self._store, self._transport, self._consent = store, transport, consent
        self._stats, self._clock = stats, clock
        self._sealer, self._schedule = Sealer(randomness, bounds), Schedule(randomness)
        self._pass = ProcessLock()
        self._loaded = False

    def wait(self, now: float) -> float:
        """Return the seconds from Unix time *now* until the next pass of ``run``; 0: it is due.

        Raises: StoreError, EntropyError: the first pass could not be planned.
        """
        if not self._loaded:
            if not self._store.exists:
                return UPLOAD_EVERY / 2  # nothing waits, and looking for it would make a database
            with self._store.transaction() as tx:
                self._schedule.load(tx)
                if not self._schedule.planned:
                    self._schedule.plan(tx, now)
            self._loaded = True
        return self._schedule.wait(now)

    def due(self, now: float) -> bool:
        """Return whether ``run`` would make a pass at Unix time *now*.  Raises as ``wait``."""
        return self.wait(now) <= 0

    def run(self, timeout: float) -> None:
        """Make one pass if it is due by the schedule that all processes share.

        Args:   timeout: seconds after which no upload is begun and no answer awaited.
        Raises: StoreError, EntropyError: what was not acknowledged is kept.
        """
        if self.due(self._clock()):
            self._make_pass(timeout, scheduled=True)

    def flush(self, timeout: float) -> None:
        """Make one pass now, unless an earlier failure must be waited for; else as ``run``."""
        self._make_pass(timeout, scheduled=False)

    def hang_up(self) -> None:
        """End all connections, and so a request of another thread.  Never raises."""
        hang_up = getattr(self._transport, "hang_up", None)
        if hang_up is None:
            return
        try:
            hang_up()
        except Exception as error:  # noqa: BLE001 - an application's own transport
            self._stats.fail(error, reason=Reason.INTERNAL)

    @property
    def failing(self) -> bool:
        """Whether the last try must be repeated."""
        return self._schedule.failing

    def _make_pass(self, timeout: float, *, scheduled: bool) -> None:
        """Send every upload once, and stop at the first that must wait."""
        deadline = self._clock() + timeout
        if timeout <= 0:
            return  # and leave the schedule as it is
        if not self._pass.acquire(timeout):
            return  # another thread is sending the same uploads
        try:
            upload = self._begin(scheduled=scheduled)
            while upload is not None:
                # no longer than asked, even if the clock was set back meanwhile
                answer = self._send(upload, min(timeout, deadline - self._clock()))
                if answer is None:
                    return
                upload = self._settle(upload, answer, more=self._clock() < deadline)
        finally:
            self.hang_up()
            self._pass.release()

    def _begin(self, *, scheduled: bool) -> Sealed | None:
        """In one transaction: claim this pass, drop what is too old and take the first upload."""
        now = self._clock()
        with self._store.transaction() as tx:
            self._schedule.load(tx)  # another process may have been here
            self._loaded = True
            if (self._schedule.wait if scheduled else self._schedule.backoff)(now) > 0:
                return None
            self._schedule.plan(tx, now)
            too_old = outbox.expire(tx, day_of(now))
            upload = self._next(tx)
        self._stats.add(Reason.TOO_OLD, too_old)
        return upload

    def _settle(self, upload: Sealed, answer: Answer, *, more: bool) -> Sealed | None:
        """In one transaction: delete the answered *upload* and take the next, if *more*."""
        accepted = outcome_of(answer.status) is Outcome.ACCEPTED
        with self._store.transaction() as tx:
            removed = sealing.remove(tx, upload.upload_id)
            if removed and accepted and self._sealer.bounds.remembers:
                sent.remember(tx, upload.body, day_of(self._clock()))
            self._schedule.succeed(tx)
            following = self._next(tx) if more else None
        if removed:
            self._count(upload, answer)
        return following

    def _next(self, tx: Transaction) -> Sealed | None:
        if not self._consent.may_send:
            return None
        return self._sealer.next_upload(tx, day_of(self._clock()))

    def _send(self, upload: Sealed, timeout: float) -> Answer | None:
        """Return the answer that settles *upload*, or None if it must be sent later."""
        if timeout <= 0 or not self._consent.may_send:  # again: sealing took time
            return None
        try:
            answer = self._transport.send(upload.body, timeout)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not be met in a loop
            lost = isinstance(error, TransportError)
            self._stats.fail(error, reason=Reason.NETWORK if lost else Reason.INTERNAL)
            self._postpone(0.0)
            return None
        reason = _KEPT.get(outcome_of(answer.status))
        if reason is not None:
            self._stats.add(reason)
            self._postpone(answer.retry_after or 0.0, behind=upload)
            return None
        return answer

    def _postpone(self, retry_after: float, behind: Sealed | None = None) -> None:
        """Wait, and let others go first next time: *behind* may be what the collector fails at."""
        now = self._clock()
        with self._store.transaction() as tx:
            self._schedule.postpone(tx, now, retry_after)
            if behind is not None:
                self._sealer.defer(tx, behind.upload_id, day_of(now))

    def _count(self, upload: Sealed, answer: Answer) -> None:
        if outcome_of(answer.status) is Outcome.PERMANENT:
            self._stats.add(Reason.REJECTED, upload.reports)
            return
        rejected, duplicate = read_acknowledgement(answer.body)
        rejected = min(rejected, upload.reports)
        self._stats.add(Reason.UPLOADED, upload.reports - rejected)
        self._stats.add(Reason.REJECTED, rejected)
        self._stats.add(Reason.DUPLICATES, int(duplicate))
