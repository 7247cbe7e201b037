"""What the collector asks of its store, and the values that cross this border.

Law of this layer: nothing here imports redis, numpy or flask; only the implementations do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

MAX_CLAIM: Final = 16 * 1024 * 1024  # bytes after which a claim stops: a few gateway uploads
# A worker dies of an entry in memory, not with an answer: what was left twice comes last and alone,
# so that the entries beside it are not taken for the culprit.
ALONE_FROM: Final = 3  # deliveries


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """The address of one tally.  ``segment`` is canonical text, opaque here: "" for everybody."""

    metric: bytes  # the digest
    epoch: int
    segment: str
    lateness: int = 0  # class of the day of the fold; not known, and so 0, before


@dataclass(frozen=True, slots=True)
class Claimed:
    """A stream entry handed to one worker, now for the ``deliveries``-th time."""

    id: str
    entry: bytes
    deliveries: int


class Sealed(NamedTuple):
    """An upload as the store sees it; ``sealed_day`` is an epoch day, ``reports`` its accepted."""

    upload_id: bytes
    sealed_day: int
    entry: bytes
    reports: int


@dataclass(frozen=True, slots=True)
class Count:
    """A number of uploads and of the reports in them."""

    uploads: int = 0
    reports: int = 0


@dataclass(frozen=True, slots=True)
class Counters:
    """What became of all uploads of one shard, at one moment.

    Counted in the steps that append, fold and set aside, but for ``stream`` and ``aside``, which
    are the lengths of what is there.
    """

    accepted: Count
    folded: Count
    quarantined: Count  # set aside now
    dropped: Count  # out of the quarantine, by an operator
    late_reports: int  # among the folded ones, of a class above 0
    stream: int  # entries
    aside: int  # entries

    @property
    def pending(self) -> Count:
        """What is accepted and neither folded nor set aside nor dropped."""
        gone = self.folded, self.quarantined, self.dropped
        return Count(
            self.accepted.uploads - sum(one.uploads for one in gone),
            self.accepted.reports - sum(one.reports for one in gone),
        )

    @property
    def drift(self) -> int:
        """Uploads by which *accepted = folded + pending + set aside + dropped* is broken; 0."""
        return abs(self.pending.uploads - self.stream) + abs(self.quarantined.uploads - self.aside)


@dataclass(frozen=True, slots=True)
class Health:
    """How the servers are now; what none of them tells is empty or None."""

    memory: float | None = None  # share of its memory limit that the fullest server uses
    faults: tuple[
        str, ...
    ] = ()  # why a server could lose what it takes, each ``setting=value: rule``
    times: tuple[float, ...] = ()  # Unix time of each server that tells it


# Of each cell, (index, delta): index 0, first, counts reports, index i + 1 is cell i of the tally.
Increments: TypeAlias = Mapping[Cell, Sequence[tuple[int, int]]]
# Of each cell one packed vector a shard that holds any: big-endian int64, n first.
Tallies: TypeAlias = dict[Cell, list[bytes]]


class Storage(Protocol):
    """A durable queue of entries and exact integer tallies, spread over ``shards``.

    Laws of all methods:
    1. A method that returns has happened, as durably as the store's profile says.
    2. A method that raises CollectorError may have happened, but not in part; repeating it is safe.
    3. An upload id is queued once, however often it is appended while its id is remembered.
    4. An entry is folded or quarantined once; its deletion is the token that decides.
    5. Whatever can refuse a change refuses it before the first write.

    Raises, all methods: StorageUnavailableError: no answer, or not prepared.
        StorageFullError: the store takes no more writes.
    """

    @property
    def shards(self) -> int:
        """Number of shards; fixed when the store is first prepared."""

    def prepare(self) -> None:
        """Make the store ready and check that it is safe to use.  Repeatable.

        Raises: UnsafeStoreError: its settings could lose acknowledged uploads, it is too old,
            or it was prepared with another number of shards.
        """

    def append(self, upload_id: bytes, sealed_day: int, entry: bytes, reports: int) -> bool:
        """Queue *entry* unless *upload_id* was seen; return whether this was the first sight.

        Args: sealed_day: epoch day on which the device sealed the upload; bounds the memory of ids.
              reports: how many *entry* holds.
        """

    def append_many(self, uploads: Sequence[Sealed]) -> list[bool]:
        """Append several uploads in one round trip; each is first or duplicate on its own.

        An error of one is raised for all: those already appended are duplicates on repeat.
        """

    def claim(
        self, shard: int, consumer: str, count: int, min_idle_ms: int, size: int = MAX_CLAIM
    ) -> list[Claimed]:
        """Hand entries to *consumer*: first those others left, then new ones.

        At most *count*, and none more once *size* bytes are reached.  At most one of them, the
        last of those left, was delivered ALONE_FROM times or more.

        Args: min_idle_ms: milliseconds after which a claimed entry counts as left.
        """

    def spare(self, shard: int, consumer: str, ids: Sequence[str]) -> None:
        """Forget how often *ids* were delivered: they are sound, but not for this worker."""

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

    def tallies(self, metric: bytes, epochs: Iterable[int], latest: int | None = None) -> Tallies:
        """Return the stored tallies of *metric* in *epochs*, one packed vector a shard.

        Args: latest: highest class of lateness wanted; all if None.
        """

    def quarantine(self, shard: int, entry_id: str, reason: str) -> bool:
        """Set an entry aside for an operator; return False if it was no longer there."""

    def retire(self, consumer: str) -> None:
        """Forget *consumer* on every shard where it holds no entry."""

    def sweep(self, idle_ms: int) -> int:
        """Forget the consumers without entries that have asked for none in *idle_ms*; count them.

        Args: idle_ms: milliseconds.
        """

    def counters(self) -> list[Counters]:
        """Return what became of the uploads of each shard, each at one moment."""

    def backlog(self) -> int:
        """Return the number of entries appended but neither folded nor quarantined."""

    def health(self) -> Health:
        """Return how the servers are: full, safe, in time."""

    def quarantined(self) -> int:
        """Return the number of entries set aside."""

    def ping(self) -> None:
        """Return if an append would be taken now; raise what an append would raise."""

    def destroy(self) -> None:
        """Delete everything under this store's prefix."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An entry of a stream or a quarantine stream; ``reason`` is empty in the former."""

    shard: int
    id: str
    entry: bytes
    reports: int
    reason: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A tally of one shard as found: its packed vector, None if it is indexed but not there."""

    shard: int
    cell: Cell
    vector: bytes | None
    indexed: bool  # if not, no query reads it


@dataclass(frozen=True, slots=True)
class Folded:
    """What one fold took from the stream of a shard and kept for the archive."""

    number: int  # counts up in a shard
    day: int  # epoch day of the fold, by the store's clock
    classes: Mapping[tuple[bytes, int], int]  # of lateness, by metric and epoch
    entries: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Archiving:
    """How far the archive of a shard has got, at about one moment."""

    folded: int  # reports
    archived: int  # of these, reports that were folded with an archive
    waiting: int  # folds that are in no file yet
    oldest_day: int | None  # epoch day of the oldest of them


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

    def waiting(self, shard: int, last: int) -> Iterator[Folded]:
        """Yield the folds that wait, oldest first, up to number *last*."""

    def forget(self, shard: int, last: int) -> None:
        """Delete what waits up to number *last*.  Repeatable."""

    def restore(self, shard: int, cell: Cell, pairs: Sequence[tuple[int, int]], token: str) -> bool:
        """Add *pairs* to the tally of *cell* once for each *token*; return whether this was it.

        Raises: TallyOverflowError: a counter would leave its range; nothing was changed.
        """

    def archiving(self) -> list[Archiving]:
        """Return how far the archive of each shard has got."""


class Inspection(Protocol):
    """What an operator may see and move: entry by entry, tally by tally.

    Raises, all methods: StorageUnavailableError.
    """

    def counters(self) -> list[Counters]:
        """Return what became of the uploads of each shard, each at one moment."""

    def pending(self, shard: int) -> Iterator[Stored]:
        """Yield the entries of a stream, oldest first; some may be folded meanwhile."""

    def set_aside(self, shard: int) -> Iterator[Stored]:
        """Yield the entries of a quarantine stream, oldest first."""

    def requeue(self, shard: int, entry_id: str) -> bool:
        """Queue an entry again that was set aside; return False if it was no longer there."""

    def drop(self, shard: int, entry_id: str) -> bool:
        """Delete an entry that was set aside, counted; return False if it was no longer there."""

    def tallies(self) -> Iterator[Kept]:
        """Yield every tally of every shard, and every missing one, each at least once."""
