"""``hearsay refold``: recompute the tallies from the archive, and compare them with the store's.

The comparison is integer for integer, and sums are taken in any order.

Law: a cell is judged only if the archive must hold all of it.  That is every cell where all folds
were archived and none was pruned, and else those whose first fold can only have come later.  While
the store is in use, only cells whose class of lateness had ended are judged: these do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias

from client_sdk.core.epoch import DAY
from client_sdk.registry.metric import Metric

from ...core.cells import Cell, ends, first_day
from ...core.entry import AcceptedColumn
from ...core.errors import ArchiveError, CorruptEntryError, ExclusionError
from ...core.exclusions import Exclusion, latest, read_all, to_json
from ...estimation.tally import (
    Mechanisms,
    pairs_of,
    reports_of,
    sum_vectors,
    tally_entries,
    vector_of,
)
from ...storage.protocols import ArchiveQueue, ExclusionRecords, Inspection
from ...storage.values import ArchiveProgress
from .files import Folder, read_rows

Place: TypeAlias = tuple[int, Cell]  # the shard, and the cell in it
Vectors: TypeAlias = dict[Place, bytes]  # packed big-endian int64, n first


def tally_file(path: Path, mechanisms: Mechanisms) -> Vectors:
    """Return the tallies of the rows in a file; rows of a metric without mechanism are left out.

    Raises: ArchiveError: the file, or a row in it, is not what was written.
    """
    shards: dict[int, list[AcceptedColumn]] = {}
    for shard, row in read_rows(path):
        if row.cell.metric in mechanisms:
            shards.setdefault(shard, []).append(row)
    try:
        return {
            (shard, cell): vector_of(pairs, mechanisms[cell.metric].tally_size)
            for shard, rows in shards.items()
            for cell, pairs in tally_entries([rows], mechanisms).items()
        }
    except CorruptEntryError as error:
        raise ArchiveError(f"archive.file={path}: holds payloads that no value can give") from error


def add(parts: Sequence[Vectors], mechanisms: Mechanisms) -> Vectors:
    """Return the sum of *parts*, cell by cell."""
    total: Vectors = {}
    for place, vector in chain.from_iterable(part.items() for part in parts):
        sum_so_far = total.get(place)
        size = mechanisms[place[1].metric].tally_size
        total[place] = vector if sum_so_far is None else sum_vectors([sum_so_far, vector], size)
    return total


@dataclass(frozen=True)
class Scope:
    """Which cells an archive must hold whole.  Days are epoch days, and all are judged at None."""

    since: int | None  # the first day whose folds are all archived
    until: int | None  # the first with folds that may be in the store and in no file, or reverse

    def holds(self, cell: Cell, every: str) -> bool:
        """Return whether all folds into *cell* must be in the archive, and in the store."""
        begun = first_day(every, cell.epoch, cell.lateness)
        limits = ends(every, cell.epoch)
        ended = limits[cell.lateness] if cell.lateness < len(limits) else None
        return (self.since is None or (begun is not None and begun >= self.since)) and (
            self.until is None or (ended is not None and ended <= self.until * DAY)
        )


@dataclass(frozen=True)
class Difference:
    """A cell in which the store and its archive do not agree."""

    shard: int
    metric: str
    cell: Cell
    stored: int  # reports
    archived: int  # reports

    def __str__(self) -> str:
        """Read ``place: what``."""
        where = f"epoch={self.cell.epoch} segment={self.cell.segment!r}"
        place = f"shard={self.shard} metric={self.metric} {where} lateness={self.cell.lateness}"
        if self.stored == self.archived:
            return f"{place}: of {self.stored} reports, the tally is another than the archive's"
        return f"{place}: holds {self.stored} reports, the archive {self.archived}"


def scope_of(
    before: Sequence[ArchiveProgress],
    after: Sequence[ArchiveProgress],
    pruned: int | None,
    since: int | None,
    today: int,
) -> Scope:
    """Return what can be judged.

    Args: before, after: of each shard, before the store was read and after the folder was.
          pruned: last day that was pruned.  since: day from which on all folds are archived, if
          somebody knows.
    """
    whole = all(shard.folded == shard.archived for shard in after)
    first = [day for day in (since, None if pruned is None else pruned + 1) if day is not None]
    if not whole and since is None:
        first.append(today + 1)  # unknown which folds are missing: nothing is judged
    still = list(before) == list(after) and not any(shard.waiting for shard in before)
    oldest = [shard.oldest_day for shard in before if shard.oldest_day is not None]
    return Scope(max(first, default=None), None if still else min([today, *oldest]))


def differences(
    stored: Mapping[Place, bytes],
    archived: Mapping[Place, bytes],
    metrics: Mapping[bytes, Metric],
    places: Iterable[Place],
) -> Iterator[Difference]:
    """Yield the *places* at which two mappings of packed vectors differ."""
    for shard, cell in places:
        ours, theirs = stored.get((shard, cell), b""), archived.get((shard, cell), b"")
        if ours.rstrip(b"\0") != theirs.rstrip(b"\0"):  # zeros at the end may be missing
            name = metrics[cell.metric].name
            yield Difference(shard, name, cell, reports_of(ours), reports_of(theirs))


Engine = Callable[[Sequence[Path], Mechanisms], Vectors]


@dataclass(frozen=True)
class Comparison:
    """What came of it: the cells compared, the others, and those that differ."""

    compared: int
    left_out: int  # cells that the archive need not hold whole, or that are still open
    differences: tuple[Difference, ...]
    unarchived: int  # reports that were folded without an archive


def compare(
    queue: ArchiveQueue,
    inspection: Inspection,
    folder: Folder,
    metrics: Mapping[bytes, Metric],
    engine: Engine,
    *,
    today: int,
    since: int | None = None,
) -> Comparison:
    """Recompute on *engine* and compare.  The store may be in use.

    Args:   metrics: by digest; tallies of others are left out.  today: epoch day.
            since: epoch day from which on all folds are archived.
    Raises: ArchiveError: a file is not what was written.  StorageUnavailableError.
    """
    before = queue.archiving()
    stored = {
        (tally.shard, tally.cell): tally.vector or b""
        for tally in inspection.tallies()
        if tally.cell.metric in metrics
    }
    archived = tallies_of(folder, metrics, engine)
    after = queue.archiving()
    scope = scope_of(before, after, folder.pruned, since, today)
    marks = inspection.marks()  # after all was read: an epoch is marked before it goes
    places = {
        (shard, cell)
        for shard, cell in stored.keys() | archived.keys()
        if cell.epoch >= marks.get(cell.metric, cell.epoch)
    }
    judged = [place for place in places if scope.holds(place[1], metrics[place[1].metric].every)]
    return Comparison(
        compared=len(judged),
        left_out=len(places) - len(judged),
        differences=tuple(differences(stored, archived, metrics, sorted(judged))),
        unarchived=sum(progress.folded - progress.archived for progress in after),
    )


class Restored(NamedTuple):
    """What was taken over from an archive."""

    added: int  # cells
    before: int  # cells that had been added before
    pruned: int  # cells whose epoch is pruned here
    exclusions: int  # that were not here, or not yet taken back


def restore(
    queue: ArchiveQueue,
    records: ExclusionRecords,
    folder: Folder,
    metrics: Mapping[bytes, Metric],
    engine: Engine,
) -> Restored:
    """Add the tallies of the archive of a lost store to its successor, each once.  Repeatable.

    Exclusions come first, so that no answer has a report that the lost store left out.

    Raises:  ArchiveError: the store is the one that was archived here, so it has counted them.
             ExclusionError: one was changed meanwhile; no tally was added.
            TallyOverflowError: a counter would leave its range; what was added before it stays.
    """
    own = dict(enumerate(queue.folds()))  # what the folder says of itself may have been edited
    is_own = any(file.first in own.get(file.shard, ()) for file in folder.files())
    if is_own or queue.bind(folder.name, fresh=False):
        rule = "must not be this store's own: it has counted these reports"
        raise ArchiveError(f"archive={folder.path}: {rule}")
    tallies = tallies_of(folder, metrics, engine)
    exclusions = _exclude(queue, records, folder.exclusions())
    queue.change_contents()
    try:
        steps = _add(queue, folder.name, tallies)
    finally:
        queue.change_contents()
    return Restored(steps.count(True), steps.count(False), steps.count(None), exclusions)


def _exclude(
    queue: ArchiveQueue, records: ExclusionRecords, exclusions: Iterable[Exclusion]
) -> int:
    """Write *exclusions* that the store lacks or has in an older state; return how many."""
    stored = queue.exclusions()
    known = {each.id: each for each in read_all(stored)}
    new = [each for each in exclusions if latest(known.get(each.id), each) != known.get(each.id)]
    for exclusion in new:
        if not records.put(exclusion.id, to_json(exclusion), stored.get(exclusion.id)):
            rule = "it was changed meanwhile; run the command again"
            raise ExclusionError(f"exclusion={exclusion.id}: {rule}")
    return len(new)


def _add(queue: ArchiveQueue, name: str, tallies: Vectors) -> list[bool | None]:
    """Add *tallies* of the archive *name*; return of each cell what the store says of it."""
    return [
        queue.restore(
            shard % queue.shards,
            cell,
            pairs_of(vector),
            f"{name}:{shard}:{cell.metric.hex()}:{cell.epoch}:{cell.lateness}:{cell.segment}",
        )
        for (shard, cell), vector in sorted(tallies.items())
    ]


def tallies_of(folder: Folder, metrics: Mapping[bytes, Metric], engine: Engine) -> Vectors:
    """Return the tallies that the files of *folder* give."""
    mechanisms = {digest: metric.mechanism for digest, metric in metrics.items()}
    return engine([file.path for file in folder.files()], mechanisms)
