"""The order in which the parts of a client act.  Nothing here raises into the app."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from .background import Background
from .consent import Consent
from .dataclass import replace
from .denial import Denial
from .epoch import HOUR
from .errors import EntropyError, StoreError
from .mode import Mode
from .opt_out import Level
from .parts import Parts
from .recorder import Pending
from .schedule import SHORTEST_REST
from .stats import Reason
from .uploader import Delivery

CLOSE_TIMEOUT: Final = 1.0  # seconds; an application that ends must not hang on its telemetry
# A client that lives shorter sends what is due when it is closed: it has no other moment.
SHORT_LIFE: Final = SHORTEST_REST  # seconds
_UPLOAD_TIMEOUT: Final = 120.0  # seconds of a scheduled pass; it has a thread of its own
_RETRY: Final = 60.0  # seconds until the schedule is asked again after the database failed


class Engine:
    """Records, uploads, wipes and ends.  Thread-safe; each failure is counted by reason."""

    patience = CLOSE_TIMEOUT  # seconds; more only in tests, on machines that are busy with others

    def __init__(self, parts: Parts, mode: Mode) -> None:
        """Start nothing yet; but see to the windows of epochs, and wipe what a denial must wipe."""
        self._parts, self._stats, self._closed = parts, parts.stats, False
        self._denial = Denial(parts.store, parts.switch, parts.stats)
        self._ended = False  # whether the store was closed
        self._born = time.monotonic()
        self._deadline = 0.0  # of close, on the monotonic clock
        self._uploading: threading.Thread | None = None
        self._background: Background[Pending] | None = None
        if mode is Mode.BACKGROUND:
            self._background = Background(self.commit, self._idle, self._finish, self._started)
        self.heed_consent()

    def record(self, name: object, value: object) -> None:
        """Check *value* and queue it; in manual mode, report it at once."""
        try:
            if self._closed:
                self._stats.add(Reason.CLOSED)
                return
            pending = self._parts.recorder.prepare(name, value, self._parts.clock())
            if self._background is None:
                self.tick()
                self.commit([pending])
            elif not self._background.put(pending):
                self._stats.add(Reason.QUEUE_FULL)
        except Exception as error:  # noqa: BLE001 - an app must not fail because its telemetry does
            self._stats.fail(error)

    def flush(self, timeout: float) -> Delivery:
        """Write down what is queued, send what waits, and return what still does."""
        self._flush(timeout)
        if self._closed:
            return Delivery(None)
        try:
            delivery = self._parts.uploader.delivery()
        except Exception:  # noqa: BLE001 - the flush met it before, and counted it
            return Delivery(None)
        queued = 0 if self._background is None else len(self._background)
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
            if self._background is not None:
                self._background.drain(timeout)
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
            while not self._closed and recorder.is_due(now):
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
        if self._background is None:
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
        if not self._background.stop(self.patience):
            _run_within(self.patience, self._drain_and_finish)

    def exit(self) -> None:
        """Leave the process: write down what is queued, and wait no longer than ``patience``.

        A process that has recorded nothing, such as a forked child, does nothing.
        """
        if self._background is not None and not self._closed:
            self._deadline = time.monotonic() + self.patience
            if not self._background.stop(self.patience) and len(self._background):
                _run_within(self.patience, self._drain_and_finish)
        self._closed = True

    def heed_consent(self) -> None:
        """Wipe if consent is denied; if it is granted, see to the windows."""
        self._deny_if_denied()
        if self._background is None:
            self.tick()
            return
        with self._counting():
            if not self._closed and self._parts.recorder.is_due(self._parts.clock()):
                self._background.wake()  # without a value it would not run, or sleep on

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
            parts, background = self._parts, self._background
            if parts.switch.in_force is not Consent.DENIED:
                return
            if background is not None:
                opted_out = parts.switch.said_by is not Level.APPLICATION
                reason = Reason.OPTED_OUT if opted_out else Reason.CONSENT
                self._stats.add(reason, background.clear())
            if parts.history is not None:
                parts.history.clear()
            if parts.store.has_traces:
                parts.switch.denials += 1
                if self._closed or background is None or not background.wake():
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
            self._stats.add(Reason.STORE, len(group))
            return
        try:
            counts = self._commit_whole(group)
        except (StoreError, EntropyError) as error:
            self._stats.fail(error, len(group))
        except Exception as error:  # noqa: BLE001 - nothing of the group happened: find the one
            if len(group) == 1:
                self._stats.fail(error)
            else:
                for pending in group:
                    self.commit([pending])
        else:
            for reason, count in counts.items():
                self._stats.add(reason, count)

    def _commit_whole(self, group: list[Pending]) -> Counter[Reason]:
        recorder, history, happened = self._parts.recorder, self._parts.history, False
        try:
            counts = recorder.commit(group)
            happened = True
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
        return counts

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
        if self._background is not None:
            self._background.drain(self.patience)
        self._finish()

    def _finish(self) -> None:
        """Send what may be sent in the time that is left, and close the store."""
        wiped = self._wiped()
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
            uploader.run(left, last=time.monotonic() - self._born < SHORT_LIFE)
        elif not uploader.failing:
            uploader.flush(left)

    def _close_store(self) -> None:
        self._parts.uploader.hang_up()  # or a collector could hold the thread of a request
        self._ended = True
        with self._counting():
            self._parts.store.close()

    def _started(self) -> None:
        """See to the end of a child of multiprocessing, which runs no function of atexit."""
        process = sys.modules.get("multiprocessing.process")
        if process is not None and process.parent_process() is not None:
            util = sys.modules["multiprocessing.util"]
            util.Finalize(None, self.exit, exitpriority=0)

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
