"""The order in which the parts of a client act.  Nothing here raises into the app."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from .background import Background
from .consent import Consent
from .dataclass import replace
from .debug_log import warn
from .denial import Denial
from .epoch import HOUR
from .errors import EntropyError, StoreError
from .hosts import THREADS_STAND_STILL, at_end_of_child, why_no_thread
from .inbox import Inbox
from .locks import PerProcess, this_process
from .mode import Mode
from .opt_out import Level
from .parts import Parts
from .recorder import Pending
from .schedule import SHORTEST_REST
from .stats import MISTAKES, Reason, reason_of
from .uploader import Delivery

CLOSE_TIMEOUT: Final = 1.0  # seconds; an application that ends must not hang on its telemetry
# A client that lives shorter sends what is due when it is closed: it has no other moment.
SHORT_LIFE: Final = SHORTEST_REST  # seconds
_UPLOAD_TIMEOUT: Final = 120.0  # seconds of a scheduled pass; it has a thread of its own
_RETRY: Final = 60.0  # seconds until the schedule is asked again after the database failed


class _Own:
    """What each process has of its own: what was recorded there, and the thread that writes it."""

    def __init__(self, inbox: Inbox, background: Background[Pending]) -> None:
        self.inbox, self.background = inbox, background


class Engine:
    """Records, uploads, wipes and ends.  Thread-safe; each failure is counted by reason."""

    patience = CLOSE_TIMEOUT  # seconds; more only in tests, on machines that are busy with others

    def __init__(self, parts: Parts, mode: Mode, *, strict: bool = False) -> None:
        """Start nothing and write nothing yet; but wipe what a denial must wipe.

        Args: strict: ``record`` raises what a developer did wrong, too.
        """
        self._strict = strict
        self._parts, self._stats, self._closed = parts, parts.stats, False
        self._denial = Denial(parts.store, parts.switch, parts.stats)
        self._ended = False  # whether the store was closed
        self._born = time.monotonic()
        self._deadline = 0.0  # of close, on the monotonic clock
        self._uploading: threading.Thread | None = None
        self._own = PerProcess(self._begin) if mode is Mode.BACKGROUND else None
        self._maker = this_process()
        self._warned = False  # of a host without threads
        self._deny_if_denied()
        if self._own is None and parts.store.exists:
            self.tick()

    def record(self, name: object, value: object) -> None:
        """Check *value* and queue it; in manual mode, report it at once."""
        try:
            if self._closed:
                self._stats.add(Reason.CLOSED)
                return
            if self._own is None:
                pending = self._parts.recorder.prepare(name, value, self._parts.clock())
                self.tick()
                self.commit([pending])
                return
            own = self._own()
            if not own.inbox.put(name, value, self._parts.clock()) or own.background.told:
                return  # the usual case, in which no more is done
            if not own.background.tell():
                own.background.drain(self.patience)
                self.tick()
        except Exception as error:
            self._stats.fail(error)
            if self._strict and reason_of(error) in MISTAKES:
                raise

    def flush(self, timeout: float) -> Delivery:
        """Write down what is queued, send what waits, and return what still does."""
        self._flush(timeout)
        if self._closed:
            return Delivery(None)
        try:
            delivery = self._parts.uploader.delivery()
        except Exception:  # noqa: BLE001 - the flush met it before, and counted it
            return Delivery(None)
        queued = 0 if self._own is None else len(self._own().inbox)
        return replace(delivery, waiting=(delivery.waiting or 0) + queued)

    def _flush(self, timeout: float) -> None:
        self.heed()
        self._deny_if_denied()
        wiped = self._wiped()
        with self._counting():
            timeout = _seconds(timeout)
            end = time.monotonic() + timeout
            if self._closed or not wiped or self._parts.switch.in_force is Consent.DENIED:
                return
            if self._own is not None:
                self._own().background.drain(max(timeout, self.patience))
            self.tick()
            if self._parts.store.exists:
                self._parts.uploader.flush(max(0.0, end - time.monotonic()))

    def upload(self, timeout: float) -> None:
        """Send what waits if that is due by the schedule."""
        self.heed()
        if not self._wiped():
            return
        self.tick()
        with self._counting():
            if not self._closed and self._parts.store.exists:
                self._parts.uploader.run(_seconds(timeout))

    def tick(self) -> None:
        """Report the windows whose epochs have ended, and open those that are scheduled."""
        with self._counting():
            now, recorder, taken = self._parts.clock(), self._parts.recorder, 0
            while not self._ended and recorder.is_due(now):
                counts = self._tick_once(now)
                taken += counts[Reason.WINDOW_CLOSED] + counts[Reason.WINDOW_DROPPED]
            if taken:
                self._parts.store.scrub()  # what was true of them is nobody's any more

    def close(self, timeout: float | None = None) -> None:
        """Write down what is queued and send what is due; then close the store.

        Args: timeout: seconds to wait for all of that; None: ``patience``.
        """
        with self._counting():
            self.patience = self.patience if timeout is None else _seconds(timeout)
        if self._own is None:
            if not self._parts.uploader.failing:
                self._flush(self.patience)
            self._wiped()
            self._closed = True
            self._close_store()
            return
        if self._closed:
            return
        self._deadline = time.monotonic() + self.patience
        self._closed = True
        if not self._own().background.stop(self.patience):
            self._run_within(self.patience, self._drain_and_finish)

    def exit(self) -> None:
        """Leave the process: write down what is queued, and wait no longer than ``patience``.

        A forked child that has recorded nothing does nothing.
        """
        if self._own is not None and not self._closed:
            self._deadline = time.monotonic() + self.patience
            own = self._own()
            if not own.background.stop(self.patience) and (own.inbox or self._owes_windows()):
                self._run_within(self.patience, self._drain_and_finish)
        self._closed = True

    def attend(self) -> None:
        """See to the windows from now on, whether or not anything is recorded."""
        with self._counting():
            if self._closed:
                return
            if self._own is None or not self._own().background.wake():
                self.tick()

    def heed_consent(self) -> None:
        """Wipe if consent is denied; if it is granted, see to the windows where that can be."""
        self._deny_if_denied()
        if self._own is None:
            self.tick()

    def settle(self) -> None:
        """Count what is only known not to be written."""
        if self._own is not None:
            self._own().inbox.fold()

    def heed(self) -> None:
        """Look whether somebody has opted out, or in again, since."""
        with self._counting():
            switch = self._parts.switch
            before = switch.in_force
            switch.refresh()
            if switch.in_force is not before:
                self._deny_if_denied()

    def _deny_if_denied(self) -> None:
        """If consent is denied, forget all that waits; the database is left to the thread."""
        with self._counting():
            parts, own = self._parts, None if self._own is None else self._own()
            if parts.switch.in_force is not Consent.DENIED:
                return
            if own is not None:
                opted_out = parts.switch.said_by is not Level.APPLICATION
                reason = Reason.OPTED_OUT if opted_out else Reason.CONSENT
                self._stats.add(reason, own.inbox.clear())
            if parts.history is not None:
                parts.history.clear()
            if parts.store.has_traces:
                parts.switch.denials += 1
                if self._closed or own is None or not own.background.wake():
                    self._wiped()

    def _wiped(self) -> bool:
        """Delete what a denial must delete; return False if that could not be done."""
        if not self._denial.done:
            with self._counting():
                self._denial.carry_out(closed=self._ended)
        return not self._parts.switch.wipe_due

    def commit(self, group: list[Pending]) -> None:
        """Turn *group* into reports, or count why not."""
        self.heed()
        if not self._wiped():
            self._stats.add(Reason.STORE, sum(pending.count for pending in group))
            return
        try:
            counts = self._commit_whole(group)
        except (StoreError, EntropyError) as error:
            self._stats.fail(error, sum(pending.count for pending in group))
        except Exception as error:  # noqa: BLE001 - nothing of the group happened: find the one
            if len(group) == 1:
                self._stats.fail(error, group[0].count)
            else:
                for pending in group:
                    self.commit([pending])
        else:
            for reason, count in counts.items():
                self._stats.add(reason, count)

    def _commit_whole(self, group: list[Pending]) -> Counter[Reason]:
        recorder, history, happened = self._parts.recorder, self._parts.history, False
        try:
            reported: list[Pending] = []
            counts = recorder.commit(group, reported)
            happened = True
            if self._own is not None:
                self._own().inbox.settle(reported)
            if counts[Reason.BUDGET]:
                self._warn_of_never(group)
            return counts
        finally:
            if history is not None:
                history.settle(group, happened=happened)

    def _tick_once(self, now: float) -> Counter[Reason]:
        recorder, history, happened = self._parts.recorder, self._parts.history, False
        closed: list[Pending] = []
        try:
            counts = recorder.tick(now, closed)
            happened = True
        finally:
            if history is not None:
                history.settle(closed, happened=happened)
        for reason, count in counts.items():
            self._stats.add(reason, count)
        if counts[Reason.BUDGET]:
            self._warn_of_never(closed)
        return counts

    def _warn_of_never(self, refused: list[Pending]) -> None:
        """Tell a developer of metrics whose report costs more than a cap allows at any time."""
        caps = self._parts.recorder.ledger.caps
        for metric in {pending.metric.digest: pending.metric for pending in refused}.values():
            name = caps.below(metric.most_nano)
            if name is not None:
                rule = f"costs more than caps.{name} allows, so that it is never reported"
                self._stats.warn(f"{metric.name}, caps", f"metrics.{metric.name}: {rule}")

    def _idle(self) -> float:
        """See to what is due; return the seconds until something is."""
        self.heed()
        if not self._wiped():
            return self._denial.wait
        self.tick()
        if not self._denial.done:
            return self._denial.wait
        if not self._parts.switch.granted:
            return HOUR  # a value that comes after a new consent wakes the thread
        with self._counting():
            now = self._parts.clock()
            wait = self._parts.uploader.wait(now)
            if wait > 0:
                return min(wait, self._parts.recorder.wait(now))
            self._begin_upload()
        return _RETRY

    def _begin_upload(self) -> None:
        """Send in a thread of its own, so that a slow collector holds no value in memory."""
        if self._uploading is None or not self._uploading.is_alive():
            thread = threading.Thread(target=self._upload, name="hearsay-upload", daemon=True)
            thread.start()
            self._uploading = thread

    def _upload(self) -> None:
        with self._counting():
            self._parts.uploader.run(_UPLOAD_TIMEOUT)

    def _drain_and_finish(self) -> None:
        if self._own is not None:
            self._own().background.drain(self.patience)
        self._finish()

    def _finish(self) -> None:
        """Send what may be sent in the time that is left, and close the store."""
        wiped = self._wiped()
        if wiped:
            self.tick()
        with self._counting():
            if self._uploading is not None and self._uploading.is_alive():
                self._uploading.join(max(0.0, self._deadline - time.monotonic()))
            left = self._deadline - time.monotonic()
            if left > 0 and wiped and self._parts.store.exists:
                self._send_last(left)
        self._close_store()

    def _send_last(self, left: float) -> None:
        """Send what has no later moment in the *left* seconds."""
        uploader = self._parts.uploader
        if self._parts.durable:
            # what outlives the process keeps to the schedule: its end is nobody's business
            short = time.monotonic() - self._born < SHORT_LIFE
            uploader.run(left, last=short or why_no_thread() is not None)
        elif not uploader.failing:
            uploader.flush(left)

    def _close_store(self) -> None:
        self._parts.uploader.hang_up()  # or a collector could hold the thread of a request
        self._ended = True
        with self._counting():
            self._parts.store.close()

    def _begin(self) -> _Own:
        recorder, switch = self._parts.recorder, self._parts.switch
        inbox = Inbox(recorder.slot, switch, self._stats)
        background = Background(
            *(inbox.take, self.commit, self._idle, self._finish),
            started=lambda: at_end_of_child(self.exit),
            forbidden=self._may_have_no_thread,
        )
        return _Own(inbox, background)

    def _may_have_no_thread(self) -> bool:
        why = why_no_thread()
        if why == THREADS_STAND_STILL and not self._warned:
            self._warned = True
            warn(why)
        return why is not None

    def _owes_windows(self) -> bool:
        """Whether this process has to see to windows, though it has recorded nothing."""
        recorder = self._parts.recorder
        return this_process() == self._maker and recorder.is_due(self._parts.clock())

    def _run_within(self, timeout: float, action: Callable[[], None]) -> None:
        """Run *action* and wait for it no longer than *timeout* seconds, if a thread may run it."""
        if self._may_have_no_thread():
            action()
        else:
            _run_within(timeout, action)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - an app must not fail because its telemetry does
            self._stats.fail(error)


def _seconds(timeout: float) -> float:
    """Return *timeout*, within what a lock can wait.  Raises TypeError, ValueError: no number."""
    try:
        seconds = float(timeout)
    except OverflowError:
        return threading.TIMEOUT_MAX
    if seconds != seconds:
        raise ValueError("timeout=nan: must be a number")
    return min(max(seconds, 0.0), threading.TIMEOUT_MAX)


def _run_within(timeout: float, action: Callable[[], None]) -> None:
    """Run *action* in a thread and wait for it no longer than *timeout* seconds."""
    thread = threading.Thread(target=action, name="hearsay-close", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no threads: too many, or the interpreter is ending
        action()
    else:
        thread.join(timeout)
