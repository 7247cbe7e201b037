"""The values that cross the border of the store: what is queued, tallied, counted and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple, TypeAlias

from ..core.cells import Cell

COUNTER_SIZE: Final = 8  # bytes of a counter; big-endian int64


@dataclass(frozen=True, slots=True)
class ClaimedEntry:
    """A stream entry handed to one worker, now for the ``deliveries``-th time."""

    id: str
    entry: bytes
    deliveries: int


class SealedUpload(NamedTuple):
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

    def __add__(self, other: Count) -> Count:
        """Return both together."""
        return Count(self.uploads + other.uploads, self.reports + other.reports)


@dataclass(frozen=True, slots=True)
class Counters:
    """What became of all uploads of one shard, at one moment; or, added up, of several.

    Counted in the steps that append, fold and set aside, but for ``stream`` and ``aside``, which
    are the lengths of what is there.
    """

    accepted: Count = Count()
    folded: Count = Count()
    quarantined: Count = Count()  # set aside now
    dropped: Count = Count()  # out of the quarantine, by an operator
    late_reports: int = 0  # among the folded ones, of a class above 0
    stream: int = 0  # entries
    aside: int = 0  # entries
    pruned_reports: int = 0  # among the folded ones: deleted with their epoch, or too late for it
    lost_reports: int = 0  # among the folded ones: of tallies that are gone, as was accepted

    def __add__(self, other: Counters) -> Counters:
        """Return both together."""
        names = (field.name for field in fields(self))
        return Counters(*(getattr(self, name) + getattr(other, name) for name in names))

    @property
    def late_share(self) -> float:
        """The part of the folded reports that came late."""
        return self.late_reports / self.folded.reports if self.folded.reports else 0.0

    @property
    def held_reports(self) -> int:
        """What the tallies must hold."""
        return self.folded.reports - self.pruned_reports - self.lost_reports

    @property
    def pending(self) -> Count:
        """What is accepted and neither folded nor set aside nor dropped."""
        gone = self.folded, self.quarantined, self.dropped
        return Count(
            self.accepted.uploads - sum(count.uploads for count in gone),
            self.accepted.reports - sum(count.reports for count in gone),
        )

    @property
    def drift(self) -> int:
        """Uploads by which *accepted = folded + pending + set aside + dropped* is broken; 0.

        Of one shard: what one has too many must not hide what another lacks.
        """
        return abs(self.pending.uploads - self.stream) + abs(self.quarantined.uploads - self.aside)


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the servers that answer; what none of them reports is empty or None."""

    memory: float | None = None  # share of its memory limit that the fullest server uses
    # Why a server could lose what it takes, each ``setting=value: rule``.
    faults: tuple[str, ...] = ()
    times: tuple[float, ...] = ()  # Unix time of each server that reports it
    # Bytes of all servers together, those away taken to be like the others; 0 if one has no limit.
    memory_limit: int = 0
    # Changes whenever the store is another, was started again, or tallies came from elsewhere; ""
    # while a server is away.
    contents: str = ""
    # Uploads that each shard has ever acknowledged; None of one that does not answer.
    accepted: tuple[int | None, ...] = ()


TallyPlace: TypeAlias = tuple[int, Cell]  # a shard, and a cell of it

# Of each cell, (index, delta): index 0, first, counts reports, index i + 1 is cell i of the tally.
Increments: TypeAlias = Mapping[Cell, Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Index:
    """Which tallies there are of one metric."""

    cells: Sequence[Cell]
    tallies: int  # of all cells on all shards
    places: Any  # where the store has them


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """An entry of a stream or a quarantine stream; ``reason`` is empty in the former."""

    shard: int
    id: str
    entry: bytes
    reports: int
    reason: str


@dataclass(frozen=True, slots=True)
class ShardTally:
    """A tally of one shard as found: its packed vector, None if it is indexed but not there."""

    shard: int
    cell: Cell
    vector: bytes | None
    indexed: bool  # if not, no query reads it
    gone: bool = False  # there is no key of its name


@dataclass(frozen=True, slots=True)
class LostIds:
    """Buckets of upload ids that a shard had of a day and has no more."""

    shard: int
    day: int  # epoch day of sealing
    lost: int
    buckets: int  # that there were


@dataclass(frozen=True, slots=True)
class TallySize:
    """A tally of one shard, without its counters."""

    shard: int
    cell: Cell
    reports: int
    size: int  # bytes in the store's memory


@dataclass(frozen=True, slots=True)
class ArchivedFold:
    """What one fold took from the stream of a shard and kept for the archive."""

    number: int  # counts up in a shard
    day: int  # epoch day of the fold, by the store's clock
    classes: Mapping[tuple[bytes, int], int]  # of lateness, by metric and epoch
    entries: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ArchiveProgress:
    """How far the archive of a shard has got, at about one moment."""

    folded: int  # reports
    archived: int  # of these, reports that were folded with an archive
    waiting: int  # folds that are in no file yet
    oldest_day: int | None  # epoch day of the oldest of them
