"""What the collector asks of its store, a protocol for each party that asks.

``Intake`` takes uploads, ``Work`` folds them, ``TallyStore`` is read for answers, ``ArchiveQueue``
feeds the archive and ``Inspection`` serves operators.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from ..core.cells import Cell
from ..core.errors import CollectorError
from .values import (
    ArchivedFold,
    ArchiveProgress,
    ClaimedEntry,
    Counters,
    Health,
    Increments,
    Index,
    LostIds,
    SealedUpload,
    ShardTally,
    StreamEntry,
    TallyPlace,
    TallySize,
)

MAX_CLAIM: Final = 16 * 1024 * 1024  # bytes after which a claim stops: a few gateway uploads
# A worker dies of an entry in memory, not with an answer: what was left twice comes last and alone,
# so that its neighbours are not blamed.
ALONE_FROM: Final = 3  # deliveries


class TallyStore(Protocol):
    """What a question reads.  Raises, all methods: StorageUnavailableError."""

    @property
    def shards(self) -> int:
        """Number of shards."""

    def index(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Index:
        """Return which tallies of *metric* there are in *epochs*.

        Args: latest: highest class of lateness wanted; all if None.
        """

    def vectors(self, index: Index, width: int) -> Iterable[tuple[Cell, bytes]]:
        """Yield the packed vectors of *index*, one a cell and shard, with memory for few of them.

        Args: width: counters of the longest, n included.
        """

    def pruned(self, metrics: Sequence[bytes]) -> Mapping[bytes, int]:
        """Return for each pruned metric among *metrics* the epoch before which it is pruned."""

    def exclusions(self) -> Mapping[str, bytes]:
        """Return the records of what operators excluded from answers, by id."""


class Gauge(Protocol):
    """What a store says of how full and how safe it is.  Raises CollectorError."""

    @property
    def shards(self) -> int:
        """Number of shards."""

    def refusing(self) -> Mapping[int, CollectorError]:
        """Return what an append would raise now, of each shard that would take none."""

    def backlog(self, but: Collection[int] = ()) -> int:
        """Return the number of entries appended but neither folded nor quarantined.

        Args: but: shards that are left out.
        """

    def health(self) -> Health:
        """Return the state of the servers that answer: full, safe, in time."""

    def shard_of(self, upload_id: bytes) -> int:
        """Return the shard that keeps an upload's content, without a request."""


class Intake(Gauge, Protocol):
    """What takes uploads into the queue, and says what became of them.

    Laws: the law of ``Work``, and: an upload id is queued once, however often it is appended.
    While its id is remembered it is a repeat; once ids of its day are forgotten it is refused,
    whatever any clock says.

    Raises, all methods: StorageUnavailableError: no answer, or not prepared.
        StorageFullError: the store takes no more writes.
        ReplacedStoreError, all that append: the store is not the one of the first use.
    """

    def append(self, upload_id: bytes, sealed_day: int, entry: bytes, reports: int) -> bool:
        """Queue *entry* unless *upload_id* was seen; return whether this was the first sight.

        Args: sealed_day: epoch day on which the device sealed the upload; bounds the memory of ids.
              reports: how many *entry* holds.
        """

    def append_many(self, uploads: Sequence[SealedUpload]) -> list[bool]:
        """Append several uploads in one round trip; each is first or duplicate on its own.

        An error of one is raised for all: those already appended are duplicates on repeat.
        """

    def server_of(self, upload_id: bytes) -> str:
        """Return a name of the server that keeps it, as far as known, without a request."""

    def existing(self, places: Collection[TallyPlace]) -> set[TallyPlace]:
        """Return the *places* that have a tally."""

    def counters(self) -> list[Counters]:
        """Return what became of the uploads of each shard, each at one moment."""


class Work(Protocol):
    """A durable queue of entries and exact integer tallies, spread over ``shards``.

    Laws of all methods:
    1. A method that returns has happened, as durably as the store's profile says.
    2. A method that raises CollectorError may have happened, but not in part; repeating it is safe.
    3. An entry is folded or quarantined once; its deletion is the token that decides.
    4. Whatever can refuse a change refuses it before the first write.

    Raises, all methods: StorageUnavailableError: no answer, or not prepared.
        StorageFullError: the store takes no more writes.
    """

    @property
    def shards(self) -> int:
        """Number of shards; fixed when the store is first prepared."""

    def claim(
        self, shard: int, consumer: str, count: int, min_idle_ms: int, size: int = MAX_CLAIM
    ) -> list[ClaimedEntry]:
        """Hand entries to *consumer*: first those others left, then new ones.

        At most *count*, and none more once *size* bytes are reached.  At most one of them, the
        last of those left, was delivered ALONE_FROM times or more.

        Args: min_idle_ms: milliseconds after which a claimed entry counts as left.
        """

    def spare(self, shard: int, consumer: str, ids: Sequence[str]) -> None:
        """Hand *ids* back: they are sound, but not for this worker.  Others may claim them now."""

    def forget_ids(self, shard: int, now: float) -> int:
        """Delete the upload ids of days from which no upload is taken; return how many days.

        Only the days that two clocks have confirmed as over count, and they get one more a day at
        most: so no clock that is wrong makes ids forgotten.

        Args: now: Unix time by the caller's clock, the second one next to the shard's own.
        """

    def now(self, shard: int) -> int:
        """Return the Unix time of the shard's own clock."""

    def fold(
        self, shard: int, ids: Sequence[str], increments: Increments, ending: int | None = None
    ) -> tuple[str, ...]:
        """Delete the entries *ids* and add *increments*, as one step.

        Args:    ending: Unix time of the shard's clock from which a cell is of another class.
        Returns: (), or the ids that are no longer there; then nothing was changed.
        Raises:  TallyOverflowError: a counter would leave its range; nothing was changed.
                 ClassEndedError: *ending* has come; nothing was changed.
                 ValueError: an id is given twice; nothing was changed.
        """

    def quarantine(self, shard: int, entry_id: str, reason: str) -> bool:
        """Set an entry aside for an operator; return False if it was no longer there."""

    def retire(self, consumer: str) -> None:
        """Forget *consumer* on every shard where it holds no entry."""

    def sweep(self, idle_ms: int) -> int:
        """Forget the consumers without entries that have asked for none in *idle_ms*; count them.

        Args: idle_ms: milliseconds.
        """


class ArchiveQueue(Protocol):
    """What was folded and waits to be written to the archive, in the order of the folds.

    Law: a fold is here if and only if it has happened, as one step, and until it is forgotten.
    Raises, all methods: StorageUnavailableError.
    """

    @property
    def shards(self) -> int:
        """Number of shards."""

    def bind(self, name: str, fresh: bool) -> bool:
        """Return whether this store's archive is *name*; a *fresh* one becomes it if none is."""

    def last(self, shard: int) -> int:
        """Return the number of the newest fold that waits, 0 if none does."""

    def waiting(self, shard: int, last: int) -> Iterator[ArchivedFold]:
        """Yield the folds that wait, oldest first, up to number *last*."""

    def forget(self, shard: int, last: int) -> None:
        """Delete what waits up to number *last*.  Repeatable."""

    def folds(self) -> Sequence[range]:
        """Return each shard's numbers of folds, which differ from store to store."""

    def restore(
        self, shard: int, cell: Cell, pairs: Sequence[tuple[int, int]], token: str
    ) -> bool | None:
        """Add *pairs* to the tally of *cell* once for each *token*; return whether this was it.

        None if the epoch of *cell* is pruned; then nothing was changed.

        Raises: TallyOverflowError: a counter would leave its range; nothing was changed.
        """

    def change_contents(self) -> None:
        """Say that tallies change by hand: before and after it, so that no old answer is kept."""

    def exclusions(self) -> Mapping[str, bytes]:
        """Return the record of each exclusion, by its id."""

    def archiving(self) -> list[ArchiveProgress]:
        """Return how far the archive of each shard has got."""


class ExclusionRecords(Protocol):
    """Where exclusions are written.

    Raises: StorageUnavailableError, StorageFullError.
    """

    def put(self, name: str, record: bytes, read: bytes | None = None) -> bool:
        """Store *record* in place of what was *read*, None for a new one; return if it is there."""


class Inspection(Protocol):
    """What an operator may see and move: entry by entry, tally by tally.

    Raises, all methods: StorageUnavailableError.
    """

    def counters(self) -> list[Counters]:
        """Return what became of the uploads of each shard, each at one moment."""

    def pending(self, shard: int) -> Iterator[StreamEntry]:
        """Yield the entries of a stream, oldest first; some may be folded meanwhile."""

    def set_aside(self, shard: int) -> Iterator[StreamEntry]:
        """Yield the entries of a quarantine stream, oldest first."""

    def requeue(self, shard: int, entry_id: str) -> bool:
        """Queue an entry again that was set aside; return False if it was no longer there."""

    def drop(self, shard: int, entry_id: str) -> bool:
        """Delete an entry that was set aside, counted; return False if it was no longer there."""

    def tallies(self) -> Iterator[ShardTally]:
        """Yield every tally of every shard, and every missing one, each at least once."""

    def marks(self) -> Mapping[bytes, int]:
        """Return of each metric that was pruned the epoch before which it is."""

    def lose(self, shard: int, then: Counters, missing: Sequence[Cell], reports: int) -> bool:
        """Count *reports* of a shard as lost, and forget the *missing* tallies.

        Returns: False if its counts are no longer *then*, or a tally is there; nothing was changed.
        """

    def sizes(self, metrics: Collection[bytes] | None = None) -> Iterator[TallySize]:
        """Yield what every tally of every shard takes, and every missing one, at least once.

        Args: metrics: digests; if given, only the tallies that are there of these.
        """

    def lost_ids(self) -> Iterator[LostIds]:
        """Yield each day of a shard of whose upload ids a part is gone."""

    def mark(self, metric: bytes, epoch: int) -> None:
        """Say that the epochs of *metric* before *epoch* are pruned.  A mark never moves back.

        Law: no answer rests on a part of an epoch.  From the mark on it is read and filled no more,
        on any shard.
        """

    def prune(
        self, shard: int, metric: bytes, epoch: int, members: Sequence[str], key: str = ""
    ) -> int:
        """Delete and count tallies of a marked epoch, or *key*'s tallies; return how many.

        Raises: ValueError: the epoch is not marked, or a tally is not *key*'s; nothing was changed.
        """
