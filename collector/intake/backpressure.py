"""When to take no more: the store is full, behind, unsafe or in another time (503), a key sends too
fast (429).

The store's state is read once a second by a thread that does nothing else, never by a request; so
while the store is away, an upload is refused at once, and no request waits for a time-out.  Where
one server of several is away, only the uploads of its shards are refused.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from client_sdk.core.epoch import day_of

from ..core.errors import (
    ClockError,
    CollectorError,
    OverloadedError,
    ReplacedStoreError,
    StorageFullError,
    TooFastError,
    UnsafeStoreError,
)
from ..core.steady_clock import SteadyClock
from ..storage.protocols import Gauge
from ..storage.values import Health

ALARM_MEMORY: Final = 0.70  # share of the store's maxmemory from which operators are warned
SHED_MEMORY: Final = 0.85  # share from which uploads are refused; the worker needs the rest
_POLL_S: Final = 1.0  # seconds
BURST_S: Final = 2.0  # seconds of its rate that a key may send at once
COST_UNIT: Final = 64 * 1024  # bytes that cost as much as one upload more
_FOLD_UNIT: Final = 32 * 1024  # steps of a fold that do: 0.2 ms of a worker, as one of web

_UNKNOWN: Final = Health()

_log = logging.getLogger("hearsay.pressure")


@dataclass(frozen=True, slots=True)
class Load:
    """The store's state at one moment."""

    backlog: int = 0  # entries
    health: Health = _UNKNOWN
    failure: CollectorError | None = None  # why each append would be refused, or nothing is known
    # What an append would raise, of each shard that would take none.
    refusing: Mapping[int, CollectorError] = field(default_factory=dict)


class Pressure:
    """Decides from the last known load, and from what each key has sent.  Any thread may ask."""

    def __init__(
        self,
        gauge: Gauge,
        max_backlog: int,
        key_rate: int,
        monotonic: Callable[[], float],
        clock: Callable[[], float],
        tell_lost: Callable[[int], None] = lambda _: None,
        tell_empty: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Take no more from *max_backlog* entries on.

        Args: key_rate: uploads a second that this process takes of one key.
              clock: Unix time in seconds.
              tell_lost: takes the number of acknowledged uploads that the store has lost.
              tell_empty: takes the Unix time of a look that found no upload waiting.
        """
        self._gauge, self._max_backlog = gauge, max_backlog
        self._clock, self._time = SteadyClock(clock, monotonic), clock
        self._buckets = TokenBuckets(key_rate, monotonic)
        self._has_polled = False
        self._tell_lost, self._tell_empty = tell_lost, tell_empty
        self._accepted: dict[int, int] = {}  # the uploads of each shard when last seen
        self.lost = 0  # acknowledged uploads that the store held before, and then did not
        self.load = Load()

    def poll(self) -> None:
        """Read the store's state, and log a warning if an operator is needed.  Never raises."""
        was = self.load
        self._has_polled = True
        self._clock.look()
        begun = self._time()
        self.load = self._looked()
        if not (self.load.backlog or self.load.failure or self.load.refusing):
            self._tell_empty(begun)  # of a shard that was not asked nothing is known
        self._compare(self.load.health.accepted)
        refusal, before = self._refusal(self.load), self._refusal(was)
        refusing = self.load.refusing
        if refusal and _kind(refusal) != _kind(before):
            _log.error("no uploads are taken: %s", refusal)
        elif (before or was.refusing) and not (refusal or refusing):
            _log.warning("uploads are taken again")
        if refusing and not refusal and refusing.keys() != was.refusing.keys():
            _log.error("uploads are refused of %s", _described(refusing))
        memory = self.load.health.memory or 0.0
        if memory >= ALARM_MEMORY > (was.health.memory or 0.0):
            _log.warning("store: memory is used to %.0f %%", 100 * memory)

    def _compare(self, accepted: tuple[int | None, ...]) -> None:
        """Log a store that was rolled back: *accepted* uploads of a shard never become fewer."""
        counts = {shard: now for shard, now in enumerate(accepted) if now is not None}
        lost = sum(max(0, self._accepted.get(shard, 0) - now) for shard, now in counts.items())
        self._accepted |= counts
        if lost:
            self.lost += lost
            _log.critical(
                "the store went back: at least %d uploads that it had counted are gone", lost
            )
            self._tell_lost(lost)

    def _looked(self) -> Load:
        """Ask the store; what it refuses to an append comes first."""
        try:
            refusing, backlog = self._backlog()
            health = self._gauge.health()
        except CollectorError as error:
            return Load(failure=error, refusing=self._gauge.refusing())
        try:
            self._clock.require_near(*health.times)
        except ClockError as error:
            return Load(backlog, health, error, refusing)
        return Load(backlog, health, None, refusing)

    def _backlog(self) -> tuple[Mapping[int, CollectorError], int]:
        """Return which shards refuse, and what waits on the others.  Raises: none takes any."""
        refusing = self._gauge.refusing()
        if len(refusing) < self._gauge.shards:
            try:
                return refusing, self._gauge.backlog(refusing)
            except CollectorError:  # one may have gone away since
                refusing = self._gauge.refusing()
        if len(refusing) == self._gauge.shards:
            raise refusing[0]
        return refusing, self._gauge.backlog(refusing)

    def ready(self) -> dict[str, object]:
        """Ask the store whether uploads are taken; return what readiness says.

        Raises: CollectorError: why none are.
        """
        self.require_room()
        refusing, backlog = self._backlog()
        return {"status": "ok", "backlog": backlog, "lost": self.lost, "refusing": [*refusing]}

    @property
    def is_replaced(self) -> bool:
        """Whether the store was emptied, or is another than when this process began."""
        return bool(self._replaced())

    def refused(self) -> dict[int, bool]:
        """Return of each shard whether its uploads are refused."""
        return {shard: shard in self.load.refusing for shard in range(self._gauge.shards)}

    def require_contents(self) -> None:
        """Return if the store holds what it held: an emptied one would answer 0 to every question.

        Raises: ReplacedStoreError: it does not, or one of its shards.
        """
        for failure in self._replaced():
            raise failure.with_traceback(None)

    def _replaced(self) -> list[ReplacedStoreError]:
        failures = self.load.refusing.values()
        return [failure for failure in failures if isinstance(failure, ReplacedStoreError)]

    @property
    def contents(self) -> str:
        """What the store's tallies are known by; "" if they may be others at any moment."""
        if not self._has_polled:
            self.poll()
        return self.load.health.contents

    def today(self) -> int:
        """Return the epoch day.  Raises ClockError: the clock was set just now."""
        return day_of(self._clock.now())

    def require_room(self) -> None:
        """Return if uploads are taken, of one shard at least.

        Raises: StorageUnavailableError, UnsafeStoreError, StorageFullError, OverloadedError.
        """
        _require(self._refusal(self.load))

    def require_shard(self, upload_id: bytes) -> None:
        """Return if the shard of an upload takes it.  Raises what the shard would raise."""
        if refusing := self.load.refusing:
            _require(refusing.get(self._gauge.shard_of(upload_id)))

    def _refusal(self, load: Load) -> CollectorError | None:
        """Return why no uploads are taken under *load*, or None."""
        health = load.health
        if health.faults:
            return UnsafeStoreError(health.faults)
        if load.failure is not None:
            return load.failure
        if health.memory is not None and health.memory >= SHED_MEMORY:
            return StorageFullError(f"store.memory: must be used to less than {SHED_MEMORY:.0%}")
        if load.backlog >= self._max_backlog:
            return OverloadedError(f"store.backlog: must be below {self._max_backlog} entries")
        return None

    def charge(self, key: bytes, size: int) -> None:
        """Count an upload of *size* bytes to *key*.

        Raises: TooFastError: the key has sent all it may for now.
        """
        if not self._buckets.take(key, 1 + size // COST_UNIT):
            raise TooFastError("the key sends faster than it may")

    def charge_fold(self, key: bytes, steps: int) -> None:
        """Count *steps* of a fold to *key*, which waits for them before its next upload."""
        if cost := steps // _FOLD_UNIT:
            self._buckets.owe(key, cost)


def _require(refusal: CollectorError | None) -> None:
    """Return if there is no *refusal*."""
    if refusal is not None:
        refusal.is_told = True  # by poll
        raise refusal.with_traceback(None)  # it may be raised a million times


def _described(refusing: Mapping[int, CollectorError]) -> str:
    """Return which shards are *refusing*, and why."""
    reasons = dict.fromkeys(map(str, refusing.values()))
    return f"shards {', '.join(map(str, refusing))}: {'; '.join(reasons)}"


def _kind(refusal: CollectorError | None) -> tuple[str, ...]:
    """Return what a *refusal* is about, without the numbers that change from poll to poll."""
    reasons = refusal.reasons if isinstance(refusal, UnsafeStoreError) else ()
    return type(refusal).__name__, *(reason.partition("=")[0] for reason in reasons)


class TokenBuckets:
    """One bucket a key, in memory only.  There are as many keys as people have made."""

    def __init__(self, rate: int, monotonic: Callable[[], float], burst_s: float = BURST_S) -> None:
        """Fill each bucket by *rate* tokens a second, to the tokens of *burst_s* seconds."""
        self._rate, self._monotonic, self._full = rate, monotonic, rate * burst_s
        self._levels: dict[bytes, tuple[float, float]] = {}  # tokens, and when there were so many

    def take(self, key: bytes, tokens: int) -> bool:
        """Return whether *key* had a token, and take up to *tokens*: a bucket may be in debt.

        So one upload that costs more than a full bucket passes, and the key waits afterwards.
        """
        now = self._monotonic()
        level, then = self._levels.get(key, (self._full, now))
        level = min(self._full, level + (now - then) * self._rate)
        if level < 1:
            self._levels[key] = level, now
            return False
        self._levels[key] = level - tokens, now
        return True

    def owe(self, key: bytes, tokens: int) -> None:
        """Take *tokens* of a *key* that has taken some."""
        level, then = self._levels[key]
        self._levels[key] = level - tokens, then


class Watch:
    """A thread that does something once a second until it is stopped."""

    def __init__(self, *actions: Callable[[], None]) -> None:
        self._actions = actions
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        """Do the actions once, here, and from now on in the thread."""
        self._act()
        self._thread.start()

    def stop(self) -> None:
        """Do nothing more."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(_POLL_S):
            self._act()

    def _act(self) -> None:
        for action in self._actions:
            try:
                action()
            except Exception:  # noqa: BLE001  # a dead thread would leave an old view for ever
                _log.exception("a look at the store has failed")
