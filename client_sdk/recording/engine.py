"""The order in which the parts of a client act, and whether it has a thread of its own.

Nothing here raises into the application.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident

from ..core.dataclass import replace
from ..core.epoch import HOUR
from ..core.errors import EntropyError, StoreError
from ..core.locks import PerProcess, this_process
from ..core.paths import absolute
from ..core.randomness import system_randomness
from ..core.stats import MISTAKES, Reason, Stats, reason_of
from ..core.typing import TYPE_CHECKING, Final, NamedTuple
from ..privacy.caps import Caps
from ..privacy.consent import Consent, ConsentLike, ConsentSwitch, OptOuts
from ..registry.contract import Registry
from ..registry.keys import SEGMENT
from ..storage.ledger import Ledger
from ..storage.outbox import Outbox
from ..storage.store import Store
from ..storage.trusted_clock import SystemUptime
from ..upload.schedule import SHORTEST_REST
from ..upload.uploader import Delivery, Uploader
from .background import (
    THREADS_STAND_STILL,
    Background,
    Mode,
    at_end_of_child,
    run_within,
    seconds_of,
    why_no_thread,
)
from .erasure import Erasure
from .inbox import Inbox, Pending, Settled
from .recorder import Recorder

if TYPE_CHECKING:
    from .history import History
    from .options import Options

CLOSE_TIMEOUT: Final = 1.0  # seconds; an application that ends must not hang on its telemetry
# Seconds that a value of manual mode waits for commits of other threads, each of 2 s at most.
_MANUAL_TIMEOUT: Final = 10.0
_UPLOAD_TIMEOUT: Final = 120.0  # seconds of a scheduled pass; it has a thread of its own
_RETRY: Final = 60.0  # seconds until the schedule is asked again after the database failed


class _ProcessState(NamedTuple):
    """What each process has of its own: what was recorded there, and what writes it."""

    inbox: Inbox
    background: Background[Pending]


class Engine:
    """Records, uploads, erases and ends.  Thread-safe; each failure is counted by reason.

    In manual mode it is an engine that may have no thread: whoever records writes.
    """

    close_timeout = CLOSE_TIMEOUT  # seconds; more only in tests, on machines that are busy

    def __init__(self, options: Options) -> None:
        """Make what a client or a gateway drives; write nothing yet, but erase what a denial must.

        Raises: InvalidParameterError, RegistryError.
        """
        self.options, self.clock, self.stats = options, options.clock, Stats()
        self.folder = absolute(options.data_dir)
        self.registry = Registry.of(options.registry)
        self.caps = Caps.of(options.caps).within(self.registry.panel_week)
        opt_outs = options.opt_outs or OptOuts(
            self.folder, heeds_automation=not (options.dry_run or options.gateway)
        )
        automation = opt_outs.automation()
        segment = self.registry.whole_segment(
            options.segment or {}, automated=automation is not None
        )
        randomness = options.randomness or system_randomness()
        ignored = None if self.registry.automation == SEGMENT else automation
        self.switch = ConsentSwitch(
            Consent.of(options.consent), opt_outs, ignored, options.withdrawn
        )
        self.store = Store(None if options.dry_run else self.folder)
        self.history: History | None = None
        if options.remember:
            from .history import History  # few applications need it

            self.history = History(options.on_report)
        self.recorder = Recorder(
            registry=self.registry,
            store=self.store,
            ledger=Ledger(self.caps),
            outbox=Outbox(segment, options.bounds),
            randomness=randomness,
            consent=self.switch,
            uptime=options.uptime or SystemUptime(),
            on_report=options.on_report if self.history is None else self.history.observe,
            history=self.history,
            advise=self.stats.warn,
            own=not options.gateway,
        )
        self.recorder.require_panel()
        self.uploader = Uploader(
            store=self.store,
            transport=options.open_transport(),
            consent=self.switch,
            stats=self.stats,
            clock=self.clock,
            randomness=randomness,
            bounds=options.bounds,
            retire_key=self.registry.retire_key,
            tokens=None if options.dry_run else options.tokens,
            app=self.registry.app,
        )
        self.erasure = Erasure(
            self.store, self.switch, self.stats, forget=self._forget, wake=self._wake
        )
        self._closed = False
        self._unwritten = False  # whether the last that was to be written could not be
        self._started_at = time.monotonic()
        self._ticking = set[int]()  # threads that make reports of windows just now
        self._deadline = 0.0  # of close, on the monotonic clock
        self._manual = Mode.of(options.mode) is Mode.MANUAL
        self._state = PerProcess(self._new_state)
        self._owner_process = this_process()
        self.erasure.apply()
        if self._manual and self.store.exists:
            self.tick()

    def record(self, name: object, value: object) -> None:
        """Check *value* and queue it; without a thread, report it at once."""
        try:
            if self._closed:
                self.stats.add(Reason.CLOSED)
                return
            if self._manual:
                self.tick()
            state = self._state()
            if not state.inbox.put(name, value, self.clock()) or state.background.notified:
                return  # this is the usual case, and all is done
            if state.background.notify() or self._in_hook:
                return
            if self._manual:
                self._write_at_once(state)
            elif not state.background.may_wait:
                state.background.drain(self.close_timeout)
                self.tick()
        except Exception as error:
            self.stats.fail(error)
            if self.options.strict and reason_of(error) in MISTAKES:
                raise

    @property
    def _in_hook(self) -> bool:
        """Whether ``on_report`` of a report that this thread writes just now called this."""
        return get_ident() in self._ticking or self._state().background.writes_here

    def _write_at_once(self, state: _ProcessState) -> None:
        """Write what waits and what ``on_report`` recorded."""
        state.background.drain(_MANUAL_TIMEOUT)
        self.tick()
        if state.inbox:
            state.background.drain(_MANUAL_TIMEOUT)

    def flush(self, timeout: float) -> Delivery:
        """Write down what is queued, send what waits, and return what still does."""
        seconds = 0.0
        with self.stats.counting():
            seconds = seconds_of(timeout)
        with self.store.within(max(seconds, self.close_timeout)):
            self._send(seconds, self.uploader.flush)
            if not self._closed and not self._unwritten:
                with suppress(Exception):  # the flush met it before, and counted it
                    delivery = self.uploader.delivery()
                    waiting = (delivery.waiting or 0) + len(self._state().inbox)
                    return replace(delivery, waiting=waiting)
        return Delivery(None)

    def upload(self, timeout: float) -> None:
        """Write down what is queued; send what waits if that is due by the schedule."""
        self._send(timeout, self.uploader.run)

    def _send(self, timeout: float, send: Callable[[float], None]) -> None:
        self.erasure.refresh()
        self.erasure.apply()
        erased = self.erasure.run()
        with self.stats.counting():
            seconds = seconds_of(timeout)
            end = time.monotonic() + seconds
            if self._closed or not erased or self.switch.in_force is Consent.DENIED:
                return
            self._state().background.drain(max(seconds, self.close_timeout))
            self.tick(rests=True)
            if self.store.exists:
                send(max(0.0, end - time.monotonic()))

    def tick(self, *, rests: bool = False) -> None:
        """Report windows that ended, open those that are scheduled; keep the time if it *rests*."""
        if self._in_hook:
            return
        with self.stats.counting():
            now, recorder, taken = self.clock(), self.recorder, 0
            self._ticking.add(get_ident())
            try:
                while not self.erasure.store_closed and recorder.is_due(now):
                    counts = recorder.tick(now)
                    self.stats.add_all(counts)
                    taken += counts[Reason.WINDOW_CLOSED] + counts[Reason.WINDOW_DROPPED]
                if rests:
                    recorder.keep_time(now)
            finally:
                self._ticking.discard(get_ident())
            if taken:
                self.store.scrub()  # it overwrites what was true of them

    def close(self, timeout: float | None = None) -> None:
        """Write down what is queued and send what is due; then close the store.

        Args: timeout: seconds to wait for all of that; None: ``close_timeout``.
        """
        with self.stats.counting():
            self.close_timeout = self.close_timeout if timeout is None else seconds_of(timeout)
        self._end(silent=False)

    def exit(self) -> None:
        """Leave the process: write down what is queued, and wait no longer than ``close_timeout``.

        A forked child that has recorded nothing does nothing.
        """
        self._end(silent=True)

    def _end(self, *, silent: bool) -> None:
        """Write and send the last; *silent*: only if there is any to write."""
        if self._closed:
            return
        self._closed, state = True, self._state()
        self._deadline = time.monotonic() + self.close_timeout
        if not state.background.stop(self.close_timeout):
            # what a process that has recorded nothing owes are its windows, unless it is a child
            owes = this_process() == self._owner_process and not self._manual
            if silent and not state.inbox and not (owes and self.recorder.is_due(self.clock())):
                return
            if self._manual:
                with self.store.within(max(self.close_timeout, CLOSE_TIMEOUT)):
                    self._write_last()
            else:
                run_within(self.close_timeout, self._write_last)
        if state.inbox or state.background.writing:
            self.stats.add(Reason.LATE)

    def watch(self) -> None:
        """See to the windows from now on, whether or not anything is recorded."""
        with self.stats.counting():
            if not self._closed and not self._wake():
                self.tick()

    def set_consent(self, consent: ConsentLike) -> None:
        """Erase if *consent* is denied; if it is granted, see to the windows where that can be.

        Raises: InvalidParameterError: not a Consent; the old answer stands.
        """
        self.switch.consent = Consent.of(consent)
        self.erasure.apply()
        if self._manual:
            self.tick()

    def counts(self) -> dict[str, int]:
        """Return the counts by reason, with what is only known not to be written."""
        self._state().inbox.fold()
        return self.stats.counts()

    def commit(self, group: list[Pending], done: list[Settled] | None = None) -> None:
        """Turn *group* into reports, or count why not.

        Args: done: takes those whose metric and epoch have their one report now, or get none.
        """
        self.erasure.refresh()
        self._unwritten = not self.erasure.run()
        if self._unwritten:
            self.stats.add(Reason.STORE, sum(pending.count for pending in group))
            return
        try:
            settled: list[Settled] = []
            counts = self.recorder.commit(group, settled)
            if not self._manual:  # there the ledger is asked about each value
                self._state().inbox.settle(settled)
            if done is not None:
                done += settled
            self.stats.add_all(counts)
        except (StoreError, EntropyError) as error:
            self._unwritten = True
            self.stats.fail(error, sum(pending.count for pending in group))
        except Exception as error:  # noqa: BLE001 - nothing of the group happened: find the one
            if len(group) == 1:
                self.stats.fail(error, group[0].count)
            else:
                for pending in group:
                    self.commit([pending], done)

    def _idle(self) -> float:
        """See to what is due; return the seconds until something is."""
        self.erasure.refresh()
        if not self.erasure.run():
            return self.erasure.wait
        self.tick(rests=True)
        if not self.erasure.done:
            return self.erasure.wait
        if not self.switch.granted:
            return HOUR  # a value that comes after a new consent wakes the thread
        with self.stats.counting():
            now = self.clock()
            wait = self.uploader.wait(now)
            if wait > 0:
                return min(wait, self.recorder.wait(now))
            self.uploader.start(_UPLOAD_TIMEOUT)
        return _RETRY

    def _write_last(self) -> None:
        """Write what is queued, send what may be sent in the time that is left, close the store."""
        self._state().background.drain(self.close_timeout)
        self.erasure.refresh()
        erased = self.erasure.run()
        if erased:
            self.tick(rests=True)
        with self.stats.counting():
            self.uploader.join(max(0.0, self._deadline - time.monotonic()))
            seconds = self._deadline - time.monotonic()
            if seconds > 0 and erased and self.store.exists:
                # a database that outlives the process keeps to the schedule, and hides its end
                if self.store.durable and not self._manual:
                    short = time.monotonic() - self._started_at < SHORTEST_REST
                    self.uploader.run(seconds, last=short or why_no_thread() is not None)
                elif not self.uploader.failing:
                    self.uploader.flush(seconds)
        self.close_store()

    def close_store(self) -> None:
        """Erase what is due and close the store, with nothing written and nothing sent."""
        self.erasure.run()
        self._closed = True
        self.uploader.hang_up()  # a collector could otherwise hold the thread of a request
        self.erasure.store_closed = True
        with self.stats.counting():
            self.store.close()

    def _new_state(self) -> _ProcessState:
        inbox = Inbox(self.recorder.slot, self.switch, self.stats)
        background = Background(
            take=inbox.take,
            commit=self.commit,
            idle=self._idle,
            finish=self._write_last,
            started=lambda: at_end_of_child(self.exit),
            forbidden=self._may_have_no_thread,
        )
        return _ProcessState(inbox, background)

    def _forget(self, reason: Reason) -> None:
        """Empty the memory of this process; count its values under *reason*."""
        self.stats.add(reason, self._state().inbox.clear())
        if self.history is not None:
            self.history.clear()

    def _wake(self) -> bool:
        """Have the thread look what is due; return False if there is none."""
        return not self._closed and self._state().background.wake()

    def _may_have_no_thread(self) -> bool:
        if self._manual:
            return True
        why = why_no_thread()
        if why == THREADS_STAND_STILL:
            self.stats.warn("threads", why)
        return why is not None
