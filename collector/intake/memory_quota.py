"""How much of the store's memory a key may fill, so that no key fills it for all.

A write key is public.  A flood with it may use up the memory of all devices with this key, and none
of other keys; an operator may set the limit as the key's quota.  Ids cannot be kept by key, to be
freed with it: an upload whose answer was lost comes again under the key of the next release, and
would be counted twice.

A key occupies the bytes of its ids and of the tallies that it began.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from ..core.errors import (
    CollectorError,
    QuotaExhaustedError,
)
from ..storage.records import BYTES_BEGUN, UPLOADS_SENT, CredentialStore
from ..storage.redis import SEEN_DAYS
from ..storage.values import Health
from .backpressure import ALARM_MEMORY
from .day_counts import EXCHANGE_S, DayCounts

BYTES_PER_ID: Final = 12  # at most, its part of its bucket included, as measured on Redis 7.0
SHARE: Final = 0.6  # of the memory limit: what the ids of one key may take in the long run
BURST_DAYS: Final = 2  # days' worth of it that a key may send on one: twice its mean
# Share of the memory up to which keys share alike what is left, once ALARM_MEMORY is reached: below
# SHED_MEMORY, or all would be refused before the last one has its part.
LEVEL_MEMORY: Final = 0.80
PAST_S: Final = 600.0  # seconds after which the days before today are read again

_log = logging.getLogger("hearsay.shares")


def daily_uploads(memory_limit: int, kept: int = SEEN_DAYS) -> int | None:
    """Return how many uploads a key may add a day to stores of so many bytes; None: any number.

    Args: kept: days for which the store keeps an id at most.
    """
    room = SHARE * memory_limit / BYTES_PER_ID
    return round(BURST_DAYS * room / kept) if memory_limit else None


def keys_over_share(held: Mapping[bytes, int], room: float) -> frozenset[bytes]:
    """Return the keys that occupy more than their share, of the bytes *held* by each.

    The *room* left is given to the keys that occupy least, until they are level: more than this
    level is over the share.  So a key has its part of the room, whatever the others do.  A single
    key is never over.
    """
    total, level = 0, 0.0
    for count, n in enumerate(sorted(n for n in held.values() if n), 1):
        if count > 1 and n >= level:
            break
        total += n
        level = (total + room) / count
    return frozenset(key for key, n in held.items() if n > level)


class IdQuota:
    """The uploads that each key has added, in all processes.  Safe to share between threads."""

    def __init__(
        self,
        store: CredentialStore,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        kept: int = SEEN_DAYS,
    ) -> None:
        """Exchange counts through *store*.

        Args: clock: Unix time in seconds.  monotonic: seconds that never jump.
              kept: days for which an id is remembered at most.
        """
        self._store, self._monotonic, self._kept = store, monotonic, kept
        self._uploads = DayCounts(partial(store.share, UPLOADS_SENT), clock)
        # uploads of the days before whose ids are remembered; bytes begun on the days before
        self._past = Counter[bytes](), Counter[bytes]()
        self._past_day = 0  # before which these are
        self._past_at = self._exchanged_at = float("-inf")
        self._begun: Mapping[bytes, int] = {}  # bytes
        self._held: Mapping[bytes, int] = {}  # bytes, ids included

    def begun(self, key: bytes) -> int:
        """Return the bytes of the tallies that *key* has begun, as last exchanged."""
        return self._begun.get(key, 0)

    def count(self, key: bytes) -> None:
        """Count an upload under *key*, whose id is remembered from now on."""
        self._uploads.add(key)

    def require(self, key: bytes, health: Health, has_quota: bool) -> None:
        """Check that *key* may add an upload to a store of this *health*.

        Args:   has_quota: whether the key has a daily quota set by an operator: then it has no
                 other share, and goes on while the store has room at all.
        Raises: QuotaExhaustedError: it has filled its share.
        """
        if has_quota:
            return
        limit = daily_uploads(health.memory_limit, self._kept)
        if limit is not None and self._uploads.of(key) >= limit:
            self._refuse(key, f"the key has sent its {limit} uploads of today; send again tomorrow")
        memory = health.memory or 0.0
        if memory >= ALARM_MEMORY:
            room = max(0.0, LEVEL_MEMORY - memory) * health.memory_limit
            if key in keys_over_share(self._held, room):
                why = "the store is nearly full, and this key uses more than an equal share of it"
                self._refuse(key, why)

    def exchange(self) -> None:
        """Exchange counts with all processes.  Never raises; called every second."""
        now, day = self._monotonic(), self._uploads.day
        if now - self._exchanged_at < EXCHANGE_S:
            return
        self._exchanged_at = now
        try:
            uploads, begun = self._uploads.exchange(), self._store.share(BYTES_BEGUN, day)
            if day != self._past_day or now - self._past_at >= PAST_S:
                self._past = self._read_past(day)
                self._past_day, self._past_at = day, now
        except CollectorError:  # an old view does; whether uploads are taken is not decided here
            return
        past_uploads, past_begun = self._past
        self._begun = Counter(begun) + past_begun
        self._held = _held(Counter(uploads) + past_uploads, self._begun)

    def _read_past(self, day: int) -> tuple[Counter[bytes], Counter[bytes]]:
        """Return the uploads, and the bytes begun, of the days before *day* by key.

        A day more, as clocks may be off.
        """
        uploads, begun = Counter[bytes](), Counter[bytes]()
        for past in range(day - BYTES_BEGUN.days, day):
            begun.update(self._store.share(BYTES_BEGUN, past))
            if past >= day - self._kept - 1:
                uploads.update(self._store.share(UPLOADS_SENT, past))
        return uploads, begun

    def _refuse(self, key: bytes, why: str) -> None:
        self._uploads.tell_refusal(key, why)
        raise QuotaExhaustedError(why)


def _held(uploads: Mapping[bytes, int], begun: Mapping[bytes, int]) -> Counter[bytes]:
    """Return the bytes that each key occupies, by its *uploads* and the bytes *begun*."""
    return Counter({key: n * BYTES_PER_ID for key, n in uploads.items()}) + Counter(begun)
