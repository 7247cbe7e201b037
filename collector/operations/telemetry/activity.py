"""What processes count beside the store's own counts: rejections, duplicates, time of folds.

Each process adds up in memory and writes its sums into the store now and then, under its own random
name.  So every process can tell the deployment's totals.  What a killed process had not yet written
is lost: at most PERIOD_S of it.  No tally depends on these numbers.
"""

from __future__ import annotations

import logging
import secrets
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from client_sdk.core.epoch import HOUR, day_of

from ...core.errors import CollectorError
from ...intake.validation import Rejection
from ...storage.records import ActivityRecord, ActivityStore

WEB: Final = "web"
WORKER: Final = "worker"
ROLES: Final = (WEB, WORKER)
PERIOD_S: Final = 10.0  # seconds between two writes of a process
ALIVE_S: Final = 60  # seconds since its last write within which a process counts as alive
# Seconds; a fold of a full claim takes below 0.1, and a store's patience ends at 5.
FOLD_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

REJECTED: Final = "rejected"  # reports, by reason
REFUSED: Final = "refused"  # requests, by problem
DUPLICATES: Final = "duplicates"  # uploads
LOST: Final = "lost"  # acknowledged uploads that the store no longer holds
CLOCK_WAITS: Final = "clock_waits"  # rounds of a worker
FOLDS: Final = "folds"  # by the index of their bound
ACCEPTED_AT: Final = "accepted_at"  # uploads, by the hours from 1970 to their own
REFUSED_AT: Final = "refused_at"  # uploads, likewise
EMPTY: Final = "empty"  # the Unix time of the last look at which no upload waited
_GRANTS: Final = "grants"  # keys and tokens of a process' own settings, by scope
FOLD_US: Final = "fold_us"  # microseconds, summed

_log = logging.getLogger("hearsay.telemetry")


class Activity:
    """Counts of this process.  Any thread may add."""

    def __init__(self, role: str, store: ActivityStore, clock: Callable[[], float]) -> None:
        """Count as a process of *role*, and share through *store*.

        Args: clock: Unix time in seconds.
        """
        self.role, self.process = role, secrets.token_hex(8)  # of chance: says nothing of a machine
        self._store, self._clock = store, clock
        self._counts: Counter[str] = Counter()  # of the day, and what was not written before it
        self._lock = threading.Lock()
        self._sharing = threading.Lock()  # so that an older sum is never written over a newer one
        self._day = day_of(clock())
        self._shared: Counter[str] = Counter()  # those counts when they were last written
        self._failed = False
        self._has_left = False
        self._levels: dict[str, int] = {}  # numbers that are no sums: written as they are

    def add(self, name: str, label: str = "", n: int = 1) -> None:
        """Count *n* more of *name*; both words are ours, never a sender's."""
        if n:
            with self._lock:
                self._counts[f"{name}.{label}"] += n

    def accept_upload(self) -> None:
        """Count an upload that was stored, in its hour."""
        self._add_hour(ACCEPTED_AT)

    def refuse_upload(self, problem: str) -> None:
        """Count an upload that was answered with *problem*, also in its hour."""
        self.add(REFUSED, problem)
        self._add_hour(REFUSED_AT)

    def _add_hour(self, name: str) -> None:
        self.add(name, str(int(self._clock()) // HOUR))

    def judged(self, rejected: Iterable[Rejection], first: bool) -> None:
        """Count what became of an upload.

        Args: first: False if its id had been seen before; then its rejections are counted already.
        """
        if not first:
            self.add(DUPLICATES)
            return
        for rejection in rejected:
            self.add(REJECTED, rejection.reason, rejection.count)

    def folded(self, seconds: float) -> None:
        """Count one fold."""
        self.add(FOLDS, str(bisect_left(FOLD_BOUNDS, seconds)))
        self.add(FOLD_US, n=round(seconds * 1e6))

    def grant(self, scope: str, n: int) -> None:
        """Say that *n* keys or tokens of this process' own settings open *scope*."""
        self._levels[f"{_GRANTS}.{scope}"] = n

    def see_empty(self, moment: float) -> None:
        """Say that no upload waited to be folded at *moment*, Unix time, or a little later."""
        self._levels[f"{EMPTY}."] = int(moment)

    def leave(self) -> None:
        """Share a last time, and count no longer as alive.  Never raises."""
        with self._sharing:
            self._has_left = True
            self._share()

    def share(self) -> None:
        """Write this process's sums of the day.  Never raises: they are written again next time."""
        with self._sharing:
            self._share()

    def _share(self) -> None:
        now = self._clock()
        with self._lock:
            if day_of(now) != self._day:  # what was not yet written counts for the new day
                self._day = day_of(now)
                self._counts -= self._shared
                self._shared = Counter()
            counts = self._counts.copy()
        seen = 0 if self._has_left else int(now)
        record = ActivityRecord(self.role, self.process, {**counts, **self._levels}, seen)
        try:
            self._store.put(self._day, record)
        except CollectorError as error:
            if not self._failed:
                _log.warning("counts of this process are not shared: %s", error)
            self._failed = True
        else:
            self._shared, self._failed = counts, False

    def totals(self) -> Totals:
        """Return what all processes have counted today, this one up to now.

        Raises: StorageUnavailableError.
        """
        self.share()
        now = self._clock()
        today = day_of(now)
        records = self._store.records(today)
        return replace(totals_of(records, alive_among(self._store, now)), lost=lost_by(records))


@dataclass(frozen=True)
class Totals:
    """Sums over the processes of a UTC day, and how many of them live."""

    counts: Mapping[str, Mapping[str, int]]  # by name and label
    alive: Mapping[str, int]  # processes by role
    lost: int = 0  # acknowledged uploads that the store no longer holds

    def of(self, name: str) -> Mapping[str, int]:
        """Return the counts of *name* by label."""
        return self.counts.get(name, {})


def alive_among(store: ActivityStore, now: float) -> Mapping[str, int]:
    """Return how many processes of each role gave a sign of life within ALIVE_S.

    Raises: StorageUnavailableError.
    """
    counts = Counter(record.role for record in _living(store, now))
    return {role: counts[role] for role in (*ROLES, *counts)}


def granted_by(store: ActivityStore, now: float) -> Mapping[str, int]:
    """Return how many keys and tokens open each scope by the settings of those that serve.

    Raises: StorageUnavailableError.
    """
    return totals_of(_living(store, now), {}).of(_GRANTS)


def _living(store: ActivityStore, now: float) -> list[ActivityRecord]:
    """Return the records of processes with a sign of life within ALIVE_S that have not left."""
    today = day_of(now)
    # A day may have just begun; a record of it replaces the one of the day before.
    last = {record.process: record for day in (today - 1, today) for record in store.records(day)}
    return [record for record in last.values() if abs(now - record.seen) <= ALIVE_S]


def totals_of(records: Sequence[ActivityRecord], alive: Mapping[str, int]) -> Totals:
    """Return the sums of *records*."""
    counts: dict[str, Counter[str]] = {}
    for record in records:
        for name, n in record.counts.items():
            what, _, label = name.partition(".")
            counts.setdefault(what, Counter())[label] += n
    return Totals(counts, alive)


def lost_by(records: Iterable[ActivityRecord]) -> int:
    """Return how many uploads the store has lost, as far as a process saw: all see the same."""
    return max((record.counts.get(f"{LOST}.", 0) for record in records), default=0)


class SharingThread:
    """A thread that shares an activity every PERIOD_S."""

    def __init__(self, activity: Activity) -> None:
        """Share *activity*."""
        self._activity = activity
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sharing", daemon=True)

    def start(self) -> None:
        """Begin, with a first sign of life."""
        self._thread.start()

    def stop(self) -> None:
        """Share a last time, as one that has left."""
        self._stopped.set()
        self._activity.leave()

    def _run(self) -> None:
        self._activity.share()
        while not self._stopped.wait(PERIOD_S):
            self._activity.share()
