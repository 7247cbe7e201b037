"""How much of the store's memory a key may fill, so that no key fills it for all.

A write key is public.  Whoever floods with it may use up what all devices with this key have, and
nothing of other keys.  Ids cannot be kept by key, to be freed with it: an upload whose answer was
lost comes again under the key of the next release, and would be counted twice.

Tallies stay for as long as answers need them.  So what is limited is how many a key begins a day,
and in all the days that are remembered; a report that is late, and is counted where there is a
tally, costs nothing of that.

What a key occupies is bytes: those of its ids and those of the tallies that it began.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from client_sdk.core.epoch import day_of
from client_sdk.registry.metric import Metric

from ..core.catalog import Catalog
from ..core.cells import class_of
from ..core.credentials import id_of
from ..core.entry import AcceptedColumn
from ..core.errors import (
    CollectorError,
    ManyTalliesError,
    QuotaExhaustedError,
    RefusedByStoreError,
)
from ..storage.protocols import Intake
from ..storage.records import BYTES_BEGUN, UPLOADS_SENT, CredentialStore
from ..storage.redis import SEEN_DAYS
from ..storage.values import COUNTER_SIZE, Health, TallyPlace
from .backpressure import ALARM_MEMORY
from .known_tallies import KnownTallies

BYTES_PER_ID: Final = 12  # at most, its part of its bucket included, as measured on Redis 7.0
SHARE: Final = 0.6  # of the memory limit: what the ids of one key may take in the long run
BURST_DAYS: Final = 2  # days' worth of it that a key may send on one: twice its mean
BEGUN_SHARE: Final = 0.1  # of the memory limit: the tallies that a write key may begin a day
# Of the memory limit: what the tallies that a key began may occupy, so that none fills it alone.
BEGUN_CEILING: Final = 0.5
BEGUN_UNLIMITED: Final = 256_000_000  # bytes a day where the memory has no limit
# Share of the memory up to which keys share alike what is left, once ALARM_MEMORY is reached: below
# SHED_MEMORY, or all would be refused before the last one has its part.
LEVEL_MEMORY: Final = 0.80
EXCHANGE_S: Final = 3.0  # seconds between two exchanges with other processes
PAST_S: Final = 600.0  # seconds after which the days before today are read again
# What a tally takes: itself, its name and its place in the index; a cell of a wide one of which few
# are filled; one of any other, with what the server's allocator rounds up.
BYTES_PER_TALLY: Final = 512
BYTES_PER_FIELD: Final = 64
BYTES_PER_CELL: Final = COUNTER_SIZE * 5 // 4
FILLED_SHARE: Final = 8  # a wide tally of which one cell of so many is filled is packed
WIDE: Final = 1_024  # counters from which a tally is a wide one; both as in hearsay.lua
_PAUSE_S: Final = 1.0  # seconds for which a store that did not answer is not asked again

_log = logging.getLogger("hearsay.shares")


def daily(memory_limit: int, kept: int = SEEN_DAYS) -> int | None:
    """Return how many uploads a key may add a day to stores of so many bytes; None: any number.

    Args: kept: days for which the store keeps an id at most.
    """
    room = SHARE * memory_limit / BYTES_PER_ID
    return round(BURST_DAYS * room / kept) if memory_limit else None


def daily_begun(setting_mb: int | None, memory_limit: int) -> int:
    """Return the bytes of tallies that a write key may begin a day; 0: any number.

    Args: setting_mb: 10^6 bytes that an operator has set; None: a part of *memory_limit*.
    """
    if setting_mb is not None:
        return setting_mb * 1_000_000
    return round(BEGUN_SHARE * memory_limit) or BEGUN_UNLIMITED


def filling(held: Mapping[bytes, int], room: float) -> frozenset[bytes]:
    """Return the keys that occupy more than their share, of the bytes *held* by each.

    The *room* that is left is given to those that occupy least, until they are level: what is above
    that level is more than a share.  So whatever others do, a key has its part of the room.  None
    of a single key.
    """
    total, level = 0, 0.0
    for count, n in enumerate(sorted(n for n in held.values() if n), 1):
        if count > 1 and n >= level:
            break
        total += n
        level = (total + room) / count
    return frozenset(key for key, n in held.items() if n > level)


class DayCounts:
    """Counts of a UTC day by key: our own at once, those of other processes once exchanged.

    Safe to share between threads.
    """

    def __init__(
        self,
        share: Callable[[int, str, Mapping[bytes, int]], Mapping[bytes, int]],
        clock: Callable[[], float],
    ) -> None:
        """Exchange by *share*, which takes day, process and its sums, and returns those of all.

        Args: clock: Unix time in seconds.
        """
        self._share, self._clock = share, clock
        self._process = secrets.token_hex(8)  # of chance: says nothing of its machine
        self._lock = threading.Lock()
        self._day = 0
        self._own: Counter[bytes] = Counter()
        self._others: Mapping[bytes, int] = {}
        self._refused: set[bytes] = set()

    @property
    def day(self) -> int:
        """The day that is counted."""
        return day_of(self._clock())

    def of(self, key: bytes) -> int:
        """Return the count of *key* today."""
        with self._lock:
            self._turn()
            return self._own[key] + self._others.get(key, 0)

    def add(self, key: bytes, n: int = 1) -> None:
        """Count *n* more to *key*."""
        with self._lock:
            self._turn()
            self._own[key] += n

    def exchange(self) -> Mapping[bytes, int]:
        """Tell our counts and return the sums of all.  Raises what the store raises."""
        with self._lock:
            self._turn()
            day, own = self._day, dict(self._own)
        sums = self._share(day, self._process, own)
        with self._lock:
            self._turn()
            if day == self._day:
                self._others = {key: n - own.get(key, 0) for key, n in sums.items()}
        return sums

    def tell_refusal(self, key: bytes, why: str) -> None:
        """Log once a day that *key* is refused, and *why*."""
        with self._lock:
            is_new = key not in self._refused
            self._refused.add(key)
        if is_new:
            _log.warning("key=%s: is refused with 429: %s", id_of(key), why)

    def _turn(self) -> None:
        """Begin a new day with nothing."""
        if self.day != self._day:
            self._day, self._others = self.day, {}
            self._own.clear()
            self._refused.clear()


class Shares:
    """What each key has added, in all processes.  Safe to share between threads."""

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
        self._held: Mapping[bytes, int] = {}  # bytes, those of ids included

    def begun(self, key: bytes) -> int:
        """Return the bytes of the tallies that *key* has begun, as last exchanged."""
        return self._begun.get(key, 0)

    def count(self, key: bytes) -> None:
        """Count an upload under *key*, whose id is remembered from now on."""
        self._uploads.add(key)

    def require(self, key: bytes, health: Health, has_quota: bool) -> None:
        """Return if *key* may add an upload to a store of that *health*.

        Args:   has_quota: whether an operator has said how much the key may send a day: then it
                 has no other share, and goes on while the store has room at all.
        Raises: QuotaExhaustedError: it has filled its share.
        """
        if has_quota:
            return
        limit = daily(health.memory_limit, self._kept)
        if limit is not None and self._uploads.of(key) >= limit:
            self._refuse(key, f"the key has sent the {limit} uploads that it may send today")
        memory = health.memory or 0.0
        if memory >= ALARM_MEMORY:
            room = max(0.0, LEVEL_MEMORY - memory) * health.memory_limit
            if key in filling(self._held, room):
                why = "the store fills up, and more bytes of it are of this key than an equal share"
                self._refuse(key, why)

    def exchange(self) -> None:
        """Tell and learn what all processes have counted.  Never raises; called every second."""
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


def size_of(metric: Metric, reports: int) -> int:
    """Return about how many bytes of the store the tally takes that so many *reports* begin."""
    width = metric.mechanism.tally_size + 1
    filled = min(1 + reports * metric.mechanism.fold_steps, width)
    if width > WIDE and filled * FILLED_SHARE < width:
        return BYTES_PER_TALLY + filled * BYTES_PER_FIELD
    return BYTES_PER_TALLY + width * BYTES_PER_CELL


class Beginning(NamedTuple):
    """An upload that may begin tallies, as far as this process knows."""

    key: bytes
    upload_id: bytes
    columns: Sequence[AcceptedColumn]


class Growth:
    """The bytes of tallies that each write key has begun today, in all processes.

    A tally counts to the key whose upload is the first that a process sees of it, unless the store
    has it.  Two processes may both count one that is not folded yet, and one process may count it
    on two days: so a sum is never too low by that.  Safe to share between threads.
    """

    def __init__(
        self,
        storage: Intake,
        credentials: CredentialStore,
        catalog: Catalog,
        setting_mb: int | None,
        clock: Callable[[], float],
        monotonic: Callable[[], float],
        begun: Callable[[bytes], int],
    ) -> None:
        """Let a write key begin tallies as ``daily_begun`` of *setting_mb* says.

        Args: clock: Unix time in seconds.  monotonic: seconds that never jump.
              begun: bytes of the tallies that a key has begun.
        """
        self._storage, self._catalog, self._setting_mb = storage, catalog, setting_mb
        self._begun = begun
        self._clock, self._monotonic = clock, monotonic
        self._bytes = DayCounts(partial(credentials.share, BYTES_BEGUN), clock)
        self._known = KnownTallies()  # whose tally of today's class is there
        self._known_day = 0  # classes end at midnight, UTC
        self._judging = threading.Lock()
        self._exchanged_at = float("-inf")
        self._failed_at: dict[int, float] = {}  # of each shard, when it last did not answer
        self._lacks_right = False

    def is_known(self, upload_id: bytes, columns: Sequence[AcceptedColumn]) -> bool:
        """Return whether *columns* begin no tally, as far as this process knows; never waits."""
        if self._setting_mb == 0:
            return True
        if self._known_day != (day := day_of(self._clock())):
            self._known.clear()
            self._known_day = day
        shard = self._storage.shard_of(upload_id)
        return self._known.has(shard, [cell for cell, _ in columns])

    def refusals(
        self, beginnings: Sequence[Beginning], memory_limit: int
    ) -> list[ManyTalliesError | None]:
        """Return which of *beginnings* begin more tallies than their key may; count the others.

        The store is asked once for all.  If it does not answer, none is refused here: it will
        refuse the uploads themselves.

        Args: memory_limit: bytes of the store; 0 if it has no limit.
        """
        day = self._known_day
        there = self._ask({place for beginning in beginnings for place in self._sizes(beginning)})
        if there is None:
            return [None] * len(beginnings)
        with self._judging:  # so that a tally is counted once; sizes anew, as more may be known
            return [
                self._refusal(beginning, self._sizes(beginning), there, memory_limit, day)
                for beginning in beginnings
            ]

    def _sizes(self, beginning: Beginning) -> Counter[TallyPlace]:
        """Return the bytes of each tally that *beginning* needs and that is not known."""
        shard, now = self._storage.shard_of(beginning.upload_id), self._clock()
        sizes: Counter[TallyPlace] = Counter()
        for cell, payloads in beginning.columns:
            if not self._known.has(shard, [cell]):
                metric = self._catalog.by_digest[cell.metric]
                lateness, _ = class_of(metric.every, cell.epoch, now)
                reports = len(payloads) // metric.mechanism.payload_size
                sizes[shard, cell._replace(lateness=lateness)] += size_of(metric, reports)
        return sizes

    def _refusal(
        self,
        beginning: Beginning,
        sizes: Mapping[TallyPlace, int],
        there: set[TallyPlace],
        memory_limit: int,
        day: int,
    ) -> ManyTalliesError | None:
        """Return why *beginning* is refused; if it is not, its tallies are *there* from now on.

        Args: day: of which the *sizes* are; at midnight other tallies are begun.
        """
        key, size = beginning.key, sum(sizes[place] for place in sizes.keys() - there)
        used = self._bytes.of(key)
        if size and used and used + size > daily_begun(self._setting_mb, memory_limit):
            return self._refuse(key, "the key has begun as many new tallies as it may today")
        if size and memory_limit and self._begun(key) + size > BEGUN_CEILING * memory_limit:
            part = f"{BEGUN_CEILING:.0%} of the store's memory"
            return self._refuse(
                key, f"the tallies that the key began occupy {part}, and it begins none beyond that"
            )
        self._bytes.add(key, size)
        there.update(sizes)
        if day == self._known_day:
            for shard, cell in sizes:
                self._known.add(shard, cell)
        return None

    def exchange(self) -> None:
        """Tell and learn what all processes have counted.  Never raises; called every second."""
        now = self._monotonic()
        if self._setting_mb == 0 or now - self._exchanged_at < EXCHANGE_S:
            return
        self._exchanged_at = now
        try:
            self._bytes.exchange()
        except CollectorError:  # an old view does
            return

    def _refuse(self, key: bytes, why: str) -> ManyTalliesError:
        self._bytes.tell_refusal(key, why)
        return ManyTalliesError(why)

    def _ask(self, places: Collection[TallyPlace]) -> set[TallyPlace] | None:
        """Return those of *places* that have a tally; None if the store does not say."""
        shards, now = {shard for shard, _ in places}, self._monotonic()
        if any(now - at < _PAUSE_S for shard, at in self._failed_at.items() if shard in shards):
            return None
        try:
            return self._storage.existing(places)
        except CollectorError as error:
            self._failed_at |= dict.fromkeys(shards, self._monotonic())
            if isinstance(error, RefusedByStoreError) and error.lacks_right:
                if not self._lacks_right:
                    _log.error("new tallies are not limited: load the ACL file of this release")
                self._lacks_right = True
            return None
