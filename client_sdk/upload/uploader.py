"""Sending what waits.

Of a device each upload has a connection and a time of its own, so that nothing but its content says
whose it is: a pass of the schedule sends one upload, and what was tried before is always alone in
its pass.  A gateway's pass sends all that waits.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

from ..core.dataclass import dataclass
from ..core.epoch import day_of
from ..core.locks import ProcessLock
from ..core.randomness import Randomness
from ..core.stats import Reason, Stats
from ..core.typing import TYPE_CHECKING, Final
from ..privacy.consent import ConsentSwitch
from ..storage import outbox
from ..storage.outbox import discard_token, keep_acknowledged
from ..storage.store import Store
from ..wire.reports import DEVICE, Bounds
from . import sealing
from .schedule import FIRST_REST, UPLOAD_EVERY, Schedule
from .sealing import SealedUpload, Sealer
from .transport import (
    TOO_LARGE,
    Answer,
    Outcome,
    Transport,
    outcome_of,
    read_acknowledgement,
    why_turned_away,
)

if TYPE_CHECKING:
    from ..storage.schema import Transaction
    from .retired_list import RetiredList
    from .tokens import Issuer, TokenStore

ASLEEP: Final = 600.0  # seconds; a pass so late was missed, as the thread looks twice in that time
_MUST_WAIT: Final = {Outcome.TRANSIENT: Reason.POSTPONED, Outcome.INCAPABLE: Reason.REFUSED}


@dataclass(frozen=True)
class Delivery:
    """What became of all that waited when a flush was asked for."""

    waiting: int | None  # reports and values still here; None if the database cannot tell
    wait: float = 0.0  # seconds until a further flush may send

    @property
    def complete(self) -> bool:
        """Whether nothing waits any more."""
        return self.waiting == 0


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
        retire_key: str | None = None,
        tokens: Issuer | None = None,
        app: str = "",
    ) -> None:
        """Take everything from outside; *randomness* draws upload ids and waiting times.

        Args: retire_key: of who may retire metrics, in hexadecimal; None: nobody is asked.
              tokens: who gives a one-time token for each upload of *app*; None: none is needed.
        """
        self._store, self._transport, self._consent = store, transport, consent
        self._stats, self._clock, self._apart = stats, clock, bounds.apart
        self._tokens: TokenStore | None = None
        self._retired: RetiredList | None = None
        if tokens is not None:
            from .tokens import TokenStore  # few applications need it

            self._tokens = TokenStore(
                tokens,
                app,
                store=store,
                stats=stats,
                clock=clock,
                consent=consent,
                randomness=randomness,
            )
        if retire_key is not None:
            from .retired_list import RetiredList

            self._retired = RetiredList(retire_key, store, transport, consent, stats)
        self._sealer = Sealer(randomness, bounds, self._tokens)
        self._schedule = Schedule(randomness)
        self._pass = ProcessLock()
        self._loaded = False
        self._thread: Thread | None = None
        self._rest_until = 0.0  # Unix time, of this process only

    def wait(self, now: float) -> float:
        """Return the seconds from Unix time *now* until the next pass of ``run``; 0: it is due.

        Raises: StoreError, EntropyError: the first pass could not be planned.
        """
        first = not self._loaded
        if first:
            if not self._store.exists:
                return UPLOAD_EVERY / 2  # nothing waits, and looking for it would make a database
            self.due()
            self._loaded = True
        if self._apart and self._missed(now, first=first):
            with self._store.transaction() as tx:
                self._schedule.load(tx)  # another process may have made the pass
                if self._missed(now, first=first):
                    self._rest_until = self._schedule.rest(tx, now)
        return max(self._schedule.wait(now), self._rest(now))

    def due(self) -> float:
        """Return from which Unix time on a pass is due, and plan the first if there was none.

        Raises: StoreError, EntropyError.
        """
        with self._store.transaction() as tx:
            self._schedule.load(tx)
            if not self._schedule.planned:
                self._schedule.plan(tx, self._clock())
        return self._schedule.due(self._clock())

    def run(self, timeout: float, *, last: bool = False) -> None:
        """Make one pass if it is due by the schedule that all processes share.

        Args:   timeout: seconds after which no upload is begun and no answer awaited.
                last: this short-lived process has no better moment, so do not wait for one.
        Raises: StoreError, EntropyError: what was not acknowledged is kept.
        """
        now = self._clock()
        if self.wait(now) <= 0 or (last and self._loaded and self._schedule.wait(now) <= 0):
            self._make_pass(timeout, scheduled=True)

    def start(self, timeout: float) -> None:
        """``run`` in a thread of its own, so that a slow collector holds no value in memory."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(
                target=self._run_counted, args=(timeout,), name="hearsay-upload", daemon=True
            )
            self._thread.start()

    def join(self, timeout: float) -> None:
        """Wait up to *timeout* seconds for the thread that ``start`` began, if it still runs."""
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(timeout)

    def flush(self, timeout: float) -> None:
        """Make one pass now, unless an earlier failure must be waited for; else as ``run``."""
        self._make_pass(timeout, scheduled=False)

    def delivery(self) -> Delivery:
        """Return what waits, and for how long it must.  Raises StoreError."""
        if not self._store.exists:
            return Delivery(0)
        with self._store.transaction() as tx:
            self._schedule.load(tx)
            return Delivery(outbox.waiting(tx), self._schedule.backoff(self._clock()))

    def hang_up(self) -> None:
        """End all connections, and so a request of another thread.  Never raises."""
        hang_up = getattr(self._transport, "hang_up", None)
        if hang_up is not None:
            with self._stats.counting():
                hang_up()

    @property
    def failing(self) -> bool:
        """Whether the last try must be repeated."""
        return self._schedule.failing

    def _run_counted(self, timeout: float) -> None:
        with self._stats.counting():
            self.run(timeout)

    def _missed(self, now: float, *, first: bool) -> bool:
        """Whether a pass fell due while this program, or the machine, did not run."""
        if self._schedule.wait(now) > 0 or self._rest(now) > 0:
            return False
        late = now - max(self._schedule.due(now), self._rest_until)
        return first or late > ASLEEP

    def _rest(self, now: float) -> float:
        rest = self._rest_until - now
        # a longer rest means that the clock was set back
        return rest if 0 < rest <= FIRST_REST else 0.0

    def _make_pass(self, timeout: float, *, scheduled: bool) -> None:
        """Send upload after upload, as far as they may share a pass, until one must wait."""
        deadline = self._clock() + timeout
        if timeout <= 0:
            return  # the schedule stays as it is
        if not self._pass.acquire(timeout):
            return  # another thread is sending the same uploads
        try:
            tokens = self._tokens
            if tokens is not None and tokens.fill(self._schedule, timeout, scheduled=scheduled):
                return  # nobody may know who asked for tokens by what is sent right after
            upload, accepted = self._begin(scheduled=scheduled), False
            while upload is not None:
                # the wait is no longer than asked, even if the clock was set back
                answer = self._send(upload, min(timeout, deadline - self._clock()))
                if answer is None:
                    return
                smaller = self._split(upload) if answer.status == TOO_LARGE else None
                if smaller is None and self._must_wait(answer):
                    return
                alone = self._apart and (scheduled or not upload.is_new)
                more = self._clock() < deadline and not alone
                accepted = accepted or outcome_of(answer) is Outcome.ACCEPTED
                upload = smaller or self._commit(upload, answer, more=more)
            if accepted and self._retired is not None:
                try:
                    self._retired.fetch(min(timeout, deadline - self._clock()))
                finally:
                    self.hang_up()
        finally:
            self._pass.release()

    def _begin(self, *, scheduled: bool) -> SealedUpload | None:
        """In one transaction: drop what is too old, take an upload, and claim this pass for it."""
        now = self._clock()
        with self._store.transaction() as tx:
            self._schedule.load(tx)  # another process may have been here
            self._loaded = True
            if (self._schedule.wait if scheduled else self._schedule.backoff)(now) > 0:
                return None
            too_old = outbox.expire(tx, day_of(now))
            if scheduled and not self._schedule.may_depart(now):
                upload = self._retry(tx)
            else:
                failing = self._schedule.failing or self._schedule.claimed != b""
                upload = self._next(tx, failing=failing)
                waiting = self._sealer.waiting_uploads(tx) - 1 if self._apart else 1
                self._schedule.plan(tx, now, waiting)
        self._stats.add(Reason.TOO_OLD, too_old)
        return upload

    def _retry(self, tx: Transaction) -> SealedUpload | None:
        """Return what was tried last: only who knows it can tell that it is this device."""
        upload = None
        if self._consent.may_send_now():
            upload = self._claim(tx, self._sealer.sealed(tx, self._schedule.claimed))
        if upload is None:  # another process has its answer, or it is too old or erased
            self._schedule.release(tx)
        return upload

    def _next(
        self, tx: Transaction, *, failing: bool = False, new: bool = False
    ) -> SealedUpload | None:
        """Return the next upload and claim it; *new*: one that was never tried."""
        if not self._consent.may_send_now():
            return None
        day, sealer = day_of(self._clock()), self._sealer
        upload = sealer.seal(tx, day) if new else sealer.take(tx, day, failing=failing)
        return self._claim(tx, upload)

    def _claim(self, tx: Transaction, upload: SealedUpload | None) -> SealedUpload | None:
        """Note that *upload*, if there is one, is being tried, for all processes."""
        if upload is None:
            return None
        self._schedule.claim(tx, self._clock(), upload.upload_id)
        return sealing.move_to_end(tx, upload)

    def _split(self, upload: SealedUpload) -> SealedUpload | None:
        """Return the first of smaller uploads of the same reports, if there can be any."""
        with self._store.transaction() as tx:
            if not self._consent.may_send_now():
                return None
            day = day_of(self._clock())
            smaller = self._claim(tx, self._sealer.seal_smaller(tx, upload, day))
        if smaller is not None:
            self._stats.add(Reason.REFUSED)
        return smaller

    def _commit(self, upload: SealedUpload, answer: Answer, *, more: bool) -> SealedUpload | None:
        """In one transaction: delete the answered *upload* and take the next, if *more*."""
        accepted = outcome_of(answer) is Outcome.ACCEPTED
        with self._store.transaction() as tx:
            removed = sealing.remove(tx, upload.upload_id)
            if upload.token is not None:
                discard_token(tx, upload.upload_id)
            if removed and accepted and self._sealer.bounds.remembers:
                keep_acknowledged(tx, upload.body, day_of(self._clock()))
            self._schedule.release(tx)
            following = self._next(tx, new=self._apart) if more else None
        if removed:
            self._count(upload, answer)
        return following

    def _send(self, upload: SealedUpload, timeout: float) -> Answer | None:
        """Return the answer to *upload*, on a connection of its own; None: it must wait."""
        if (
            timeout <= 0 or not self._consent.may_send_now()
        ):  # consent is checked again, as sealing took time
            return None
        try:
            # that of an application may take no headers
            more: dict[str, object] = {} if upload.token is None else {"headers": upload.headers}
            return self._transport.send(upload.body, timeout, **more)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not be met in a loop
            self._stats.fail(error)
            unseen = upload.is_new and getattr(error, "unseen", False)
            self._postpone(0.0, unseen=upload if unseen else None)
            return None
        finally:
            self.hang_up()

    def _must_wait(self, answer: Answer) -> bool:
        """Whether *answer* is not the last word on its upload; that is counted and planned."""
        reason = _MUST_WAIT.get(outcome_of(answer))
        if reason is None:
            return False
        self._stats.add(reason)
        refusal = answer.status if reason is Reason.REFUSED else 0
        if refusal:
            self._stats.warn("uploads", why_turned_away(refusal))
        self._postpone(answer.retry_after or 0.0, refusal=refusal)
        return True

    def _postpone(self, wait: float, unseen: SealedUpload | None = None, refusal: int = 0) -> None:
        """Wait.  What is *unseen*, as no connection was made, need not stay as it was sealed."""
        with self._store.transaction() as tx:
            unsealed = unseen is not None and self._sealer.unseal(tx, unseen)
            self._schedule.postpone(tx, self._clock(), wait, unseen=unsealed, refusal=refusal)

    def _count(self, upload: SealedUpload, answer: Answer) -> None:
        if outcome_of(answer) is Outcome.PERMANENT:
            self._stats.add(Reason.REJECTED, upload.reports)
            return
        rejected, duplicate = read_acknowledgement(answer.body)
        rejected = min(rejected, upload.reports)
        self._stats.add(Reason.UPLOADED, upload.reports - rejected)
        self._stats.add(Reason.REJECTED, rejected)
        self._stats.add(Reason.DUPLICATES, int(duplicate))
