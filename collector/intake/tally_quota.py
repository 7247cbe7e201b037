"""How many tallies a write key may begin, in bytes, so that no key fills the store for all.

Tallies stay for as long as answers need them.  So what is limited is how many a key begins a day,
and in all the days that are remembered; a report that is late, and is counted where there is a
tally, costs nothing of that.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from client_sdk.core.epoch import day_of
from client_sdk.registry.metric import Metric

from ..core.catalog import Catalog
from ..core.cells import class_of
from ..core.entry import AcceptedColumn
from ..core.errors import CollectorError, ManyTalliesError, RefusedByStoreError
from ..storage.protocols import Intake
from ..storage.records import BYTES_BEGUN, CredentialStore
from ..storage.values import COUNTER_SIZE, TallyPlace
from .day_counts import EXCHANGE_S, DayCounts
from .known_tallies import KnownTallies

BEGUN_SHARE: Final = 0.1  # of the memory limit: the tallies that a write key may begin a day
# Of the memory limit: what the tallies that a key began may occupy, so that none fills it alone.
BEGUN_CEILING: Final = 0.5
_BEGUN_UNLIMITED: Final = 256_000_000  # bytes a day where the memory has no limit
# Bytes of a tally: itself, its name and its entry in the index; of a cell of a sparse wide tally;
# of a cell of any other tally, with what the server's allocator rounds up.
_BYTES_PER_TALLY: Final = 512
_BYTES_PER_FIELD: Final = 64
BYTES_PER_CELL: Final = COUNTER_SIZE * 5 // 4
_FILLED_SHARE: Final = 8  # a wide tally is packed once one cell of so many is filled
WIDE: Final = 1_024  # counters from which a tally is a wide one; both as in hearsay.lua
_PAUSE_S: Final = 1.0  # seconds for which a store that did not answer is not asked again

_log = logging.getLogger("hearsay.shares")


def daily_begun(setting_mb: int | None, memory_limit: int) -> int:
    """Return the bytes of tallies that a write key may begin a day; 0: any number.

    Args: setting_mb: 10^6 bytes that an operator has set; None: a part of *memory_limit*.
    """
    if setting_mb is not None:
        return setting_mb * 1_000_000
    return round(BEGUN_SHARE * memory_limit) or _BEGUN_UNLIMITED


def size_of(metric: Metric, reports: int) -> int:
    """Return about how many bytes of the store the tally takes that so many *reports* begin."""
    width = metric.mechanism.tally_size + 1
    filled = min(1 + reports * metric.mechanism.fold_steps, width)
    if width > WIDE and filled * _FILLED_SHARE < width:
        return _BYTES_PER_TALLY + filled * _BYTES_PER_FIELD
    return _BYTES_PER_TALLY + width * BYTES_PER_CELL


class Beginning(NamedTuple):
    """An upload that may begin tallies, as far as this process knows."""

    key: bytes
    upload_id: bytes
    columns: Sequence[AcceptedColumn]


class TallyQuota:
    """The bytes of tallies that each write key has begun today, in all processes.

    A new tally counts for the key whose upload needs it first, in each process.  Two processes may
    both count a tally that is not folded yet, and one process may count it on two days: so a sum
    is never too low.  Safe to share between threads.
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
        self._known = KnownTallies()  # cells with a tally of today's class
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

        Args:   day: the epoch day of the *sizes*; at midnight other tallies are begun.
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
        """Return the *places* that have a tally; None if the store does not answer."""
        shards, now = {shard for shard, _ in places}, self._monotonic()
        never = float("-inf")
        if any(now - self._failed_at.get(shard, never) < _PAUSE_S for shard in shards):
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
