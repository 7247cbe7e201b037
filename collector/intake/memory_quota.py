"""How much of the store's memory a key may fill with upload ids, so that no key fills it for all.

A write key is public.  Whoever floods with it may use up what all devices with this key have, and
nothing of other keys.  Ids cannot be kept by key, to be freed with it: an upload whose answer was
lost comes again under the key of the next release, and would be counted twice.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from client_sdk.core.epoch import day_of

from ..core.credentials import id_of
from ..core.errors import CollectorError, QuotaExhaustedError
from ..storage.records import CredentialStore
from ..storage.redis import SEEN_DAYS
from ..storage.values import Health
from .backpressure import ALARM_MEMORY

BYTES_PER_ID: Final = 80  # of a set of 16-byte ids, as measured on Redis 7.0
SHARE: Final = 0.6  # of the memory limit: what the ids of one key may take in the long run
BURST_DAYS: Final = 2  # days' worth of it that a key may send on one: twice its mean
EXCHANGE_S: Final = 3.0  # seconds between two exchanges with other processes
PAST_S: Final = 600.0  # seconds after which the days before today are read again

_log = logging.getLogger("hearsay.shares")


def daily(memory_limit: int) -> int | None:
    """Return how many uploads a key may add a day to stores of so many bytes; None: any number."""
    room = SHARE * memory_limit / BYTES_PER_ID
    return round(BURST_DAYS * room / SEEN_DAYS) if memory_limit else None


def filling(uploads: Mapping[bytes, int]) -> frozenset[bytes]:
    """Return the keys that hold more than an equal share of all *uploads*; none of a single key."""
    held = {key: n for key, n in uploads.items() if n}
    equal = sum(held.values()) / len(held) if len(held) > 1 else float("inf")
    return frozenset(key for key, n in held.items() if n > equal)


class Shares:
    """What each key has added, in all processes.  Safe to share between threads."""

    def __init__(
        self,
        store: CredentialStore,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        """Exchange counts through *store*.

        Args: clock: Unix time in seconds.  monotonic: seconds that never jump.
        """
        self._store, self._clock, self._monotonic = store, clock, monotonic
        self._process = secrets.token_hex(8)  # of chance: says nothing of its machine
        self._lock = threading.Lock()
        self._day = 0
        self._own: Counter[bytes] = Counter()  # uploads of today that this process took, by key
        self._others: Mapping[bytes, int] = {}  # uploads of today that others took, by key
        self._past: Mapping[bytes, int] = {}  # of the days before whose ids are remembered
        self._past_at = self._exchanged_at = float("-inf")
        self._filling: frozenset[bytes] = frozenset()
        self._logged: set[bytes] = set()  # keys that were logged today

    def count(self, key: bytes) -> None:
        """Count an upload under *key*, whose id is remembered from now on."""
        with self._lock:
            self._turn()
            self._own[key] += 1

    def require(self, key: bytes, health: Health, has_quota: bool) -> None:
        """Return if *key* may add an upload to a store of that *health*.

        Args:   has_quota: whether an operator has said how much the key may send a day.
        Raises: QuotaExhaustedError: it has filled its share.
        """
        limit = None if has_quota else daily(health.memory_limit)
        if limit is not None and self._today(key) >= limit:
            self._refuse(key, f"the key has sent the {limit} uploads that it may send today")
        if (health.memory or 0.0) >= ALARM_MEMORY and key in self._filling:
            self._refuse(key, "the store fills up, and more than its share of it is of this key")

    def exchange(self) -> None:
        """Tell and learn what all processes have counted.  Never raises; called every second."""
        now = self._monotonic()
        if now - self._exchanged_at < EXCHANGE_S:
            return
        self._exchanged_at = now
        with self._lock:
            self._turn()
            day, own = self._day, dict(self._own)
        try:
            sums = self._store.share_uploads(day, self._process, own)
            if now - self._past_at >= PAST_S:
                self._past, self._past_at = self._read_past(day), now
        except CollectorError:  # an old view does; whether uploads are taken is not decided here
            return
        with self._lock:
            self._others = {key: n - own.get(key, 0) for key, n in sums.items()}
            self._filling = filling(Counter(sums) + Counter(self._past))

    def _read_past(self, day: int) -> Mapping[bytes, int]:
        """Return the uploads of the days before *day* by key; a day more, as clocks may be off."""
        total: Counter[bytes] = Counter()
        for past in range(day - SEEN_DAYS - 1, day):
            total.update(self._store.share_uploads(past, "", {}))
        return total

    def _today(self, key: bytes) -> int:
        with self._lock:
            self._turn()
            return self._own[key] + self._others.get(key, 0)

    def _turn(self) -> None:
        """Begin a new day with nothing."""
        day = day_of(self._clock())
        if day != self._day:
            self._day, self._others, self._past_at = day, {}, float("-inf")
            self._own.clear()
            self._logged.clear()

    def _refuse(self, key: bytes, why: str) -> None:
        with self._lock:
            is_new = key not in self._logged
            self._logged.add(key)
        if is_new:
            _log.warning("key=%s: is refused with 429: %s", id_of(key), why)
        raise QuotaExhaustedError(why)
